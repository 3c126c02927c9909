/// What a GPU does, recorded by CUPTI: kernels, copies and fills with their times.
///
/// CUPTI is a library of CUDA that libtorch_cpu has loaded anyway; the plugin calls it (cupti/plugin.cc), and
/// its times are of the steady clock. It serves one profiler at a time: under Nsight it refuses.
/// Unverified: no GPU has run it yet.
#pragma once

#include <c10/core/Device.h>

#include <memory>

#include "lib/device/gpu_activity_plugin.h"
#include "lib/profile/device_activity.h"

namespace trainwright {

/// Of a GPU; null for the CPU, whose work is all on the host's timeline.
/// \throws Error{kDevice} where the plugin has no part for it
std::unique_ptr<ActivitySource> MakeActivitySource(c10::Device device);

/// The same of a plugin that is at hand.
/// \param plugin outlives it
std::unique_ptr<ActivitySource> MakeActivitySource(const GpuActivityPlugin* plugin, int32_t device);

}  // namespace trainwright
