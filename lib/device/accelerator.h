/// What computes beside the host.
#pragma once

#include <c10/core/Device.h>

namespace trainwright {

/// Whether the device works on its own, in a memory of its own, so that copies to and from pinned memory pass
/// while the host goes on: a GPU. Not so the CPU, nor torch's meta device, which computes nothing.
inline bool IsAccelerator(c10::Device device) {
  return !device.is_cpu() && !device.is_meta();
}

}  // namespace trainwright
