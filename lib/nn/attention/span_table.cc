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

int64_t SpanTable::longest() const {
  int64_t longest = 0;
  for (size_t s = 0; s + 1 < starts.size(); ++s) {
    longest = std::max<int64_t>(longest, starts[s + 1] - starts[s]);
  }
  return longest;
}

}  // namespace trainwright
