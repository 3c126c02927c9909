/// Which precisions a GPU multiplies.
#pragma once

#include "lib/device/gpu_limits.h"
#include "lib/spec/precision.h"

namespace trainwright {

/// Whether a GPU of such limits multiplies it faster than fp32.
bool HasFastProducts(Precision precision, const GpuLimits& limits);

/// ChooseNumerics asks it of the device.
/// \throws Error{kUsage} where a GPU of such limits has no products of the precision
void RequireProducts(Precision precision, const GpuLimits& limits);
/// The same where GEMMs are to be in fp8.
/// \throws Error{kUsage} where such a GPU has none, and on another precision than bf16
void RequireFp8(Precision precision, const GpuLimits& limits);

}  // namespace trainwright
