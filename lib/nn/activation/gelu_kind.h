/// Which Gaussian error linear unit a model has: for host and device, torch-free.
#pragma once

namespace trainwright {

/// kErf: x Phi(x) with the normal distribution function Phi (nanoGPT). kTanh: x (1 + tanh(sqrt(2 / pi)
/// (x + 0.044715 x^3))) / 2 (GPT-2, gelu_new in transformers). Both within 3e-7 max(1, |x|) of the formula in
/// fp32.
enum class GeluKind { kErf, kTanh };

}  // namespace trainwright
