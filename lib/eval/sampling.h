/// Choosing the next token from logits: the most probable one, or one drawn at a temperature from the k most
/// probable, from the smallest set that holds a share p of the probability (Holtzman et al. 2020,
/// arXiv:1904.09751, section 3.1), or from those not too much less probable than the most probable one
/// (Nguyen et al. 2024, arXiv:2407.01082, section 3).
///
/// A choice is a function of the logits and one uniform number, with sums in double precision: no state, no
/// generator.
#pragma once

#include <cstdint>
#include <vector>

namespace trainwright {

struct SamplingOptions {
  double temperature = 0;         ///< 0: the most probable token
  int64_t top_k = 0;              ///< 0: all
  double top_p = 1;               ///< in (0, 1]; 1: all
  double min_p = 0;               ///< in [0, 1]: least share of the most probable one's probability; 0: all
  double repetition_penalty = 1;  ///< above 0: see repetition.h; 1: none
};

/// \throws Error{kUsage} naming the flag of a value out of range
void CheckSampling(const SamplingOptions& options);

/// In transformers' order: logits over the temperature, of those the top_k largest, of those the most
/// probable whose sum reaches top_p, of those the ones that have min_p of the largest probability. Among
/// equal logits the smaller id comes first. The repetition penalty is the caller's, who knows what came
/// before.
/// \param logits [vocabulary]
/// \param uniform in [0, 1), unused at temperature 0
/// \throws Error{kNonFinite} when no logit is finite or one is NaN
uint32_t ChooseToken(const float* logits, int64_t vocabulary, const SamplingOptions& options, double uniform);

/// The ids of the `count` largest logits, the largest first; of equal ones the smaller id.
/// \param count at most the vocabulary
std::vector<uint32_t> LargestFirst(const float* logits, int64_t vocabulary, int64_t count);

}  // namespace trainwright
