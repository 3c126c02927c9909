#include "lib/base/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "lib/base/error.h"

namespace trainwright {

BootstrapSamples::BootstrapSamples(size_t count, size_t block_length, uint64_t seed)
    : rng_(seed, "bootstrap"), block_length_(block_length), indices_(count) {
  TRAINWRIGHT_CHECK(count >= 1 && block_length >= 1);
}

std::span<const size_t> BootstrapSamples::Next() {
  const size_t count = indices_.size();
  for (size_t filled = 0; filled < count;) {
    const size_t begin = rng_.Bits(counter_++) % count;
    for (size_t k = 0; k < block_length_ && filled < count; ++k) indices_[filled++] = (begin + k) % count;
  }
  return indices_;
}

Interval MiddleInterval(std::vector<double> values) {
  TRAINWRIGHT_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const auto percentile = [&](double share) {
    return values[static_cast<size_t>(std::lround(share * static_cast<double>(values.size() - 1)))];
  };
  return {percentile(0.025), percentile(0.975)};
}

Interval BootstrapInterval(size_t count, int draws, uint64_t seed,
                           const std::function<double(std::span<const size_t>)>& statistic) {
  TRAINWRIGHT_CHECK(draws >= 1);
  BootstrapSamples samples(count, 1, seed);
  std::vector<double> values;
  values.reserve(static_cast<size_t>(draws));
  for (int draw = 0; draw < draws; ++draw) {
    const double value = statistic(samples.Next());
    if (!std::isnan(value)) values.push_back(value);
  }
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  return values.empty() ? Interval{kNone, kNone} : MiddleInterval(std::move(values));
}

}  // namespace trainwright
