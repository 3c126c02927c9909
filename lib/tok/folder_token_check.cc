#include "lib/tok/folder_token_check.h"

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/formats/tokenizer_identity.h"
#include "lib/tok/folder_json.h"

namespace trainwright {
namespace {

using nlohmann::json;

/// By how tokens are written: what tokenizer_config.json says of how they are found in texts; null of tokens
/// of which it does not.
using NamedTokens = std::map<std::string, json>;

/// What names added tokens unless tokenizer_config.json lists them.
void AddTokensByText(const std::string& folder, NamedTokens* tokens) {
  const json ids = ObjectOfFolder(folder, "added_tokens.json");
  for (const auto& [text, id] : ids.items()) {
    if (id.is_number_unsigned()) tokens->emplace(text, nullptr);
  }
}

/// \source transformers 4.57 and 5.24, where a tokenizer is made of files
NamedTokens TokensNamedBeside(const std::string& folder) {
  NamedTokens tokens;
  const json config = ObjectOfFolder(folder, kTokenizerConfigFile),
             named = WithSpecialTokensMap(folder, config);
  if (config.value("backend", json()) != "tokenizers") {
    const auto list = config.find("added_tokens_decoder");
    if (list == config.end()) {
      AddTokensByText(folder, &tokens);
    } else {
      for (const json& token : *list) tokens.emplace(TextOfToken(token), token);
    }
  }
  for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
    const json list = named.value(key, json());
    for (const json& token : list) tokens.emplace(TextOfToken(token), nullptr);
  }
  const auto token = [&](const char* key) { return TextOfToken(named.value(key, json())); };
  const std::string bos = token("bos_token"), eos = token("eos_token"), pad = token("pad_token");
  const json map = ObjectOfFolder(folder, kSpecialTokensMapFile);
  for (const std::string& only_pads : {pad, TextOfToken(map.value("pad_token", json()))}) {
    if (only_pads != bos && only_pads != eos) tokens.erase(only_pads);
  }
  for (const std::string& end : {bos, eos}) tokens.emplace(end, nullptr);
  tokens.erase("");
  return tokens;
}

/// \param token as tokenizer_config.json lists it
bool IsFoundOtherwise(const json& token, const AddedToken& added, const TokenizerJson& parsed) {
  const auto flag = [&](const char* name, bool absent) {
    const json value = token.value(name, json());
    return value.is_boolean() ? value.get<bool>() : absent;
  };
  // NFC matters only to a token with a combining mark behind it, which is not worth a warning.
  const bool normalizes =
      parsed.text && (!parsed.text->normalizer.empty() || parsed.text->folds_by_normalizer);
  return flag("lstrip", false) != added.left_strip || flag("rstrip", false) != added.right_strip ||
         flag("single_word", false) != added.single_word ||
         (normalizes && flag("normalized", !flag("special", false)) != added.normalized);
}

/// "<|im_end|>, <|im_start|> and 3 more"
std::string ListOfTokens(const std::set<std::string>& tokens) {
  constexpr size_t kMostListed = 4;
  std::string list;
  size_t listed = 0;
  for (const std::string& token : tokens) {
    if (listed++ == kMostListed) {
      return list + " and " + std::to_string(tokens.size() - kMostListed) + " more";
    }
    list += (list.empty() ? "" : ", ") + token;
  }
  return list;
}

}  // namespace

void CheckTokensOfFolder(const std::string& folder, const TokenizerJson& parsed) {
  std::map<std::string_view, const AddedToken*> added;
  for (const AddedToken& token : parsed.added_tokens) added.emplace(token.content, &token);
  std::set<std::string> lacking, found_otherwise;
  const NamedTokens tokens = TokensNamedBeside(folder);
  for (const auto& [text, token] : tokens) {
    const auto known = added.find(text);
    if (known != added.end()) {
      if (token.is_object() && IsFoundOtherwise(token, *known->second, parsed)) found_otherwise.insert(text);
    } else if (IdOfToken(parsed, text) == kNoId) {
      lacking.insert(text);
    } else if (!token.is_null()) {
      found_otherwise.insert(text);  // a token of the model, which is not looked for in texts
    }
  }
  if (!lacking.empty()) {
    throw Error(ErrorCode::kBadInput, folder,
                "its tokenizer.json lacks tokens that other files there name: " + ListOfTokens(lacking), "",
                HowToWriteTokenizerJson(folder) +
                    "; texts that have none of them a tokenizer.json in a folder of its own encodes");
  }
  if (found_otherwise.empty()) return;
  LogCommonWarning(
      folder + ": transformers finds tokens in texts as tokenizer_config.json says, which is not as " +
          "tokenizer.json says, which is done here: " + ListOfTokens(found_otherwise),
      HowToWriteTokenizerJson(folder));
}

}  // namespace trainwright
