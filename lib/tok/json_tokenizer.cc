#include "lib/tok/json_tokenizer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "lib/base/error.h"
#include "lib/tok/byte_level_bpe_tokenizer.h"
#include "lib/tok/text_tokenizer.h"

namespace trainwright {

JsonTokenizer::JsonTokenizer(std::string kind, std::string content, TokenizerJson parsed)
    : json_(std::move(parsed)) {
  identity_.kind = std::move(kind);
  identity_.sha256 = Sha256Of(AsBytes(content));
  identity_.vocab_size = static_cast<uint32_t>(json_.tokens.size());
  identity_.bos_id = json_.bos_id;
  identity_.eos_id = json_.eos_id;
  identity_.pad_id = json_.pad_id;
  identity_.unk_id = json_.unk_id;
  identity_.model = std::move(content);
  for (const AddedToken& token : json_.added_tokens) {
    const std::string& text = token.content;
    if (token.special || LooksLikeMark(text))
      special_tokens_.push_back({text, token.id, true, !token.special});
  }
  if (json_.added_tokens.empty()) {
    for (uint32_t id = 0; id < json_.tokens.size(); ++id) {
      if (json_.tokens[id].special) special_tokens_.push_back({json_.tokens[id].bytes, id, false});
    }
  }
  MakeEndsSpecial();
}

void JsonTokenizer::MakeEndsSpecial() {
  for (const uint32_t id : {identity_.bos_id, identity_.eos_id, identity_.pad_id}) {
    const auto is_it = [id](const auto& token) { return token.id == id; };
    if (id == kNoId) continue;
    const auto known = std::find_if(special_tokens_.begin(), special_tokens_.end(), is_it);
    if (known != special_tokens_.end()) known->is_word = false;
    if (json_.tokens[id].special) continue;
    if (std::any_of(json_.added_tokens.begin(), json_.added_tokens.end(), is_it)) continue;
    json_.tokens[id].special = true;
    special_tokens_.push_back({json_.tokens[id].bytes, id, false});
  }
}

void JsonTokenizer::TakeSpecialIds(const FolderSpecialTokens& named) {
  const auto take = [&](const std::optional<std::string>& token, uint32_t* id) {
    if (token) *id = token->empty() ? kNoId : IdOfToken(json_, *token);
  };
  take(named.bos, &identity_.bos_id);
  take(named.eos, &identity_.eos_id);
  take(named.pad, &identity_.pad_id);
  take(named.unk, &identity_.unk_id);
  MakeEndsSpecial();
}

bool JsonTokenizer::TakeSpecialIds(const TokenizerIdentity& recorded) {
  for (const uint32_t id : {recorded.bos_id, recorded.eos_id, recorded.pad_id, recorded.unk_id}) {
    if (id != kNoId && id >= identity_.vocab_size) return false;
  }
  identity_.bos_id = recorded.bos_id;
  identity_.eos_id = recorded.eos_id;
  identity_.pad_id = recorded.pad_id;
  identity_.unk_id = recorded.unk_id;
  MakeEndsSpecial();
  return true;
}

void JsonTokenizer::CheckId(uint32_t id) const {
  if (id < identity_.vocab_size) return;
  throw Error(ErrorCode::kBadInput, "id " + std::to_string(id),
              "is not in the vocabulary of " + std::to_string(identity_.vocab_size) + " ids");
}

std::unique_ptr<JsonTokenizer> MakeJsonTokenizer(std::string content, const std::string& name) {
  TokenizerJson parsed = ParseTokenizerJson(content, name);
  if (parsed.text) return std::make_unique<TextTokenizer>(std::move(content), std::move(parsed));
  return std::make_unique<ByteLevelBpeTokenizer>("tokenizer_json", std::move(content), std::move(parsed));
}

}  // namespace trainwright
