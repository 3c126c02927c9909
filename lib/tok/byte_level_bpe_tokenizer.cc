#include "lib/tok/byte_level_bpe_tokenizer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/signals.h"
#include "lib/tok/ascii_pieces.h"
#include "lib/tok/piece_lookups.h"
#include "lib/tok/reference_byte_level_bpe.h"
#include "lib/tok/unicode.h"
#include "lib/tok/utf8.h"

namespace trainwright {

namespace {

TokenizerJson ParseByteLevel(std::string_view content, const std::string& name) {
  TokenizerJson parsed = ParseTokenizerJson(content, name);
  if (parsed.text)
    throw Error(ErrorCode::kBadInput, name, "is no byte-level BPE tokenizer", "", kTokenizerHint);
  return parsed;
}

}  // namespace

ByteLevelBpeTokenizer::ByteLevelBpeTokenizer(std::string content, const std::string& name)
    : ByteLevelBpeTokenizer("tokenizer_json", content, ParseByteLevel(content, name)) {}

ByteLevelBpeTokenizer::ByteLevelBpeTokenizer(std::string kind, std::string content, TokenizerJson parsed)
    : JsonTokenizer(std::move(kind), std::move(content), std::move(parsed)),
      merges_(json().byte_ids, json().merges),
      raw_tokens_(json().added_tokens, false),
      normalized_tokens_(json().added_tokens, true),
      classes_(CharacterClasses()),
      read_block_(SupportedReadAsciiBlocks().back()) {
  if (json().ignore_merges) {
    for (uint32_t id = 0; id < json().tokens.size(); ++id) {
      const TokenizerJson::Token& token = json().tokens[id];
      if (token.in_model && token.spells_bytes) whole_pieces_.emplace(token.bytes, id);
    }
  }
}

ByteLevelBpeTokenizer::~ByteLevelBpeTokenizer() = default;

std::unique_ptr<Tokenizer> ByteLevelBpeTokenizer::MakeReference() const {
  return std::make_unique<ReferenceByteLevelBpe>(json(), this);
}

void ByteLevelBpeTokenizer::Encode(std::string_view text, std::vector<uint32_t>* ids) const {
  EncodeAll(text, /*prefix_first=*/true, ids);
}

void ByteLevelBpeTokenizer::EncodeContinued(std::string_view text, std::vector<uint32_t>* ids) const {
  EncodeAll(text, /*prefix_first=*/false, ids);
}

void ByteLevelBpeTokenizer::EncodeUnmatched(std::string_view text, bool continued,
                                            std::vector<uint32_t>* ids) const {
  const auto worker = workers_.Borrow();
  if (json().nfc && NormalizeNfc(text, &worker.get()->normalized)) text = worker.get()->normalized;
  EncodeText(text, /*prefix=*/!continued, worker.get(), ids);
}

void ByteLevelBpeTokenizer::EncodeAll(std::string_view text, bool prefix_first,
                                      std::vector<uint32_t>* ids) const {
  const auto worker = workers_.Borrow();
  raw_tokens_.Cut(text, [&](const AddedTokenMatcher::Part& part) {
    if (part.token != nullptr) {
      ids->push_back(part.token->id);
      return;
    }
    std::string_view stretch = text.substr(part.begin, part.end - part.begin);
    if (json().nfc && NormalizeNfc(stretch, &worker.get()->normalized)) stretch = worker.get()->normalized;
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
  if (json().add_prefix_space && prefix && !text.starts_with(' ')) {
    worker->prefixed.assign(" ").append(text);
    text = worker->prefixed;
  }
  const auto cut = [&]<CutRule rule>(std::integral_constant<CutRule, rule>) {
    return json().cut_digits ? EncodeCut<rule, true>(text, worker, ids)
                             : EncodeCut<rule, false>(text, worker, ids);
  };
  switch (json().cut_rule) {
    case CutRule::kNone:
      return cut(std::integral_constant<CutRule, CutRule::kNone>());
    case CutRule::kGpt2:
      return cut(std::integral_constant<CutRule, CutRule::kGpt2>());
    case CutRule::kLlama3:
      return cut(std::integral_constant<CutRule, CutRule::kLlama3>());
    case CutRule::kCl100k:
      return cut(std::integral_constant<CutRule, CutRule::kCl100k>());
    case CutRule::kO200k:
      return cut(std::integral_constant<CutRule, CutRule::kO200k>());
    case CutRule::kQwen2:
      return cut(std::integral_constant<CutRule, CutRule::kQwen2>());
  }
}

/// The offset of the first digit at or behind `from`, and its size; `text.size()` when there is none.
size_t ByteLevelBpeTokenizer::FindDigit(std::string_view text, size_t from, size_t* size) const {
  for (size_t at = from; at < text.size(); at += *size) {
    const Utf8Character character = DecodeUtf8(text.substr(at));
    *size = std::max<size_t>(character.size_bytes, 1);
    if (character.size_bytes != 0 && (classes_[character.code_point] & kDigit) != 0) return at;
  }
  return text.size();
}

template <CutRule rule, bool cut_digits>
void ByteLevelBpeTokenizer::EncodeCut(std::string_view text, Worker* worker,
                                      std::vector<uint32_t>* ids) const {
  size_t digit_size = 0;
  size_t stretch_end = cut_digits ? FindDigit(text, 0, &digit_size) : text.size();
  constexpr int kNotAscii = 0xFF;
  PieceMemo& memo = worker->memo;
  PieceLookups lookups;
  for (size_t begin = 0; begin < text.size();) {
    const auto add = [&](size_t size) {
      lookups.Add(memo, text.data() + begin, size, text.size() - begin >= PieceMemo::kReach);
      begin += size;
    };
    // The ends of pieces behind `from`, of the stretch alone; 0 where PieceEnd must say.
    const auto ends_behind = [&](size_t from) -> uint64_t {
      if (rule == CutRule::kNone || rule == CutRule::kO200k || from == stretch_end ||
          static_cast<uint8_t>(text[from]) >= 0x80)
        return 0;
      const char* bytes = text.data() + from;
      char padded[AsciiBlock::kBytes];
      if (stretch_end - from < AsciiBlock::kBytes) {
        std::memset(padded, kNotAscii, sizeof(padded));
        std::memcpy(padded, bytes, stretch_end - from);
        bytes = padded;
      }
      return AsciiPieceEnds<rule>(read_block_(bytes), bytes);
    };
    while (lookups.room() >= AsciiBlock::kBytes && begin < text.size()) {
      if (uint64_t ends = ends_behind(begin); ends != 0) {
        for (const size_t block = begin; ends != 0; ends &= ends - 1) {
          add(block + static_cast<size_t>(std::countr_zero(ends)) - begin);
        }
        continue;
      }
      size_t size = 0;
      if (cut_digits && begin == stretch_end) {
        size = digit_size;
        stretch_end = FindDigit(text, begin + size, &digit_size);
      } else {
        // To a stretch, the digit behind it is as good as the end of the text.
        size = PieceEnd(rule, text.substr(0, stretch_end), begin, classes_) - begin;
      }
      add(size);
    }
    ThrowIfStopped();
    lookups.Flush(memo, ids, [&](const PieceMemo::Key& key, std::string_view piece) {
      EncodePiece(key, piece, worker, ids);
    });
  }
}

void ByteLevelBpeTokenizer::EncodePiece(const PieceMemo::Key& key, std::string_view piece, Worker* worker,
                                        std::vector<uint32_t>* ids) const {
  const bool remember = piece.size() <= PieceMemo::kMaxPieceBytes;
  if (remember) {
    if (const auto known = worker->memo.Find(key, piece); !known.empty()) {
      ids->insert(ids->end(), known.begin(), known.end());
      return;
    }
  }
  std::vector<uint32_t>& found = worker->scratch.ids;
  const auto whole = json().ignore_merges ? whole_pieces_.find(piece) : whole_pieces_.end();
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
    CheckId(id);
    if (!json().tokens[id].special) text += json().tokens[id].bytes;
  }
  return text;
}

DecodedId ByteLevelBpeTokenizer::DecodedIdOf(uint32_t id) const {
  CheckId(id);
  return {.as = json().tokens[id].special ? DecodedAs::kNothing : DecodedAs::kText};
}

}  // namespace trainwright
