/// Whether the other files of a folder in Hugging Face's layout name tokens that its tokenizer.json lacks, or
/// has otherwise. transformers adds those, and goes by the other files.
#pragma once

#include <string>

#include "lib/tok/tokenizer_json.h"

namespace trainwright {

/// Compares a folder's tokenizer.json with bos_token, eos_token and the added tokens of tokenizer_config.json
/// and special_tokens_map.json, and of added_tokens.json where there is no "added_tokens_decoder". As
/// transformers 5 writes them, tokenizer.json alone has the added tokens. A token that only pads is in no
/// text, and may be lacking. Warns of tokens that transformers finds in texts otherwise than by `parsed`.
/// \param parsed the folder's tokenizer.json
/// \throws Error{kBadInput} that names the tokens which it lacks; Error{kIo}
void CheckTokensOfFolder(const std::string& folder, const TokenizerJson& parsed);

}  // namespace trainwright
