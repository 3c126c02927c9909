#include "lib/device/upload.h"

namespace trainwright {

at::Tensor Upload(const at::Tensor& host, at::Device device, bool pin) {
  if (device.is_cpu()) return host;
  if (!pin) return host.to(device);
  // torch keeps the pinned block until the stream has read it.
  return host.pin_memory().to(device, host.scalar_type(), /*non_blocking=*/true);
}

}  // namespace trainwright
