/// The words that YAML has for true and false.
#pragma once

#include <optional>
#include <string_view>

namespace trainwright {

/// true, yes and on, and their contraries, in small letters, with the first one large, or all large.
/// \returns nullopt on another word
std::optional<bool> TruthWord(std::string_view word);

}  // namespace trainwright
