#include "lib/tok/reference_byte_level_bpe.h"

#include <algorithm>

#include "lib/base/signals.h"
#include "lib/tok/reference_added_tokens.h"
#include "lib/tok/unicode.h"
#include "lib/tok/utf8.h"

namespace trainwright {
ReferenceByteLevelBpe::ReferenceByteLevelBpe(TokenizerJson json, const Tokenizer* original)
    : json_(std::move(json)), original_(*original), merges_(json_.merges) {
  if (json_.cut_rule != CutRule::kNone) pattern_.emplace(RegularExpressionOf(json_.cut_rule));
  for (uint32_t id = 0; json_.ignore_merges && id < json_.tokens.size(); ++id) {
    const TokenizerJson::Token& token = json_.tokens[id];
    if (token.in_model && token.spells_bytes) whole_pieces_.emplace(token.bytes, id);
  }
}

void ReferenceByteLevelBpe::Encode(std::string_view text, std::vector<uint32_t>* ids) const {
  EncodeAll(text, /*mark=*/true, ids);
}

void ReferenceByteLevelBpe::EncodeContinued(std::string_view text, std::vector<uint32_t>* ids) const {
  EncodeAll(text, /*mark=*/false, ids);
}

void ReferenceByteLevelBpe::EncodeUnmatched(std::string_view text, bool continued,
                                            std::vector<uint32_t>* ids) const {
  std::string normalized;
  if (!json_.nfc || !NormalizeNfc(text, &normalized)) normalized = text;
  EncodeText(normalized, /*mark=*/!continued, ids);
}

void ReferenceByteLevelBpe::EncodeAll(std::string_view text, bool mark, std::vector<uint32_t>* ids) const {
  CutAtAddedTokens(
      text, json_.added_tokens, /*normalized=*/false,
      [&](const AddedToken& token) { ids->push_back(token.id); },
      [&](std::string_view part, bool first) {
        std::string normalized;
        if (!json_.nfc || !NormalizeNfc(part, &normalized)) normalized = part;
        EncodeNormalized(normalized, mark || !first, ids);
      });
}

void ReferenceByteLevelBpe::EncodeNormalized(std::string_view text, bool mark,
                                             std::vector<uint32_t>* ids) const {
  CutAtAddedTokens(
      text, json_.added_tokens, /*normalized=*/true,
      [&](const AddedToken& token) { ids->push_back(token.id); },
      [&](std::string_view part, bool first) { EncodeText(std::string(part), mark || !first, ids); });
}

void ReferenceByteLevelBpe::EncodeText(std::string text, bool mark, std::vector<uint32_t>* ids) const {
  if (json_.add_prefix_space && mark && !text.starts_with(' ')) text.insert(0, 1, ' ');
  const ReferenceCharacters characters(text);
  const size_t count = characters.code_points.size();
  for (size_t begin = 0; begin < count;) {
    // Digits are cut off first: what is between them is cut as if it were alone.
    size_t stretch_end = begin + 1;
    if (!json_.cut_digits) stretch_end = count;
    if (json_.cut_digits && !characters.Is(begin, kDigit)) {
      while (stretch_end < count && !characters.Is(stretch_end, kDigit)) ++stretch_end;
    }
    const std::span stretch = std::span(characters.code_points).first(stretch_end);
    while (begin < stretch_end) {
      const size_t end = pattern_ ? pattern_->PieceEnd(stretch, begin) : stretch_end;
      const size_t first_byte = characters.begins[begin];
      EncodePiece(std::string_view(text).substr(first_byte, characters.begins[end] - first_byte), ids);
      begin = end;
    }
  }
}

void ReferenceByteLevelBpe::EncodePiece(std::string_view piece, std::vector<uint32_t>* ids) const {
  ThrowIfStopped();
  if (const auto whole = whole_pieces_.find(piece); whole != whole_pieces_.end()) {
    ids->push_back(whole->second);
    return;
  }
  std::vector<uint32_t> symbols;
  for (const char byte : piece) {
    if (const uint32_t id = json_.byte_ids[static_cast<uint8_t>(byte)]; id != kNoId) symbols.push_back(id);
  }
  merges_.Merge(&symbols);
  ids->insert(ids->end(), symbols.begin(), symbols.end());
}

}  // namespace trainwright
