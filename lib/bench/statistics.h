/// The statistics of paired measurements: medians with their intervals, and Holm's correction.
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

/// The probability that Student's t lies further from 0 than `t`, to either side. O(degrees).
/// \param degrees of freedom, at least 1
/// \source Abramowitz and Stegun 1964, Handbook of Mathematical Functions, 26.7.3 and 26.7.4
double StudentTails(double t, size_t degrees);

/// The t > 0 outside of which, to either side, that probability lies.
/// \pre between 0 and 1
double StudentBound(double tails, size_t degrees);

struct MedianEstimate {
  double median = 0;
  Interval interval;        ///< 95 %
  double p_value = 1;       ///< two-sided, of the median being 0; 0 for few values that are equal and not 0
  size_t block_length = 1;  ///< of the bootstrap; 1 where there is none
  double autocorrelation = 0;
};

inline constexpr int kBootstrapDraws = 10000;
inline constexpr size_t kFewestBootstrapped = 8;

/// The median with its 95 % interval and p-value. O(draws * n).
///
/// From kFewestBootstrapped values on the interval is that of percentiles by circular block bootstrap, and
/// the p-value twice the share of draws to the other side of 0, but at least the smaller of two others:
/// 2/2^n, the least of an exact sign-flip test, and that of Student's t. So often all values lie on one side
/// by chance. Of fewer values both are of Student's t: from two to five values the bootstrap's interval would
/// reach from the least to the greatest, which cover the median with 50 to 94 %. That t is of the mean does
/// no harm: differences of pairs are symmetric where nothing changed.
/// \pre at least two values
/// \source Politis and Romano 1992, "A circular block-resampling procedure for stationary data"; Student
/// 1908, "The probable error of a mean", Biometrika 6 (1); Fisher 1935, The Design of Experiments, chapter 3
MedianEstimate EstimateMedian(std::span<const double> values, uint64_t seed, int draws = kBootstrapDraws);

/// p-values adjusted so that the chance of one false alarm among all of them stays what it is for one, in the
/// order of the input. \source Holm 1979, Scandinavian Journal of Statistics 6 (2)
std::vector<double> HolmAdjusted(std::span<const double> p_values);

/// Indices of values that lie further from the median than 3.5 robust deviations (1.4826 times the median
/// absolute deviation). \source Iglewicz and Hoaglin 1993, "How to Detect and Handle Outliers"
std::vector<size_t> OutlierIndices(std::span<const double> values);

}  // namespace trainwright
