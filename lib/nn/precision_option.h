/// The precision that a user asks for.
#pragma once

#include <string>

#include "lib/nn/precision.h"

namespace trainwright {

/// "no", "bf16", "fp16", or "auto": bf16 where the device is faster at it (IsWorthwhile), else fp16 where it
/// is fast at that, as older GPUs are, else fp32.
/// \throws Error{kUsage}
Precision ParsePrecision(const std::string& mixed_precision, at::Device device);

}  // namespace trainwright
