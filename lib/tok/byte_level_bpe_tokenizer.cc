#include "lib/tok/byte_level_bpe_tokenizer.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "lib/base/error.h"
#include "lib/tok/unicode.h"
#include "lib/tok/utf8.h"

namespace trainwright {

/// A worker for the length of one call.
class ByteLevelBpeTokenizer::Lease {
 public:
  explicit Lease(const ByteLevelBpeTokenizer& tokenizer) : tokenizer_(tokenizer) {
    {
      const std::lock_guard lock(tokenizer_.mutex_);
      if (!tokenizer_.idle_workers_.empty()) {
        worker_ = std::move(tokenizer_.idle_workers_.back());
        tokenizer_.idle_workers_.pop_back();
      }
    }
    if (worker_ == nullptr) worker_ = std::make_unique<Worker>();
  }
  ~Lease() {
    const std::lock_guard lock(tokenizer_.mutex_);
    tokenizer_.idle_workers_.push_back(std::move(worker_));
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  Worker* get() const { return worker_.get(); }

 private:
  const ByteLevelBpeTokenizer& tokenizer_;
  std::unique_ptr<Worker> worker_;
};

ByteLevelBpeTokenizer::ByteLevelBpeTokenizer(std::string content, const std::string& name)
    : json_(ParseTokenizerJson(content, name)),
      merges_(json_.byte_ids, json_.merges),
      raw_tokens_(json_.added_tokens, false),
      normalized_tokens_(json_.added_tokens, true),
      classes_(CharacterClasses()) {
  identity_.kind = "tokenizer_json";
  identity_.sha256 = Sha256Of(AsBytes(content));
  identity_.vocab_size = static_cast<uint32_t>(json_.tokens.size());
  identity_.bos_id = json_.bos_id;
  identity_.eos_id = json_.eos_id;
  identity_.pad_id = json_.pad_id;
  identity_.unk_id = json_.unk_id;
  identity_.model = std::move(content);
  std::vector<BytePairMerge>().swap(json_.merges);
  for (const AddedToken& token : json_.added_tokens) {
    const std::string& text = token.content;
    const bool mark = text.size() >= 3 && ((text.front() == '<' && text.back() == '>') ||
                                           (text.front() == '[' && text.back() == ']'));
    if (token.special || mark) special_tokens_.push_back({text, token.id, true});
  }
  if (json_.ignore_merges) {
    for (uint32_t id = 0; id < json_.tokens.size(); ++id) {
      const TokenizerJson::Token& token = json_.tokens[id];
      if (token.in_model && token.spells_bytes) whole_pieces_.emplace(token.bytes, id);
    }
  }
}

ByteLevelBpeTokenizer::~ByteLevelBpeTokenizer() = default;

void ByteLevelBpeTokenizer::TakeSpecialIds(std::string_view config, const std::string& name) {
  const auto object = nlohmann::json::parse(config, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) throw Error(ErrorCode::kBadInput, name, "is not a JSON object");
  const auto id_of = [&](const char* key) {
    nlohmann::json token = object.value(key, nlohmann::json());
    if (token.is_object()) token = token.value("content", nlohmann::json());
    if (!token.is_string()) return kNoId;
    for (const AddedToken& added : json_.added_tokens) {
      if (added.content == token.get_ref<const std::string&>()) return added.id;
    }
    return kNoId;
  };
  identity_.bos_id = id_of("bos_token");
  identity_.eos_id = id_of("eos_token");
  identity_.pad_id = id_of("pad_token");
  identity_.unk_id = id_of("unk_token");
}

bool ByteLevelBpeTokenizer::TakeSpecialIds(const TokenizerIdentity& recorded) {
  for (const uint32_t id : {recorded.bos_id, recorded.eos_id, recorded.pad_id, recorded.unk_id}) {
    if (id != kNoId && id >= identity_.vocab_size) return false;
  }
  identity_.bos_id = recorded.bos_id;
  identity_.eos_id = recorded.eos_id;
  identity_.pad_id = recorded.pad_id;
  identity_.unk_id = recorded.unk_id;
  return true;
}

void ByteLevelBpeTokenizer::Encode(std::string_view text, std::vector<uint32_t>* ids) const {
  EncodeAll(text, /*prefix_first=*/true, ids);
}

void ByteLevelBpeTokenizer::EncodeContinued(std::string_view text, std::vector<uint32_t>* ids) const {
  EncodeAll(text, /*prefix_first=*/false, ids);
}

void ByteLevelBpeTokenizer::EncodeAll(std::string_view text, bool prefix_first,
                                      std::vector<uint32_t>* ids) const {
  const Lease worker(*this);
  raw_tokens_.Cut(text, [&](const AddedTokenMatcher::Part& part) {
    if (part.token != nullptr) {
      ids->push_back(part.token->id);
      return;
    }
    std::string_view stretch = text.substr(part.begin, part.end - part.begin);
    if (json_.nfc && NormalizeNfc(stretch, &worker.get()->normalized)) stretch = worker.get()->normalized;
    normalized_tokens_.Cut(stretch, [&](const AddedTokenMatcher::Part& inner) {
      if (inner.token != nullptr) {
        ids->push_back(inner.token->id);
        return;
      }
      const bool first = part.begin == 0 && inner.begin == 0;
      EncodeText(stretch.substr(inner.begin, inner.end - inner.begin), prefix_first || !first, worker.get(),
                 ids);
    });
  });
}

void ByteLevelBpeTokenizer::EncodeText(std::string_view text, bool prefix, Worker* worker,
                                       std::vector<uint32_t>* ids) const {
  if (json_.add_prefix_space && prefix && !text.starts_with(' ')) {
    worker->prefixed.assign(" ").append(text);
    text = worker->prefixed;
  }
  if (!json_.cut_digits) return EncodeStretch(text, worker, ids);
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const Utf8Character character = DecodeUtf8(text.substr(at));
    const size_t size = std::max<size_t>(character.size_bytes, 1);
    if (character.size_bytes != 0 && (classes_[character.code_point] & kDigit) != 0) {
      if (done < at) EncodeStretch(text.substr(done, at - done), worker, ids);
      EncodePiece(text.substr(at, size), worker, ids);
      done = at + size;
    }
    at += size;
  }
  if (done < text.size()) EncodeStretch(text.substr(done), worker, ids);
}

void ByteLevelBpeTokenizer::EncodeStretch(std::string_view text, Worker* worker,
                                          std::vector<uint32_t>* ids) const {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = PieceEnd(json_.cut_rule, text, begin, classes_);
    EncodePiece(text.substr(begin, end - begin), worker, ids);
    begin = end;
  }
}

void ByteLevelBpeTokenizer::EncodePiece(std::string_view piece, Worker* worker,
                                        std::vector<uint32_t>* ids) const {
  const bool remember = piece.size() <= PieceMemo::kMaxPieceBytes;
  PieceMemo::Key key;
  if (remember) {
    key = PieceMemo::KeyOf(piece);
    if (const auto known = worker->memo.Find(key, piece); !known.empty()) {
      ids->insert(ids->end(), known.begin(), known.end());
      return;
    }
  }
  std::vector<uint32_t>& found = worker->scratch.ids;
  const auto whole = json_.ignore_merges ? whole_pieces_.find(piece) : whole_pieces_.end();
  if (whole != whole_pieces_.end()) {
    found.assign(1, whole->second);
  } else {
    merges_.Encode(piece, &worker->scratch);
  }
  if (remember) worker->memo.Remember(key, piece, found);
  ids->insert(ids->end(), found.begin(), found.end());
}

std::string ByteLevelBpeTokenizer::Decode(std::span<const uint32_t> ids) const {
  std::string text;
  for (const uint32_t id : ids) {
    if (id >= identity_.vocab_size) {
      throw Error(ErrorCode::kBadInput, "id " + std::to_string(id),
                  "is not in the vocabulary of " + std::to_string(identity_.vocab_size) + " ids");
    }
    if (!json_.tokens[id].special) text += json_.tokens[id].bytes;
  }
  return text;
}

}  // namespace trainwright
