#include "lib/dist/shared_work.h"

#include <new>

#include "lib/base/error.h"
#include "lib/device/memory_error.h"

namespace trainwright {

WorkEnd EndOf(const std::exception_ptr& failure) {
  if (!failure) return WorkEnd::kDone;
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    switch (error.code()) {
      case ErrorCode::kInterrupted:
      case ErrorCode::kTerminated:
        return WorkEnd::kStopped;
      case ErrorCode::kNonFinite:
        return WorkEnd::kNotFinite;
      default:
        return WorkEnd::kFailed;
    }
  } catch (const std::exception& exception) {
    return AsMemoryError(exception, {}) ? WorkEnd::kOutOfMemory : WorkEnd::kFailed;
  } catch (...) {
    return WorkEnd::kFailed;
  }
}

void ThrowForAnother(WorkEnd end, const std::string& who, const std::string& cause) {
  const std::string why = cause.empty() ? "" : ": " + cause;
  switch (end) {
    case WorkEnd::kStopped:
      throw Error(ErrorCode::kInterrupted, who, "got a signal");
    case WorkEnd::kOutOfMemory:
      throw std::bad_alloc();
    case WorkEnd::kNotFinite:
      throw Error(ErrorCode::kNonFinite, who, "got a number that is not finite" + why);
    default:
      throw Error(ErrorCode::kIo, who, "failed" + why, "", why.empty() ? "its own message says why" : "");
  }
}

std::vector<int64_t> ShareEnd(World* world, const std::exception_ptr& failure,
                              const std::vector<int64_t>& answers) {
  const auto own = static_cast<int64_t>(EndOf(failure));
  std::vector<int64_t> questions = {own};
  questions.insert(questions.end(), answers.begin(), answers.end());
  const std::vector<int64_t> agreed = world->Agree(questions);
  if (agreed[0] > own) ThrowForAnother(static_cast<WorkEnd>(agreed[0]), "another rank");
  if (failure) std::rethrow_exception(failure);
  return {agreed.begin() + 1, agreed.end()};
}

int64_t AsWriter(World* world, const std::function<int64_t()>& work) {
  int64_t result = 0;
  std::exception_ptr failure;
  try {
    if (world->is_writer()) result = work();
  } catch (...) {
    failure = std::current_exception();
  }
  return ShareEnd(world, failure, {result})[0];
}

}  // namespace trainwright
