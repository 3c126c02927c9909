/// The test vectors of man/trainwright-sample-order.5.
#pragma once

#include <gtest/gtest.h>

#include <charconv>
#include <cstdint>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace trainwright::test {

/// The lines "<name> <arguments> = <value>" of the page's TEST VECTORS.
inline std::vector<std::pair<std::vector<std::string>, std::string>> VectorsOf(const std::string& name) {
  std::istringstream page(ReadFile(std::string(TRAINWRIGHT_SOURCE_DIR) + "/man/trainwright-sample-order.5"));
  std::vector<std::pair<std::vector<std::string>, std::string>> vectors;
  for (std::string line; std::getline(page, line);) {
    const size_t equals = line.find(" = ");
    if (!line.starts_with(name + " ") || equals == std::string::npos) continue;
    std::istringstream words(line.substr(name.size(), equals - name.size()));
    std::vector<std::string> arguments;
    for (std::string word; words >> word;) arguments.push_back(word);
    vectors.emplace_back(arguments, line.substr(equals + 3));
  }
  EXPECT_FALSE(vectors.empty()) << "no vectors of " << name;
  return vectors;
}

/// A number as the page writes it.
inline uint64_t NumberOf(const std::string& text, int base = 10) {
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number, base);
  return number;
}

/// Sixteen hexadecimal digits.
inline std::string Hex(uint64_t value) {
  std::ostringstream text;
  text << std::hex;
  text.width(16);
  text.fill('0');
  text << value;
  return text.str();
}

/// With spaces between.
template <typename Numbers>
std::string Joined(const Numbers& numbers) {
  std::string text;
  for (const auto& number : numbers) text += (text.empty() ? "" : " ") + std::to_string(number);
  return text;
}

}  // namespace trainwright::test
