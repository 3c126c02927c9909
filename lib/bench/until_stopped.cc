#include "lib/bench/until_stopped.h"

#include "lib/base/error.h"

namespace trainwright {

std::exception_ptr UntilStopped(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInterrupted && error.code() != ErrorCode::kTerminated) throw;
    return std::current_exception();
  }
  return nullptr;
}

}  // namespace trainwright
