/// What torch and the standard library throw when memory runs out, as our errors: the one place that tells
/// torch's exceptions apart.
///
/// A GPU's memory is Error{kDevice}, "device memory"; the host's is Error{kIo}, "memory", or Error{kDevice}
/// where it is the user's cap that was reached. All carry torch's words on the allocation that failed, what
/// was being done, and a hint that names the flags to change.
#pragma once

#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <string>

#include "lib/base/error.h"

namespace trainwright {

/// Who asks for the memory.
struct MemoryUser {
  std::string doing;  ///< "step 12, micro-batches of 16 samples of up to 1024 tokens"; may be empty
  std::string hint;   ///< the flags that make it less
  std::string cap;    ///< what the user limited memory to, "--mem-fraction 0.5, 3.1 GB"; empty: nothing
};

/// Stands for the memory of another rank that ran out. AsMemoryError makes Error{kIo} of it, which names that
/// rank: neither this machine's memory nor a cap on it is to blame.
class RankOutOfMemory : public std::bad_alloc {
 public:
  explicit RankOutOfMemory(const std::string& who) : who_(who) {}
  const char* what() const noexcept override { return "another rank ran out of memory"; }
  const std::string& who() const { return who_; }  ///< "rank 3"

 private:
  std::string who_;
};

/// \returns nullopt when `exception` is about anything but memory, as an Error always is
std::optional<Error> AsMemoryError(const std::exception& exception, const MemoryUser& user);

/// Calls `work` and returns its result, with what it throws translated.
/// \param user called once memory has run out
template <typename Work>
auto WithMemoryErrors(const std::function<MemoryUser()>& user, const Work& work) {
  try {
    return work();
  } catch (const std::exception& exception) {
    if (AsMemoryError(exception, {})) throw *AsMemoryError(exception, user());
    throw;
  }
}

}  // namespace trainwright
