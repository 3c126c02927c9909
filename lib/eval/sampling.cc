#include "lib/eval/sampling.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "lib/base/error.h"
#include "lib/nn/cpu/kernels.h"

namespace trainwright {
namespace {

/// The largest logit's id. A NaN anywhere is refused: it compares as neither larger nor smaller.
uint32_t MostProbable(const float* logits, int64_t vocabulary) {
  bool has_nan = false;
  const float largest = cpu::BestKernels().largest(logits, 0, vocabulary, &has_nan);
  if (has_nan || !std::isfinite(largest)) {
    throw Error(ErrorCode::kNonFinite, "logits", "are not finite", "", "try --mixed-precision no");
  }
  return static_cast<uint32_t>(std::find(logits, logits + vocabulary, largest) - logits);
}

/// The weights of all ids, with what it takes to find one without sorting them, nor adding them all again.
class Weights {
 public:
  Weights(const float* logits, int64_t vocabulary, float largest, float factor)
      : weights_(static_cast<size_t>(vocabulary)) {
    for (int64_t begin = 0; begin < vocabulary; begin += kBlock) {
      const double sum = cpu::BestKernels().exp_weights(logits, largest, factor, weights_.data(), begin,
                                                        std::min(vocabulary, begin + kBlock));
      if (sum > 0) last_block_ = block_sums_.size();
      block_sums_.push_back(sum);
      total_ += sum;
    }
  }

  /// The first id at which the sum of the weights exceeds `share` of all.
  uint32_t Find(double share) const {
    double missing = share * total_;
    size_t block = 0;
    while (block < last_block_ && block_sums_[block] <= missing) missing -= block_sums_[block++];
    const size_t begin = block * kBlock;
    return Take(begin, std::min(weights_.size(), begin + kBlock), missing, [](uint32_t) { return true; });
  }

  /// The same among the ids of at least this weight.
  uint32_t FindAmongAtLeast(double min_weight, double share) const {
    double sum = 0;
    for (const float weight : weights_) sum += weight >= min_weight ? weight : 0;
    return Take(0, weights_.size(), share * sum, [&](uint32_t id) { return weights_[id] >= min_weight; });
  }

  /// The same among the most probable ids that together reach `top_p` of all, without those of less than this
  /// weight; of ids with one weight the lower are taken first.
  uint32_t FindAmongMostProbable(double top_p, double min_weight, double share) const {
    // A weight's bucket is the upper half of its bits, which order as the weights do.
    const auto bucket_of = [this](size_t id) { return std::bit_cast<uint32_t>(weights_[id]) >> 16; };
    std::vector<double> sums(kBucketOfOne + 1);
    for (size_t id = 0; id < weights_.size(); ++id) sums[bucket_of(id)] += weights_[id];
    uint32_t bucket = kBucketOfOne, lowest = 0;
    while (sums[lowest] == 0) ++lowest;
    double sum = 0;  // of the set
    while (bucket > lowest && sum + sums[bucket] < top_p * total_) sum += sums[bucket--];
    std::vector<uint32_t> ids;
    for (size_t id = 0; id < weights_.size(); ++id) {
      if (bucket_of(id) == bucket) ids.push_back(static_cast<uint32_t>(id));
    }
    const auto before = [this](uint32_t a, uint32_t b) {
      return weights_[a] != weights_[b] ? weights_[a] > weights_[b] : a < b;
    };
    std::sort(ids.begin(), ids.end(), before);
    size_t taken = 0;
    do sum += weights_[ids[taken++]];
    while (taken < ids.size() && sum < top_p * total_);
    const uint32_t last = ids[taken - 1];
    if (weights_[last] < min_weight) return FindAmongAtLeast(min_weight, share);
    return Take(0, weights_.size(), share * sum, [&](uint32_t id) { return !before(last, id); });
  }

 private:
  static constexpr int64_t kBlock = 1024;
  static constexpr uint32_t kBucketOfOne = std::bit_cast<uint32_t>(1.0f) >> 16;

  /// The first of the ids from `begin` on that are in the set at which their sum exceeds `missing`; the last
  /// of them where the sum falls short, which it can by rounding.
  template <typename IsInSet>
  uint32_t Take(size_t begin, size_t end, double missing, const IsInSet& is_in_set) const {
    uint32_t last = 0;
    for (size_t i = begin; i < end && missing >= 0; ++i) {
      const auto id = static_cast<uint32_t>(i);
      if (weights_[i] == 0 || !is_in_set(id)) continue;
      last = id;
      missing -= weights_[i];
    }
    return last;
  }

  std::vector<float> weights_;  // the largest is 1
  std::vector<double> block_sums_;
  size_t last_block_ = 0;  // with a weight that is not 0
  double total_ = 0;
};

/// How many of the first `ids` it takes for their weights to sum up to `share`; all, and fewer than asked,
/// when they do not.
/// \param sum gets their sum
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
  require(options.min_p >= 0 && options.min_p <= 1, "--min-p", "must be from 0 (all tokens) to 1");
  // Logits are divided or multiplied by it as floats, and must stay finite.
  require(options.repetition_penalty >= 1e-30 && options.repetition_penalty <= 1e30, "--repetition-penalty",
          "must be from 1e-30 to 1e30; 1 is none");
}

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

uint32_t ChooseToken(const float* logits, int64_t vocabulary, const SamplingOptions& options,
                     double uniform) {
  const uint32_t best = MostProbable(logits, vocabulary);
  if (options.temperature == 0 || options.top_k == 1) return best;
  const float largest = logits[best], inverse = std::min(1 / static_cast<float>(options.temperature),
                                                         std::numeric_limits<float>::max());
  if (options.top_k > 0 && options.top_k < vocabulary) {
    const auto weight_of = [&](uint32_t id) { return std::exp((logits[id] - largest) * inverse); };
    std::vector<uint32_t> ids = LargestFirst(logits, vocabulary, options.top_k);
    double total = 0, sum = 0;
    for (const uint32_t id : ids) total += weight_of(id);
    ids.resize(CountReaching(options.top_p * total, ids, weight_of, &sum));
    for (; ids.size() > 1 && weight_of(ids.back()) < options.min_p; ids.pop_back())
      sum -= weight_of(ids.back());
    double reached = 0;
    for (const uint32_t id : ids) {
      reached += weight_of(id);
      if (reached > uniform * sum) return id;
    }
    return ids.back();
  }
  const Weights weights(logits, vocabulary, largest, inverse);
  if (options.top_p < 1) return weights.FindAmongMostProbable(options.top_p, options.min_p, uniform);
  return options.min_p > 0 ? weights.FindAmongAtLeast(options.min_p, uniform) : weights.Find(uniform);
}

}  // namespace trainwright
