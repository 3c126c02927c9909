/// Choosing the next token from logits: the most probable one, or one drawn at a temperature from the k most
/// probable, or from the smallest set that holds a share p of the probability (Holtzman et al. 2020,
/// arXiv:1904.09751, section 3.1).
///
/// A choice is a function of the logits and one uniform number, with sums in double precision: no state, no
/// generator.
#pragma once

#include <cstdint>
#include <vector>

namespace trainwright {

struct SamplingOptions {
  double temperature = 0;  ///< 0: the most probable token
  int64_t top_k = 0;       ///< 0: all
  double top_p = 1;        ///< in (0, 1]; 1: all
};

/// \throws Error{kUsage} naming the flag of a value out of range
void CheckSampling(const SamplingOptions& options);

/// In transformers' order: logits over the temperature, of those the top_k largest, of those the most
/// probable whose sum reaches top_p. Among equal logits the smaller id comes first.
/// \param logits [vocabulary]
/// \param uniform in [0, 1), unused at temperature 0
/// \throws Error{kNonFinite} when no logit is finite or one is NaN
uint32_t ChooseToken(const float* logits, int64_t vocabulary, const SamplingOptions& options, double uniform);

}  // namespace trainwright
