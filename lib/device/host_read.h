/// The one way by which training looks at a number that a device computed, so that looks can be counted: on a
/// GPU each of them waits for all work queued before.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace trainwright {

class HostReader {
 public:
  /// A copy on the host. Waits for a GPU.
  at::Tensor Read(const at::Tensor& on_device) {
    ++reads_;
    return on_device.to(at::Device(at::kCPU), on_device.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
  }
  int64_t reads() const { return reads_; }

 private:
  int64_t reads_ = 0;
};

}  // namespace trainwright
