/// The repetition penalty of Keskar et al. 2019 (arXiv:1909.05858, section 4.1), as transformers applies it:
/// the logit of each token that the sequence has already is divided by the penalty where it is positive,
/// else multiplied.
#pragma once

#include <cstdint>
#include <span>

namespace trainwright {

/// \param seen ids of the sequence, in any order; one that is there twice is penalised once
/// \param penalty above 0; 1 changes nothing
/// \param logits [vocabulary], changed in place, in fp32
/// Throws on an id outside the vocabulary. Complexity: O(vocabulary + seen).
void PenalizeRepetition(std::span<const uint32_t> seen, double penalty, std::span<float> logits);

}  // namespace trainwright
