/// Work of which each rank does a part alone, and from which all come together now and then, to report to
/// each other how far they are or what they have. A failure of one ends all of them at their next meeting.
/// See lib/dist/shared_work.h for how failures are thrown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <vector>

#include "lib/dist/world.h"

namespace trainwright {

/// Not thread-safe: the training thread's.
class SharedRounds {
 public:
  /// \param world outlives it
  /// \param words that a rank reports at each meeting
  SharedRounds(World* world, size_t words) : world_(world), words_(words) {}
  /// Does this rank's part, which is to meet as often as that of every other rank; its last meeting comes
  /// after all that can fail on one rank alone.
  /// \throws what `work` throws, as Rethrow, once all ranks know of it; as Meet
  void Run(const std::function<void()>& work);
  /// Called by the work.
  /// \param own as many words as the rounds have
  /// \returns every rank's, by rank
  /// \throws what stands for the failure of another rank's work, as ThrowForAnother, which names the rank and
  ///     its cause; Error{kIo} as World::Reduce
  std::vector<std::vector<int64_t>> Meet(const std::vector<int64_t>& own) { return Meet(nullptr, own); }

 private:
  std::vector<std::vector<int64_t>> Meet(const std::exception_ptr& failure, const std::vector<int64_t>& own);

  World* world_;
  size_t words_;
  bool all_know_ = false;  // that it has ended
};

}  // namespace trainwright
