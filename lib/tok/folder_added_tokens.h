/// The tokens that a folder in Hugging Face's layout adds to the vocabulary of its tokenizer: the marks of
/// chats and the like, which a SentencePiece model does not know.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace trainwright {

/// How tokens are written, by id.
using AddedTokens = std::map<uint32_t, std::string>;

/// Those that a tokenizer.json file adds; none of what is no such file.
AddedTokens AddedTokensOfJson(std::string_view tokenizer_json);

/// Those of a folder's added_tokens.json and tokenizer_config.json, or of its tokenizer.json where
/// transformers 5 wrote them, that its tokenizer.model lacks, or has another piece for, or a normal one: in
/// texts it does not find them. Without the one that only pads, which no text has; none where tokenizer.model
/// is no such file.
/// \throws Error{kIo}
AddedTokens TokensLackingInModel(const std::string& folder);

/// For messages: "<|im_end|> (32000), <|im_start|> (32001)".
std::string DescribeAddedTokens(const AddedTokens& tokens);

}  // namespace trainwright
