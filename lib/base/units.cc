#include "lib/base/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

#include "lib/base/error.h"

namespace trainwright {

std::string FormatFixed(double value, int digits) {
  std::array<char, 400> buffer;
  const auto result =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, digits);
  return {buffer.data(), result.ptr};
}

std::string FormatBytes(uint64_t size_bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(size_bytes);
  int unit = 0;
  while (value >= 1024.0 && unit < 5) value /= 1024.0, ++unit;
  return unit == 0 ? std::to_string(size_bytes) + " B" : FormatFixed(value, 2) + " " + kUnits[unit];
}

std::string FormatCount(double count) {
  static constexpr const char* kUnits[] = {"", " k", " M", " G", " T"};
  if (std::abs(count) < 10000.0) return FormatFixed(count, count == std::floor(count) ? 0 : 1);
  int unit = 0;
  while (std::abs(count) >= 1000.0 && unit < 4) count /= 1000.0, ++unit;
  return FormatFixed(count, std::abs(count) < 10 ? 2 : 1) + kUnits[unit];
}

std::string FormatGrouped(uint64_t count) {
  std::string digits = std::to_string(count);
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string FormatNumberOf(uint64_t count, const std::string& noun) {
  return FormatGrouped(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string FormatDuration(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  if (seconds < 60.0) return FormatFixed(seconds, seconds < 10.0 ? 2 : 1) + " s";
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  const auto two_digits = [](int64_t value) { return (value < 10 ? "0" : "") + std::to_string(value); };
  if (whole < 3600) return std::to_string(whole / 60) + " m " + two_digits(whole % 60) + " s";
  return std::to_string(whole / 3600) + " h " + two_digits(whole / 60 % 60) + " m";
}

uint64_t ParseBytes(std::string_view text, const std::string& flag) {
  static constexpr std::pair<std::string_view, double> kUnits[] = {{"", 1},
                                                                   {"B", 1},
                                                                   {"KB", 1e3},
                                                                   {"MB", 1e6},
                                                                   {"GB", 1e9},
                                                                   {"TB", 1e12},
                                                                   {"K", 1024.0},
                                                                   {"M", 1048576.0},
                                                                   {"G", 1073741824.0},
                                                                   {"T", 1099511627776.0},
                                                                   {"KiB", 1024.0},
                                                                   {"MiB", 1048576.0},
                                                                   {"GiB", 1073741824.0},
                                                                   {"TiB", 1099511627776.0}};
  double number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit(end, text.data() + text.size() - end);
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  if (status == std::errc() && number >= 0 && std::isfinite(number)) {
    for (const auto& [name, factor] : kUnits) {
      if (unit == name && number * factor < 9.2e18) return static_cast<uint64_t>(number * factor);
    }
  }
  throw Error(ErrorCode::kUsage, flag, "'" + std::string(text) + "' is not a size", "",
              "write a number with an optional unit: 4096, 64KiB, 256MiB, 1.5GB");
}

}  // namespace trainwright
