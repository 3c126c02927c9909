/// The two floating-point types of 8 bits. Free of torch.
///
/// kE4m3: 4 bits of exponent (bias 7), 3 of fraction; no infinity, and one NaN of each sign, so that its
/// largest value is 448 ("fn"). kE5m2: 5 bits (bias 15) and 2, with infinities and NaNs as in IEEE 754;
/// its largest value is 57344. Both have subnormals. \source Micikevicius et al. 2022, arXiv:2209.05433
#pragma once

namespace trainwright {

enum class Fp8Format { kE4m3, kE5m2 };

}  // namespace trainwright
