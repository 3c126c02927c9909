/// The floating-point types that a model is computed in, by name. Free of torch; lib/nn/precision.h computes
/// with them.
#pragma once

#include <string>

namespace trainwright {

/// fp32: everything in fp32. bf16, fp16: master weights, gradients, norms' statistics, softmax and loss in
/// fp32; weights are cast once an optimizer step; activations and GEMMs' inputs and outputs are
/// rounded to reduced precision, GEMMs accumulate in fp32.
enum class Precision { kFp32, kBf16, kFp16 };

std::string PrecisionName(Precision precision);  ///< "fp32", "bf16", "fp16"

/// What --mixed-precision says: "no", "bf16", "fp16", or "auto".
/// \param fast_bf16 whether the device multiplies bf16 fast: "auto" is bf16 then
/// \param fast_fp16 else, whether it multiplies fp16 fast: fp16 then, and fp32 where it does neither
/// \throws Error{kUsage}
Precision ParsePrecision(const std::string& mixed_precision, bool fast_bf16, bool fast_fp16);

}  // namespace trainwright
