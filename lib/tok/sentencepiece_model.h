/// What a SentencePiece .model file says about itself, read off its protobuf bytes.
///
/// The library shows none of it in the headers that it installs, and answers junk with messages of its own on
/// standard error; so files are looked at here first.
/// \source sentencepiece_model.proto of google/sentencepiece: field numbers and defaults
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace trainwright {

struct SentencePieceModel {
  uint64_t piece_count = 0;
  bool is_bpe = false;
  bool byte_fallback = false;
  bool treat_whitespace_as_suffix = false;
  bool has_character_map = false;  ///< text is normalised (NFKC and the like) before it is cut
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  /// first << 32 | second, of every two characters that stand side by side inside a piece.
  std::unordered_set<uint64_t> inner_bigrams;
  /// Pieces with a meaning of their own, by id: control pieces, which the library never finds in text, and
  /// user-defined ones, which it does.
  struct NamedPiece {
    std::string text;
    uint32_t id = 0;
    bool user_defined = false;
  };
  std::vector<NamedPiece> named_pieces;
};

/// Reads a serialized ModelProto. \returns false when it is none, and why in `problem`
bool ParseSentencePieceModel(std::string_view serialized, SentencePieceModel* model, std::string* problem);

}  // namespace trainwright
