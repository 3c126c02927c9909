/// The JSON files of a folder in Hugging Face's layout. What is broken in them says nothing.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace trainwright {

inline constexpr char kTokenizerJsonFile[] = "tokenizer.json";
inline constexpr char kTokenizerConfigFile[] = "tokenizer_config.json";
inline constexpr char kSpecialTokensMapFile[] = "special_tokens_map.json";

/// What a tokenizer.json file says, without its member "model", which is most of it and seldom wanted; an
/// empty object where it is no object.
nlohmann::json ObjectOfTokenizerJson(std::string_view content);

/// A file of the folder, tokenizer.json likewise; an empty object where there is none, or it is no object.
/// \throws Error{kIo}, Error{kBadInput} above 1 GiB
nlohmann::json ObjectOfFolder(const std::string& folder, const std::string& name);

/// What names a folder's special tokens to transformers: tokenizer_config.json, and special_tokens_map.json,
/// whose members take precedence where it has no "added_tokens_decoder".
/// \param config the former
/// \throws Error{kIo}, Error{kBadInput} above 1 GiB
nlohmann::json WithSpecialTokensMap(const std::string& folder, nlohmann::json config);

/// For hints: how transformers writes a folder a tokenizer.json that has all tokens of the folder.
std::string HowToWriteTokenizerJson(const std::string& folder);

/// How a token is written: a string, or an object that has it as its content. Empty: it is no token.
std::string TextOfToken(const nlohmann::json& token);

}  // namespace trainwright
