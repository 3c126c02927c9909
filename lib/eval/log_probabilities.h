/// What the model itself gives the tokens of a sample: logarithms of the softmax of its logits, before
/// temperature, penalty and whatever else sampling does to them.
#pragma once

#include <cstdint>
#include <vector>

namespace trainwright {

struct TokenLogProbability {
  uint32_t id = 0;
  double log_probability = 0;  ///< nats
};

struct ChosenLogProbabilities {
  double chosen = 0;                      ///< nats, of the token that was chosen
  std::vector<TokenLogProbability> most;  ///< the most probable first; of equal ones the smaller id
};

/// Sums in double precision.
/// \param logits [vocabulary]
/// \param chosen an id of the vocabulary
/// \param count of the most probable tokens to give besides; at most the vocabulary
ChosenLogProbabilities LogProbabilitiesOf(const float* logits, int64_t vocabulary, uint32_t chosen,
                                          int64_t count);

}  // namespace trainwright
