/// SentencePiece models written by hand, for what no trainer makes.
#pragma once

#include <bit>
#include <cstdio>
#include <string>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/tok/sentencepiece_model.h"

namespace trainwright::test {

/// Serializes a ModelProto. \source sentencepiece_model.proto of google/sentencepiece
inline std::string SerializedModel(const SentencePieceModel& model) {
  const auto number = [](uint64_t field, uint64_t value) {
    std::vector<uint8_t> out;
    AppendVarint(&out, field << 3);
    AppendVarint(&out, value);
    return std::string(AsText(out));
  };
  const auto bytes = [](uint64_t field, std::string_view content) {
    std::vector<uint8_t> out;
    AppendVarint(&out, field << 3 | 2);
    AppendVarint(&out, content.size());
    return std::string(AsText(out)).append(content);
  };
  std::string serialized;
  for (const SentencePieceModel::Piece& piece : model.pieces) {
    std::vector<uint8_t> score = {2 << 3 | 5};
    AppendInteger(&score, std::bit_cast<uint32_t>(piece.score));
    serialized += bytes(
        1, bytes(1, piece.text) + std::string(AsText(score)) + number(3, static_cast<uint64_t>(piece.type)));
  }
  constexpr uint64_t kUnigram = 1, kBpe = 2, kWord = 3;
  const uint64_t type = model.is_bpe ? kBpe : model.is_unigram ? kUnigram : kWord;
  serialized += bytes(
      2, number(3, type) + number(24, model.treat_whitespace_as_suffix) + number(35, model.byte_fallback));
  serialized += bytes(3, bytes(2, model.character_map) + number(3, model.add_dummy_prefix) +
                             number(4, model.remove_extra_whitespaces) + number(5, model.escape_whitespaces));
  return serialized;
}

/// The 256 pieces that byte fallback needs.
inline std::vector<SentencePieceModel::Piece> BytePieces() {
  std::vector<SentencePieceModel::Piece> pieces;
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof(text), "<0x%02X>", static_cast<unsigned>(byte));
    pieces.push_back({text, 0, SentencePieceModel::PieceType::kByte});
  }
  return pieces;
}

}  // namespace trainwright::test
