/// Lists of numbers as flags take them: "1,10,100".
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

namespace trainwright {

/// \returns the numbers between the commas; nullopt where one is missing, is no number of this type, or is
///     beyond its range
template <typename Number>
std::optional<std::vector<Number>> ParseNumberList(std::string_view text) {
  std::vector<Number> numbers;
  const char* next = text.data();
  const char* const end = next + text.size();
  while (true) {
    Number number = 0;
    const auto [behind, status] = std::from_chars(next, end, number);
    if (status != std::errc() || (behind != end && *behind != ',')) return std::nullopt;
    numbers.push_back(number);
    if (behind == end) return numbers;
    next = behind + 1;
  }
}

}  // namespace trainwright
