#include "lib/train/shared_work.h"

#include <new>

#include "lib/base/error.h"
#include "lib/device/memory_error.h"

namespace trainwright {
namespace {

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

[[noreturn]] void ThrowForAnother(WorkEnd end) {
  constexpr char kAnother[] = "another rank";
  switch (end) {
    case WorkEnd::kStopped:
      throw Error(ErrorCode::kInterrupted, kAnother, "got a signal");
    case WorkEnd::kOutOfMemory:
      throw std::bad_alloc();
    case WorkEnd::kNotFinite:
      throw Error(ErrorCode::kNonFinite, kAnother, "got a number that is not finite");
    default:
      throw Error(ErrorCode::kIo, kAnother, "failed", "", "its own message says why");
  }
}

}  // namespace

std::vector<int64_t> ShareEnd(World* world, const std::exception_ptr& failure,
                              const std::vector<int64_t>& answers) {
  const auto own = static_cast<int64_t>(EndOf(failure));
  std::vector<int64_t> questions = {own};
  questions.insert(questions.end(), answers.begin(), answers.end());
  const std::vector<int64_t> agreed = world->Agree(questions);
  if (agreed[0] > own) ThrowForAnother(static_cast<WorkEnd>(agreed[0]));
  if (failure) std::rethrow_exception(failure);
  return {agreed.begin() + 1, agreed.end()};
}

}  // namespace trainwright
