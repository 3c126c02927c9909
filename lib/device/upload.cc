#include "lib/device/upload.h"

#include "lib/base/profile_scope.h"
#include "lib/device/accelerator.h"

namespace trainwright {

at::Tensor Upload(const at::Tensor& host, at::Device device, bool pin) {
  if (device.is_cpu()) return host;
  const ProfileScope scope("upload", ProfilePart::kUpload);
  if (!pin || !IsAccelerator(device)) return host.to(device);
  // torch keeps the pinned block until the stream has read it.
  return host.pin_memory().to(device, host.scalar_type(), /*non_blocking=*/true);
}

at::Tensor UploadIds(const at::Tensor& host, int64_t bound, at::Device device, bool pin) {
  if (device.is_cpu()) return host;
  return WidenIds(Upload(NarrowIds(host, bound), device, pin));
}

at::Tensor NarrowIds(const at::Tensor& ids, int64_t bound) {
  if (bound > int64_t{1} << 31) return ids;
  return ids.to(bound > int64_t{1} << 16 ? at::kInt : at::kShort);  // wraps: the bits of an unsigned number
}

at::Tensor WidenIds(const at::Tensor& narrow) {
  at::Tensor ids = narrow.to(at::kLong);
  if (narrow.scalar_type() == at::kShort) ids.bitwise_and_(0xFFFF);
  return ids;
}

}  // namespace trainwright
