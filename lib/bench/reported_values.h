/// The values of a field that a program reports as JSON: one object, or one a line among other lines.
#pragma once

#include <string>
#include <vector>

namespace trainwright {

/// In the order of the text. NaN where a value is no finite number: null, a number beyond a double, or one of
/// the words that programs write where JSON has none (NaN, nan, -inf, Infinity). Texts, lists and the like
/// are no values.
std::vector<double> ReportedValues(const std::string& text, const std::string& field);

}  // namespace trainwright
