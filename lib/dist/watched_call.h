/// Calls that cannot be interrupted, made so that the training thread is not held by them.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include "lib/dist/fault_watch.h"

namespace trainwright {

/// Makes a call on a thread of its own, which is left behind where a rank is at fault.
/// \param call holds all that it needs: it may outlive the caller
/// \param problem_of what an exception of the call says
/// \throws Error{kIo} as the watch says, also where the call throws
template <typename Result>
Result CallWatched(std::function<Result()> call, std::string (*problem_of)(const std::exception&),
                   FaultWatch* watch) {
  constexpr std::chrono::milliseconds kSlice{20};
  std::packaged_task<Result()> task(std::move(call));
  std::future<Result> result = task.get_future();
  std::thread thread(std::move(task));
  try {
    while (result.wait_for(kSlice) != std::future_status::ready) watch->Check();
  } catch (...) {
    thread.detach();
    throw;
  }
  thread.join();
  try {
    return result.get();
  } catch (const std::exception& problem) {
    throw watch->Explain(problem_of(problem));
  }
}

}  // namespace trainwright
