/// The words that files, variables and command lines have for a flag.
#pragma once

#include <optional>
#include <string_view>

#include "lib/base/truth_word.h"

namespace trainwright {

/// nullopt: another word.
inline std::optional<bool> FlagWord(std::string_view word) {
  if (word == "1") return true;
  if (word == "0") return false;
  return TruthWord(word);
}

}  // namespace trainwright
