#include "lib/nn/attention/span_table.h"

#include <ATen/ops/tensor.h>

#include <algorithm>

#include "lib/device/upload.h"

namespace trainwright {

SpanTable::SpanTable(std::vector<int32_t> starts_in, at::Device device, bool pin)
    : starts(std::move(starts_in)) {
  if (device.is_cpu()) return;
  starts_on_device = Upload(at::tensor(starts, at::TensorOptions().dtype(at::kInt)), device, pin);
}

std::vector<SpanTable::Run> SpanTable::EqualRuns() const {
  std::vector<Run> runs;
  for (size_t s = 0; s + 1 < starts.size(); ++s) {
    const int64_t length = starts[s + 1] - starts[s];
    if (length == 0) continue;
    if (runs.empty() || runs.back().length != length) runs.push_back({starts[s], 0, length});
    ++runs.back().spans;
  }
  return runs;
}

int64_t SpanTable::longest() const {
  int64_t longest = bound;
  for (size_t s = 0; s + 1 < starts.size(); ++s) {
    longest = std::max<int64_t>(longest, starts[s + 1] - starts[s]);
  }
  return longest;
}

}  // namespace trainwright
