/// The frequencies of rotary positions, and the ways in which models stretch them beyond the context of their
/// first training. The formulas and their fp32 rounding are those of transformers 5.x (modeling_rope_utils).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "lib/spec/rope_parameters.h"

namespace trainwright {

/// fp32 [pairs]: radians a position, of a sequence of `length` tokens.
at::Tensor RopeFrequencies(const RopeParameters& rope, int64_t head_dim, int64_t length);

/// What cosines and sines are multiplied by.
double RopeAttentionFactor(const RopeParameters& rope);

}  // namespace trainwright
