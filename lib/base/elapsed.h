/// Time that has passed, by the clock that nobody sets.
#pragma once

#include <chrono>

namespace trainwright {

inline double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace trainwright
