/// Work that each rank does alone and whose end all ranks share: where it failed on one it counts as failed
/// on all, so that what follows (smaller micro-batches, or the end of the run) is the same everywhere.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/dist/world.h"

namespace trainwright {

/// How a rank's work ended. Of several ends the last of this list counts.
enum class WorkEnd : int64_t {
  kDone = 0,
  kInterrupted = 1,  ///< Error{kInterrupted}
  kReaderLeft = 2,   ///< Error{kReaderLeft}
  kTerminated = 3,   ///< Error{kTerminated}
  kOutOfMemory = 4,  ///< of the host or a device
  kNotFinite = 5,    ///< Error{kNonFinite}
  kFailed = 6,       ///< otherwise
};

/// \param failure what the work threw; null: it is done
WorkEnd EndOf(const std::exception_ptr& failure);

/// The first line of its message; empty where it has none.
std::string CauseOf(const std::exception_ptr& failure);

/// An Error that stands for the failure of another rank's work, and names it.
class ErrorOfAnother : public Error {
 public:
  using Error::Error;
};

/// Throws what stands for the failure of another rank's work: ErrorOfAnother{kInterrupted, kReaderLeft,
/// kTerminated, kNonFinite, kIo}, so that all ranks have the status of one, or of its memory RankOutOfMemory.
/// \param who that rank, for the message: "rank 3"
/// \param cause in its own words; empty: they are not known here
[[noreturn]] void ThrowForAnother(WorkEnd end, const std::string& who, const std::string& cause = "");

/// An Error that rank 0 throws in the same words: who throws it need not report it.
class CommonError : public Error {
 public:
  explicit CommonError(const Error& error) : Error(error) {}
};

/// \param failure not null
/// \param cause_of_first that of rank 0; empty: it did not fail
/// \throws `failure`: as CommonError on another rank than 0 whose Error has the same cause, unless it stands
///     for the failure of a third one, which each rank names
[[noreturn]] void Rethrow(const World& world, const std::exception_ptr& failure,
                          const std::string& cause_of_first);

/// Waits for all ranks to end their work.
/// \param failure what the work threw on this rank; null: it is done
/// \param answers to questions of its own, as of World::Agree
/// \returns what was agreed on these
/// \throws `failure`, as Rethrow, where its end is the one that counts; else as ThrowForAnother, naming the
///     first rank that failed and its cause. Error{kIo} as World::Agree
std::vector<int64_t> ShareEnd(World* world, const std::exception_ptr& failure,
                              const std::vector<int64_t>& answers = {});

/// Has the writer do what it alone may. The others wait for it, and where it fails all do.
/// \param work returns a number of at least 0
/// \returns the number, on all ranks
/// \throws as ShareEnd
int64_t AsWriter(World* world, const std::function<int64_t()>& work);

/// Has each rank do for itself what all do alike, without a call of the world. Where it fails on one, it
/// fails on all.
/// \throws what the work throws, as Rethrow; where it threw nothing, as ThrowForAnother. Error{kIo} as
///     World::Reduce
void DoAlike(World* world, const std::function<void()>& work);

}  // namespace trainwright
