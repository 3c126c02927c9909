#include "lib/report/axis_ticks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "lib/base/units.h"

namespace trainwright {
namespace {

constexpr double kRounding = 1e-9;  // relative; ticks are sums of steps that binary fractions cannot hold

/// Digits behind the point that tell `value` from its neighbours `step` away.
int DigitsFor(double step) {
  return std::clamp(static_cast<int>(std::ceil(-std::log10(step) - kRounding)), 0, 12);
}

/// Drops zeros that say nothing: "2.50" -> "2.5", "3.0" -> "3".
std::string WithoutTrailingZeros(std::string number) {
  if (number.find('.') == std::string::npos) return number;
  number.erase(number.find_last_not_of('0') + 1);
  if (number.back() == '.') number.pop_back();
  return number;
}

/// "1500" -> "1,500".
std::string WithSeparators(std::string number) {
  const size_t begin = number.starts_with('-') ? 1 : 0;
  const size_t point = std::min(number.find('.'), number.size());
  for (size_t at = point; at > begin + 3; at -= 3) number.insert(at - 3, ",");
  return number;
}

/// Labels in k, M, G, T for large numbers, and times a power of 1000 for small ones.
void Label(double step, AxisTicks* ticks) {
  static constexpr std::array<const char*, 5> kSuffixes = {"", "k", "M", "G", "T"};
  double largest = 0;
  for (const double value : ticks->values) largest = std::max(largest, std::abs(value));
  size_t suffix = 0;
  double scale = 1;
  while (largest / scale >= 10000 * (1 - kRounding) && suffix + 1 < kSuffixes.size()) scale *= 1000, ++suffix;
  while (largest > 0 && largest / scale < 0.01 && ticks->exponent > -12) scale /= 1000, ticks->exponent -= 3;
  const int digits = DigitsFor(step / scale);
  for (const double value : ticks->values) {
    const std::string number = FormatFixed(value / scale, digits);
    ticks->labels.push_back(value == 0 ? "0" : WithSeparators(number) + kSuffixes[suffix]);
  }
}

}  // namespace

AxisTicks LinearTicks(double low, double high, int max_ticks, bool whole) {
  AxisTicks ticks;
  double step = std::pow(10.0, std::floor(std::log10((high - low) / max_ticks)));
  if (whole) step = std::max(step, 1.0);
  const auto count = [&](double candidate) {
    return std::floor(high / candidate + kRounding) - std::ceil(low / candidate - kRounding) + 1;
  };
  for (const double factor : {1.0, 2.0, 5.0, 10.0, 20.0, 50.0}) {
    if (count(step * factor) <= max_ticks) {
      step *= factor;
      break;
    }
  }
  const auto first = static_cast<int64_t>(std::ceil(low / step - kRounding));
  const auto last = static_cast<int64_t>(std::floor(high / step + kRounding));
  for (int64_t i = first; i <= last; ++i) {
    ticks.values.push_back(std::clamp(static_cast<double>(i) * step, low, high));
  }
  Label(step, &ticks);
  return ticks;
}

AxisTicks LogTicks(double low, double high, int max_ticks) {
  AxisTicks ticks;
  const double decades = std::log10(high / low);
  const bool between = 3 * decades < max_ticks;
  const int stride = between ? 1 : std::max(1, static_cast<int>(std::ceil((decades + 1) / max_ticks)));
  const int first = static_cast<int>(std::floor(std::log10(low)));
  const int last = static_cast<int>(std::floor(std::log10(high))) + 1;
  for (int power = first; power <= last; ++power) {
    if (power % stride != 0) continue;
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor > 1 && !between) break;
      const double value = factor * std::pow(10.0, power);
      if (value < low * (1 - kRounding) || value > high * (1 + kRounding)) continue;
      ticks.values.push_back(std::clamp(value, low, high));
      const std::string label = std::abs(power) > 3
                                    ? FormatFixed(factor, 0) + "e" + std::to_string(power)
                                    : WithSeparators(WithoutTrailingZeros(FormatFixed(value, 4)));
      ticks.labels.push_back(label);
    }
  }
  return ticks;
}

}  // namespace trainwright
