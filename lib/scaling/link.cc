#include "lib/scaling/link.h"

#include <charconv>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/units.h"

namespace trainwright {
namespace {

/// A number in the C locale and what follows it; NaN where there is no number.
std::pair<double, std::string_view> NumberAndUnit(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [unit, status] = std::from_chars(text.data(), end, number);
  if (status != std::errc()) return {NAN, {}};
  return {number, std::string_view(unit, static_cast<size_t>(end - unit))};
}

double FactorOf(std::string_view unit, std::span<const std::pair<std::string_view, double>> units) {
  for (const auto& [name, factor] : units) {
    if (unit == name) return factor;
  }
  return NAN;
}

}  // namespace

double ParseBandwidth(const std::string& text, const std::string& flag) {
  static constexpr std::pair<std::string_view, double> kBits[] = {
      {"kbit", 1e3}, {"Kbit", 1e3}, {"mbit", 1e6}, {"Mbit", 1e6}, {"gbit", 1e9}, {"Gbit", 1e9}};
  const auto [number, unit] = NumberAndUnit(text);
  const double bits_per_s = number * FactorOf(unit, kBits);
  const double bytes_per_s =
      std::isnan(bits_per_s) ? static_cast<double>(ParseBytes(text, flag)) : bits_per_s / 8;
  if (bytes_per_s > 0 && std::isfinite(bytes_per_s)) return bytes_per_s;
  throw Error(ErrorCode::kUsage, flag, "'" + text + "' is no bandwidth", "",
              "write bytes or bits a second, above 0: 50GB, 100MiB, 400Gbit");
}

double ParseLatency(const std::string& text, const std::string& flag) {
  static constexpr std::pair<std::string_view, double> kTimes[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
  const auto [number, unit] = NumberAndUnit(text);
  const double latency_s = number * FactorOf(unit, kTimes);
  if (latency_s >= 0 && std::isfinite(latency_s)) return latency_s;
  throw Error(ErrorCode::kUsage, flag, "'" + text + "' is no time of a message", "",
              "write a number with its unit: 20us, 0.5ms");
}

}  // namespace trainwright
