#include "lib/base/truth_word.h"

#include <algorithm>
#include <string>

namespace trainwright {
namespace {

bool IsSmall(char c) {
  return c >= 'a' && c <= 'z';
}

bool IsLarge(char c) {
  return c >= 'A' && c <= 'Z';
}

}  // namespace

std::optional<bool> TruthWord(std::string_view word) {
  const std::string_view rest = word.substr(std::min<size_t>(word.size(), 1));
  if (std::any_of(rest.begin(), rest.end(), IsLarge) && std::any_of(word.begin(), word.end(), IsSmall))
    return std::nullopt;
  std::string small(word);
  std::transform(small.begin(), small.end(), small.begin(),
                 [](char c) { return IsLarge(c) ? static_cast<char>(c - 'A' + 'a') : c; });
  if (small == "true" || small == "yes" || small == "on") return true;
  if (small == "false" || small == "no" || small == "off") return false;
  return std::nullopt;
}

}  // namespace trainwright
