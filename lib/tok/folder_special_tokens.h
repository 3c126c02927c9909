/// Which tokens a folder in Hugging Face's layout says begin, end and pad a text.
#pragma once

#include <optional>
#include <string>

namespace trainwright {

/// How they are written. Empty: there is no such token. Not set: the folder does not say.
struct FolderSpecialTokens {
  std::optional<std::string> bos, eos, pad, unk;
};

/// What transformers takes from tokenizer_config.json, where null says that there is none, and from
/// special_tokens_map.json, which takes precedence where it has no "added_tokens_decoder". What neither
/// names is the default of the tokenizer's class; of a class that is unknown here, and without
/// tokenizer_config.json, it is not said.
/// \throws Error{kIo}, Error{kBadInput} when tokenizer_config.json is malformed
FolderSpecialTokens SpecialTokensOfFolder(const std::string& folder);

}  // namespace trainwright
