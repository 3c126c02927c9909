/// A loop over independent items on a few threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace trainwright::codec {

/// Calls function(item) once for every item in [0, items), in any order. Rethrows the first exception.
template <typename Function>
void ParallelFor(size_t items, int threads, Function&& function) {
  std::atomic<size_t> next = 0;
  std::exception_ptr error;
  std::mutex mutex;
  const auto work = [&] {
    try {
      for (size_t item; (item = next++) < items;) function(item);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
      next = items;
    }
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < std::min(items, static_cast<size_t>(std::max(threads, 1))); ++i)
    others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace trainwright::codec
