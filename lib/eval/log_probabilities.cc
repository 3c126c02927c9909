#include "lib/eval/log_probabilities.h"

#include <algorithm>
#include <cmath>

#include "lib/eval/sampling.h"

namespace trainwright {

ChosenLogProbabilities LogProbabilitiesOf(const float* logits, int64_t vocabulary, uint32_t chosen,
                                          int64_t count) {
  const double largest = *std::max_element(logits, logits + vocabulary);
  double sum = 0;
  for (int64_t id = 0; id < vocabulary; ++id) sum += std::exp(logits[id] - largest);
  const double normalizer = largest + std::log(sum);
  ChosenLogProbabilities result{.chosen = logits[chosen] - normalizer, .most = {}};
  for (const uint32_t id : LargestFirst(logits, vocabulary, std::min(count, vocabulary))) {
    result.most.push_back({.id = id, .log_probability = logits[id] - normalizer});
  }
  return result;
}

}  // namespace trainwright
