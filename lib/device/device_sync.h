/// Waiting for a device.
#pragma once

#include <c10/core/Device.h>

namespace trainwright {

/// Until all that is queued on its present stream is done; nothing on a CPU.
void WaitFor(c10::Device device);

}  // namespace trainwright
