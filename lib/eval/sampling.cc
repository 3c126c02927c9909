#include "lib/eval/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lib/base/error.h"

namespace trainwright {
namespace {

/// The largest logit's id. A NaN anywhere is refused: it compares as neither larger nor smaller.
uint32_t MostProbable(const float* logits, int64_t vocabulary) {
  int64_t best = 0;
  bool has_nan = false;
  for (int64_t i = 0; i < vocabulary; ++i) {
    has_nan |= std::isnan(logits[i]);
    if (logits[i] > logits[best]) best = i;
  }
  if (has_nan || !std::isfinite(logits[best])) {
    throw Error(ErrorCode::kNonFinite, "logits", "are not finite", "", "try --mixed-precision no");
  }
  return static_cast<uint32_t>(best);
}

/// The `count` most probable ids, most probable first.
std::vector<uint32_t> LargestFirst(const float* logits, int64_t vocabulary, int64_t count) {
  std::vector<uint32_t> ids(static_cast<size_t>(vocabulary));
  std::iota(ids.begin(), ids.end(), 0u);
  const auto before = [&](uint32_t a, uint32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  const auto end = ids.begin() + count;
  if (count < vocabulary) std::nth_element(ids.begin(), end, ids.end(), before);
  std::sort(ids.begin(), end, before);
  ids.resize(static_cast<size_t>(count));
  return ids;
}

/// How many of the first `ids` it takes for their weights to sum up to `share`; all, and fewer than asked,
/// when they do not. \param sum gets their sum
template <typename WeightOf>
size_t CountReaching(double share, const std::vector<uint32_t>& ids, const WeightOf& weight_of, double* sum) {
  size_t count = 0;
  *sum = 0;
  while (count < ids.size() && *sum < share) *sum += weight_of(ids[count++]);
  return count;
}

}  // namespace

void CheckSampling(const SamplingOptions& options) {
  const auto require = [](bool holds, const char* flag, const char* problem) {
    if (!holds) throw Error(ErrorCode::kUsage, flag, problem);
  };
  require(options.temperature >= 0 && std::isfinite(options.temperature), "--temperature",
          "must be 0 (the most probable token) or more");
  require(options.top_k >= 0, "--top-k", "must be 0 (all tokens) or more");
  require(options.top_p > 0 && options.top_p <= 1, "--top-p", "must be more than 0 and at most 1");
}

uint32_t ChooseToken(const float* logits, int64_t vocabulary, const SamplingOptions& options,
                     double uniform) {
  const uint32_t best = MostProbable(logits, vocabulary);
  if (options.temperature == 0 || options.top_k == 1) return best;
  const float largest = logits[best], inverse = 1 / static_cast<float>(options.temperature);
  const auto weight_of = [&](size_t id) { return std::exp((logits[id] - largest) * inverse); };
  const auto all = static_cast<size_t>(vocabulary);

  std::vector<uint32_t> ids;
  double sum = 0;
  if (options.top_k > 0 && options.top_k < vocabulary) {
    ids = LargestFirst(logits, vocabulary, options.top_k);
    double total = 0;
    for (const uint32_t id : ids) total += weight_of(id);
    ids.resize(CountReaching(options.top_p * total, ids, weight_of, &sum));
  } else {
    std::vector<float> weights(all);
    for (size_t id = 0; id < all; ++id) weights[id] = weight_of(id);
    double total = 0;
    for (const float weight : weights) total += weight;
    if (options.top_p == 1) {
      for (size_t id = 0; id < all; ++id) {
        sum += weights[id];
        if (sum > uniform * total) return static_cast<uint32_t>(id);
      }
      return best;
    }
    // The set is mostly small: ever more of the most probable are sorted until they hold it.
    for (int64_t sorted = std::min<int64_t>(vocabulary, 256);; sorted = std::min(vocabulary, sorted * 8)) {
      ids = LargestFirst(logits, vocabulary, sorted);
      ids.resize(CountReaching(options.top_p * total, ids, [&](uint32_t id) { return weights[id]; }, &sum));
      if (sum >= options.top_p * total || sorted == vocabulary) break;
    }
  }
  double reached = 0;
  for (const uint32_t id : ids) {
    reached += weight_of(id);
    if (reached > uniform * sum) return id;
  }
  return ids.back();
}

}  // namespace trainwright
