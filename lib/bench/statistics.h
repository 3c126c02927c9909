/// The statistics of paired measurements: medians with bootstrap intervals, and Holm's correction.
///
/// Pure functions; the same input and seed give the same result everywhere. Inputs are finite.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/base/bootstrap.h"

namespace trainwright {

/// The middle value, or the mean of the two. \pre not empty
double Median(std::vector<double> values);

/// Correlation of neighbours around the median, 0 for fewer than three values or without spread.
double LagOneAutocorrelation(std::span<const double> values);

/// Length of the blocks that a block bootstrap should draw: 1 for independent values, longer the more
/// neighbours resemble each other, at most a third of the values.
/// \source the plug-in rule for AR(1) of Andrews 1991, Econometrica 59 (3), for the Bartlett kernel, which
/// Politis and Romano use for resampled blocks
size_t BootstrapBlockLength(std::span<const double> values);

struct MedianEstimate {
  double median = 0;
  Interval interval;   ///< 95 %
  double p_value = 1;  ///< two-sided, of the median being 0
  size_t block_length = 1;
  double autocorrelation = 0;
};

inline constexpr int kBootstrapDraws = 10000;

/// The median with its 95 % interval (percentiles) by circular block bootstrap. O(draws * n).
/// \pre at least two values
/// \source Politis and Romano 1992, "A circular block-resampling procedure for stationary data"
MedianEstimate EstimateMedian(std::span<const double> values, uint64_t seed, int draws = kBootstrapDraws);

/// p-values adjusted so that the chance of one false alarm among all of them stays what it is for one, in the
/// order of the input. \source Holm 1979, Scandinavian Journal of Statistics 6 (2)
std::vector<double> HolmAdjusted(std::span<const double> p_values);

/// Indices of values that lie further from the median than 3.5 robust deviations (1.4826 times the median
/// absolute deviation). \source Iglewicz and Hoaglin 1993, "How to Detect and Handle Outliers"
std::vector<size_t> OutlierIndices(std::span<const double> values);

}  // namespace trainwright
