#include "lib/bench/reported_values.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "lib/formats/json_text.h"

namespace trainwright {
namespace {

bool IsLetter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0;
}
bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

/// The end of what begins at a place of a JSON text: a string, a word, a number, or one other character.
size_t EndOfPart(std::string_view text, size_t begin) {
  size_t end = begin + 1;
  if (text[begin] == '"') {
    while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
    return std::min(end + 1, text.size());
  }
  const size_t letters = begin + (text[begin] == '-' || text[begin] == '+' ? 1 : 0);
  if (letters < text.size() && IsLetter(text[letters])) {
    end = letters;
    while (end < text.size() && IsLetter(text[end])) ++end;
  } else if (letters < text.size() && IsDigit(text[letters])) {
    end = std::min(text.find_first_not_of("+-.0123456789eE", begin), text.size());
  }
  return end;
}

bool IsNotFinite(std::string part) {
  if (part[0] != '-' && part[0] != '+' && !IsLetter(part[0]) && !IsDigit(part[0])) return false;
  // These words are all that strtod takes and JSON does not.
  char* end = nullptr;
  const double value = std::strtod(part.c_str(), &end);
  return *end == '\0' && end != part.c_str() && !std::isfinite(value);
}

/// The text with null for every number that is not finite.
std::string WithNulls(std::string_view text) {
  std::string out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = EndOfPart(text, begin);
    const std::string part(text.substr(begin, end - begin));
    out += IsNotFinite(part) ? "null" : part;
    begin = end;
  }
  return out;
}

}  // namespace

std::vector<double> ReportedValues(const std::string& text, const std::string& field) {
  std::vector<double> values;
  const auto take = [&](const nlohmann::json& record) {
    if (!record.is_object()) return;
    const auto found = record.find(field);
    if (found == record.end()) return;
    if (found->is_number()) values.push_back(found->get<double>());
    if (found->is_null()) values.push_back(std::numeric_limits<double>::quiet_NaN());
  };
  const nlohmann::json whole = JsonOf(WithNulls(text));
  if (!whole.is_discarded()) {
    take(whole);
    return values;
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) take(JsonOf(WithNulls(line)));
  return values;
}

}  // namespace trainwright
