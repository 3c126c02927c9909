/// How busy the GPU of a run is, for its records.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <optional>

namespace trainwright {

/// \returns what reports the share of time in which it was running lately (see GpuUse); empty on a CPU, and
///     where the driver's library cannot be loaded
std::function<std::optional<double>()> GpuUseReader(c10::Device device);

}  // namespace trainwright
