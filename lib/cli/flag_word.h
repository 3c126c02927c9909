/// The words that files, variables and command lines have for a flag.
#pragma once

#include <optional>
#include <string_view>

namespace trainwright {

/// nullopt: another word.
inline std::optional<bool> FlagWord(std::string_view word) {
  if (word == "true" || word == "1" || word == "yes" || word == "on") return true;
  if (word == "false" || word == "0" || word == "no" || word == "off") return false;
  return std::nullopt;
}

}  // namespace trainwright
