/// What a SentencePiece .model file says about itself, read off its protobuf bytes.
///
/// The library shows none of it in the headers that it installs, and answers junk with messages of its own on
/// standard error; so files are looked at here first.
/// \source sentencepiece_model.proto of google/sentencepiece: field numbers and defaults
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainwright {

struct SentencePieceModel {
  enum class PieceType : uint8_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };
  struct Piece {
    std::string text;
    float score = 0;
    PieceType type = PieceType::kNormal;
    /// Merges make normal and unused pieces of text, and user-defined ones are found in it; the others never
    /// match.
    bool matches_text() const {
      return type == PieceType::kNormal || type == PieceType::kUserDefined || type == PieceType::kUnused;
    }
  };
  std::vector<Piece> pieces;  ///< by id
  bool is_bpe = false;
  bool is_unigram = true;  ///< neither: a model of words or of characters
  bool byte_fallback = false;
  bool treat_whitespace_as_suffix = false;
  /// Serialized, what text is normalised with (NFKC and the like) before it is cut (character_map.h); empty:
  /// characters stay as they are.
  std::string character_map;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
};

/// The byte that a piece of the type kByte stands for: "<0x41>", in capitals, is 0x41.
std::optional<uint8_t> ByteOfPiece(std::string_view text);

/// Reads a serialized ModelProto.
/// \returns false when it is none, and why in `problem`
bool ParseSentencePieceModel(std::string_view serialized, SentencePieceModel* model, std::string* problem);

/// A serialized ModelProto that is as the given one but for add_dummy_prefix, which is false.
std::string WithoutDummyPrefix(std::string serialized);

}  // namespace trainwright
