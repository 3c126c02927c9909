/// Quantities for people: "1.5 GiB", "12.3 k", "2 m 05 s", and sizes as flags take them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trainwright {

/// 1536 -> "1.50 KiB".
std::string FormatBytes(uint64_t size_bytes);
/// 1234567 -> "1.23 M"; below 10,000 the plain number.
std::string FormatCount(double count);
/// Every digit: 1234567 -> "1,234,567".
std::string FormatGrouped(uint64_t count);
/// 1, "chunk" -> "1 chunk"; 1234, "chunk" -> "1,234 chunks".
std::string FormatNumberOf(uint64_t count, const std::string& noun);
/// 3725.0 -> "1 h 02 m", 65.2 -> "1 m 05 s", 1.234 -> "1.23 s".
std::string FormatDuration(double seconds);
/// printf-style fixed digits, in the C locale: FormatFixed(1.2345, 2) -> "1.23".
std::string FormatFixed(double value, int digits);

/// "4096", "64KiB", "1.5 GiB", "10MB" -> bytes.
/// \throws Error{kUsage} naming `flag`
uint64_t ParseBytes(std::string_view text, const std::string& flag);

}  // namespace trainwright
