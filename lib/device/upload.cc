#include "lib/device/upload.h"

#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "lib/base/profile_scope.h"
#include "lib/device/accelerator.h"
#include "lib/device/copy_lanes.h"

namespace trainwright {

at::Tensor Upload(const at::Tensor& host, at::Device device, bool pin) {
  if (device.is_cpu()) return host;
  const ProfileScope scope("upload", ProfilePart::kUpload);
  if (!pin || !IsAccelerator(device)) return host.to(device);
  if (host.numel() == 0) return at::empty(host.sizes(), host.options().device(device));
  const c10::Stream present = c10::impl::VirtualGuardImpl(device.type()).getStream(device),
                    copies = UploadStream(device);
  at::Tensor uploaded;
  {
    const c10::StreamGuard guard(copies);
    // Memory of that stream, so that nothing which was queued before has to be waited for; torch keeps the
    // pinned block until it has been read.
    uploaded = host.pin_memory().to(device, host.scalar_type(), /*non_blocking=*/true);
  }
  uploaded.record_stream(present);
  c10::Event arrived(device.type());
  arrived.record(copies);
  arrived.block(present);
  return uploaded;
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
