#include "lib/bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "lib/base/error.h"

namespace trainwright {
namespace {

constexpr double kMostAutocorrelation = 0.9;
constexpr double kOutlierDeviations = 3.5;
constexpr double kMadToDeviation = 1.4826;
constexpr double kOutside = 0.05;  ///< of an interval, to either side together

/// The median of scratch space, which is left partly sorted.
double MedianInPlace(std::vector<double>* values) {
  const size_t middle = values->size() / 2;
  const auto at = values->begin() + static_cast<ptrdiff_t>(middle);
  std::nth_element(values->begin(), at, values->end());
  if (values->size() % 2 == 1) return *at;
  return (*std::max_element(values->begin(), at) + *at) / 2;
}

struct MeanEstimate {
  double mean = 0, error = 0;  ///< with its standard error
};

/// \param around a number in the range of the values: equal ones have no spread, however sums are rounded
MeanEstimate EstimateMean(std::span<const double> values, double around) {
  const auto count = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) sum += value - around;
  const double offset = sum / count;
  for (const double value : values) squares += std::pow(value - around - offset, 2);
  return {around + offset, std::sqrt(squares / (count - 1) / count)};
}

/// Two-sided, of the mean being 0.
double StudentPValue(const MeanEstimate& estimate, size_t degrees) {
  if (estimate.error == 0) return estimate.mean == 0 ? 1 : 0;
  return StudentTails(estimate.mean / estimate.error, degrees);
}

}  // namespace

double Median(std::vector<double> values) {
  TRAINWRIGHT_CHECK(!values.empty());
  return MedianInPlace(&values);
}

double LagOneAutocorrelation(std::span<const double> values) {
  if (values.size() < 3) return 0;
  const double middle = Median({values.begin(), values.end()});
  double products = 0, squares = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    squares += (values[i] - middle) * (values[i] - middle);
    if (i > 0) products += (values[i] - middle) * (values[i - 1] - middle);
  }
  return squares > 0 ? products / squares : 0;
}

size_t BootstrapBlockLength(std::span<const double> values) {
  const double rho = std::clamp(LagOneAutocorrelation(values), 0.0, kMostAutocorrelation);
  const double alpha = 4 * rho * rho / std::pow(1 - rho * rho, 2);
  const double length = std::ceil(std::cbrt(alpha * static_cast<double>(values.size())));
  return std::clamp<size_t>(static_cast<size_t>(length), 1, std::max<size_t>(1, values.size() / 3));
}

double StudentTails(double t, size_t degrees) {
  TRAINWRIGHT_CHECK(degrees >= 1);
  const double angle = std::atan(std::abs(t) / std::sqrt(static_cast<double>(degrees)));
  const double cosine = std::cos(angle), sine = std::sin(angle);
  const bool odd = degrees % 2 == 1;
  double sum = 0, term = odd ? cosine : 1;
  for (size_t power = odd ? 1 : 0; power + 1 < degrees; power += 2) {
    sum += term;
    term *= cosine * cosine * static_cast<double>(power + 1) / static_cast<double>(power + 2);
  }
  const double within = odd ? 2 / std::numbers::pi * (angle + sine * sum) : sine * sum;
  return std::clamp(1 - within, 0.0, 1.0);
}

double StudentBound(double tails, size_t degrees) {
  TRAINWRIGHT_CHECK(tails > 0 && tails < 1);
  double low = 0, high = 1;
  while (StudentTails(high, degrees) > tails) high *= 2;
  // Until no number lies between.
  for (double middle = high / 2; low < middle && middle < high; middle = (low + high) / 2) {
    (StudentTails(middle, degrees) > tails ? low : high) = middle;
  }
  return high;
}

MedianEstimate EstimateMedian(std::span<const double> values, uint64_t seed, int draws) {
  const size_t count = values.size();
  TRAINWRIGHT_CHECK(count >= 2 && draws >= 100);
  MedianEstimate estimate;
  estimate.median = Median({values.begin(), values.end()});
  estimate.autocorrelation = LagOneAutocorrelation(values);
  const MeanEstimate mean = EstimateMean(values, estimate.median);
  const double student_p_value = StudentPValue(mean, count - 1);
  if (count < kFewestBootstrapped) {
    const double reach = StudentBound(kOutside, count - 1) * mean.error;
    estimate.interval = {mean.mean - reach, mean.mean + reach};
    estimate.p_value = student_p_value;
    return estimate;
  }
  estimate.block_length = BootstrapBlockLength(values);
  BootstrapSamples samples(count, estimate.block_length, seed);
  std::vector<double> medians(static_cast<size_t>(draws)), sample(count);
  int not_above = 0, not_below = 0;
  for (double& median : medians) {
    const std::span<const size_t> drawn = samples.Next();
    std::transform(drawn.begin(), drawn.end(), sample.begin(), [&](size_t i) { return values[i]; });
    median = MedianInPlace(&sample);
    not_above += median <= 0 ? 1 : 0;
    not_below += median >= 0 ? 1 : 0;
  }
  estimate.interval = MiddleInterval(std::move(medians));
  // Counting the sample itself among the draws keeps the p-value above 0.
  const double drawn_p_value = std::min(1.0, 2.0 * (1 + std::min(not_above, not_below)) / (draws + 1.0));
  const double sign_flip_least = std::ldexp(2.0, -static_cast<int>(count));
  estimate.p_value = std::max(drawn_p_value, std::min(sign_flip_least, student_p_value));
  return estimate;
}

std::vector<double> HolmAdjusted(std::span<const double> p_values) {
  std::vector<size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p_values[a] < p_values[b]; });
  std::vector<double> adjusted(p_values.size());
  double largest = 0;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    largest = std::max(largest, p_values[order[rank]] * static_cast<double>(order.size() - rank));
    adjusted[order[rank]] = std::min(1.0, largest);
  }
  return adjusted;
}

std::vector<size_t> OutlierIndices(std::span<const double> values) {
  std::vector<size_t> outliers;
  if (values.size() < 3) return outliers;
  const double middle = Median({values.begin(), values.end()});
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - middle));
  const double limit = kOutlierDeviations * kMadToDeviation * Median(distances);
  for (size_t i = 0; i < values.size(); ++i) {
    if (limit > 0 && distances[i] > limit) outliers.push_back(i);
  }
  return outliers;
}

}  // namespace trainwright
