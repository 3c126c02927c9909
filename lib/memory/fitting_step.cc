#include "lib/memory/fitting_step.h"

#include <algorithm>

namespace trainwright {
namespace {

int64_t DivideUp(int64_t count, int64_t by) {
  return (count + by - 1) / by;
}

}  // namespace

int64_t MemoryToFit(int64_t whole_bytes, int64_t state_bytes) {
  constexpr double kShare = 0.85;
  constexpr int64_t kHeadsPart = 8;
  const auto memory_bytes = static_cast<int64_t>(kShare * static_cast<double>(whole_bytes));
  return memory_bytes - std::max<int64_t>(0, memory_bytes - state_bytes) / kHeadsPart;
}

int64_t HalveToFit(int64_t batch, int64_t memory_bytes, const std::function<int64_t(int64_t)>& bytes_of) {
  while (batch > 0 && bytes_of(batch) > memory_bytes) batch /= 2;
  return batch;
}

DividedStep DivideStep(int64_t samples, int64_t most) {
  const int64_t accum = DivideUp(samples, most);
  return {.batch = DivideUp(samples, accum), .accum = accum};
}

}  // namespace trainwright
