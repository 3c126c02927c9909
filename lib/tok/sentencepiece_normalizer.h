/// Makes of a text what a SentencePiece model cuts into pieces: replaces characters (character_map.h), drops
/// white space where the model asks for that, adds the mark that the model asks for.
///
/// From left to right, at each place the first of these that is there: a user-defined piece, which stays as
/// it is; a rule of the character map, the longest; a character, which stays; a byte that belongs to none,
/// which becomes U+FFFD. A model that removes extra white space loses spaces at both ends and all but the
/// first of a run, spaces that rules make among them.
///
/// In what comes out, ' ' stands for the mark U+2581 that the model's pieces have in its place; a U+2581 of
/// the text is the same to a model, and becomes ' ', too. A model that does not escape white space keeps both
/// as they are. What comes out is valid UTF-8.
///
/// Immutable after construction and thread-safe. Linear time.
/// \source normalizer.cc of google/sentencepiece v0.2.3
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/tok/character_map.h"
#include "lib/tok/piece_trie.h"
#include "lib/tok/sentencepiece_model.h"

namespace trainwright {

class SentencePieceNormalizer {
 public:
  /// \param name of the model, for messages
  /// \throws Error{kBadInput} when the model's character map is damaged
  SentencePieceNormalizer(const SentencePieceModel& model, const std::string& name);

  /// \param mark whether the text gets the mark that the model asks for; text that goes on has none
  /// \param out is written over
  void Normalize(std::string_view text, bool mark, std::string* out) const;

 private:
  static constexpr uint8_t kOther = 0xFF;  // takes more than one look at one byte
  struct Prefix {
    std::string_view replacement;
    size_t size_bytes = 0;
  };
  Prefix PrefixAt(std::string_view text) const;
  void ReadPlain(const SentencePieceModel& model);
  bool MayJoin(std::string_view text, size_t at) const;
  size_t PlainEnd(std::string_view text, size_t begin) const;
  size_t WidePlainEnd(std::string_view text, size_t begin) const;
  void AppendPlain(std::string_view text, bool* after_space, std::string* out) const;
  void AppendPrefix(const Prefix& prefix, bool* after_space, std::string* out) const;

  CharacterMap map_;
  PieceTrie user_defined_;
  std::array<uint8_t, 256> plain_{};  // what an ASCII character becomes, unless one of kJoins follows
  enum Kind : uint8_t { kStays = 1, kStaysUnlessJoined = 2, kJoins = 4 };
  std::vector<uint8_t> kinds_;  // of other characters below 2^16
  bool removes_spaces_, escapes_spaces_, has_mark_, mark_at_end_;
};

}  // namespace trainwright
