/// What tokenizers of tokenizer.json files have in common: who they are, and their special tokens.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/tok/folder_special_tokens.h"
#include "lib/tok/tokenizer.h"
#include "lib/tok/tokenizer_json.h"

namespace trainwright {

class JsonTokenizer : public Tokenizer {
 public:
  /// The file says less than its neighbours about which tokens begin and end a text: what they do not say
  /// stays as it is. Ids of tokens that are not in the vocabulary become kNoId.
  void TakeSpecialIds(const FolderSpecialTokens& named);
  /// As recorded with a stream.
  /// \returns false when one is not in the vocabulary
  bool TakeSpecialIds(const TokenizerIdentity& recorded);

  /// Special tokens, and other added tokens that are written like special tokens: "<tool_call>".
  const std::vector<SpecialToken>& special_tokens() const override { return special_tokens_; }
  const TokenizerIdentity& identity() const override { return identity_; }
  const TokenizerJson& json() const { return json_; }

 protected:
  /// \param kind of the identity
  /// \param content the bytes of the file that `parsed` was read from
  JsonTokenizer(std::string kind, std::string content, TokenizerJson parsed);

  /// \throws Error{kBadInput} unless `id` is in the vocabulary
  void CheckId(uint32_t id) const;

 private:
  /// What begins, ends and pads texts stands for no text, also where no added token says so: transformers
  /// makes such a token of the model a special one.
  void MakeEndsSpecial();

  TokenizerIdentity identity_;
  TokenizerJson json_;
  std::vector<SpecialToken> special_tokens_;
};

/// \param content the bytes of a tokenizer.json file
/// \param name for messages
/// \throws Error{kBadInput} as ParseTokenizerJson
std::unique_ptr<JsonTokenizer> MakeJsonTokenizer(std::string content, const std::string& name);

}  // namespace trainwright
