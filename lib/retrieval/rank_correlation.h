/// How far two rows of numbers rise and fall together.
///
/// Pure functions of equally many values; those that are not finite make the result NaN.
#pragma once

#include <span>
#include <vector>

namespace trainwright {

/// Pearson's correlation coefficient, in [-1, 1]; NaN for fewer than two values, or where one row is
/// constant.
double PearsonCorrelation(std::span<const double> x, std::span<const double> y);

/// Ranks from 1, equal values sharing the mean of theirs.
std::vector<double> AverageRanks(std::span<const double> values);

/// Spearman's correlation coefficient: Pearson's of the ranks, which is right also where there are ties.
double SpearmanCorrelation(std::span<const double> x, std::span<const double> y);

}  // namespace trainwright
