/// Intervals by resampling what was measured.
///
/// Pure functions of their arguments; the same values and seed give the same intervals everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lib/base/rng.h"

namespace trainwright {

struct Interval {
  double low = 0, high = 0;
  bool contains(double value) const { return low <= value && value <= high; }
};

/// Samples of `count` numbers out of [0, count), with replacement, in blocks of neighbours that go round.
/// \source Politis and Romano 1992, "A circular block-resampling procedure for stationary data"
class BootstrapSamples {
 public:
  /// \param count at least 1
  /// \param block_length at least 1; 1: each number is drawn by itself
  BootstrapSamples(size_t count, size_t block_length, uint64_t seed);
  /// The next sample; valid until the next call.
  std::span<const size_t> Next();

 private:
  Rng rng_;
  size_t block_length_;
  uint64_t counter_ = 0;
  std::vector<size_t> indices_;
};

/// Between which the middle 95 % of the values lie (percentiles).
/// \pre not empty
Interval MiddleInterval(std::vector<double> values);

/// The 95 % interval of a statistic of `count` independent observations. O(draws) calls.
/// \param count at least 1
/// \param draws at least 1
/// \param statistic of the observations with these numbers, of which some come several times; draws where it
///     is not a number are left out
/// \returns two NaN where it never is a number
Interval BootstrapInterval(size_t count, int draws, uint64_t seed,
                           const std::function<double(std::span<const size_t>)>& statistic);

}  // namespace trainwright
