#include "lib/device/device_sync.h"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace trainwright {

void WaitFor(c10::Device device) {
  if (device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl guard(device.type());
  guard.synchronizeStream(guard.getStream(device));
}

}  // namespace trainwright
