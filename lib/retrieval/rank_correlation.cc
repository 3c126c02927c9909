#include "lib/retrieval/rank_correlation.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

#include "lib/base/error.h"

namespace trainwright {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

/// Times the power of two that brings the largest to about 1, so that no square leaves the range of doubles:
/// a correlation stays what it is.
std::vector<double> Scaled(std::span<const double> values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  std::vector<double> scaled(values.begin(), values.end());
  if (largest == 0 || !std::isfinite(largest)) return scaled;
  const int exponent = std::ilogb(largest);
  for (double& value : scaled) value = std::ldexp(value, -exponent);
  return scaled;
}

double MeanOf(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// From the mean. What rounding leaves of that of large values is the mean of what is left of them.
std::vector<double> Deviations(const std::vector<double>& values) {
  std::vector<double> from_mean = values;
  for (int pass = 0; pass < 2; ++pass) {
    const double mean = MeanOf(from_mean);
    for (double& value : from_mean) value -= mean;
  }
  return from_mean;
}

}  // namespace

double PearsonCorrelation(std::span<const double> x_in, std::span<const double> y_in) {
  TRAINWRIGHT_CHECK(x_in.size() == y_in.size());
  if (x_in.size() < 2) return kUndefined;
  const std::vector<double> x = Scaled(x_in), y = Scaled(y_in);
  // The mean of equal values may differ from them by a rounding, and the ratio of such rests is noise.
  const auto is_constant = [](std::span<const double> values) {
    return std::all_of(values.begin(), values.end(), [&](double value) { return value == values[0]; });
  };
  if (is_constant(x) || is_constant(y)) return kUndefined;
  const std::vector<double> from_x = Deviations(x), from_y = Deviations(y);
  double products = 0, squares_x = 0, squares_y = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    products += from_x[i] * from_y[i];
    squares_x += from_x[i] * from_x[i];
    squares_y += from_y[i] * from_y[i];
  }
  const double correlation = products / std::sqrt(squares_x) / std::sqrt(squares_y);
  if (!std::isfinite(correlation)) return kUndefined;
  return std::clamp(correlation, -1.0, 1.0);
}

std::vector<double> AverageRanks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double shared = static_cast<double>(begin + 1 + end) / 2;  // the mean of begin + 1 to end
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = shared;
    begin = end;
  }
  return ranks;
}

double SpearmanCorrelation(std::span<const double> x, std::span<const double> y) {
  const auto is_finite = [](double value) { return std::isfinite(value); };
  if (!std::all_of(x.begin(), x.end(), is_finite) || !std::all_of(y.begin(), y.end(), is_finite)) {
    return kUndefined;
  }
  return PearsonCorrelation(AverageRanks(x), AverageRanks(y));
}

}  // namespace trainwright
