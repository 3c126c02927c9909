/// Between which neighbouring characters a text may be cut without changing what a SentencePiece BPE model
/// makes of it.
///
/// A merge across two neighbouring characters makes a piece that holds them side by side, and a user-defined
/// piece is found only where all its characters come. So between two characters that no piece holds side by
/// side nothing reaches across, and what is left of them and right of them is encoded by itself. (Ties
/// between merges of one score are broken leftmost, which the parts agree on.)
///
/// Which characters these are is looked up by a hash: of some pairs that no piece holds it is not known, and
/// nothing is cut between them.
///
/// Without byte fallback, a run of unknown characters becomes one <unk>: nothing is cut between two of those,
/// unless whoever cuts sees to that.
/// Immutable after construction and thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/tok/sentencepiece_model.h"
#include "lib/tok/utf8.h"

namespace trainwright {

class CharacterCuts {
 public:
  /// \param keeps_unknown_together whether nothing is cut between two unknown characters that become one
  /// <unk>
  explicit CharacterCuts(const SentencePieceModel& model, bool keeps_unknown_together = true);

  struct Settings {
    bool folds_spaces = true;            ///< ' ' is U+2581
    bool keeps_unknown_together = true;  ///< as above
    bool cuts_before_spaces = false;     ///< whatever the pieces
  };
  /// \param pieces the characters that are known, and what merges make
  CharacterCuts(const Settings& settings, const std::vector<std::string_view>& pieces);

  bool MayCut(uint32_t left, uint32_t right) const {
    if ((left | right) < 0x80) return ascii_[right << 8 | left] != 0;
    left = Fold(left), right = Fold(right);
    return !MayBePair(PairOf(left, right)) && !AreUnknown(left, right);
  }

  /// The first place after `begin` where the text may be cut; its end where there is none.
  /// \param read the Utf8Character at a place of the text, of 1 byte or more
  template <typename Read>
  size_t UnitEnd(std::string_view text, size_t begin, const Read& read) const {
    Utf8Character character = read(text, begin);
    for (size_t at = begin + character.size_bytes; at < text.size(); at += character.size_bytes) {
      const Utf8Character next = read(text, at);
      if (MayCut(character.code_point, next.code_point)) return at;
      character = next;
    }
    return text.size();
  }

  /// How many bytes AsciiCuts reads.
  static constexpr size_t kBlock = 64;
  /// Bit i says that the text may be cut before byte i of the 64 from `begin`. The bit of the first byte is
  /// 0, and so are those from the first byte on that is not ASCII.
  uint64_t AsciiCuts(const char* begin) const;

  /// Space and U+2581 are the same to a model, unless it says otherwise.
  uint32_t Fold(uint32_t code_point) const { return code_point == ' ' ? space_ : code_point; }

 private:
  void Read(const std::vector<std::string_view>& pieces, bool cuts_before_spaces);
  void FillPairs(const std::vector<uint64_t>& pairs);
  bool IsKnown(uint32_t code_point) const { return known_[code_point] != 0; }
  bool AreUnknown(uint32_t left, uint32_t right) const {
    return unknown_characters_join_ && !IsKnown(left) && !IsKnown(right);
  }
  static uint64_t PairOf(uint32_t left, uint32_t right) { return uint64_t{left} << 32 | right; }
  size_t PlaceOf(uint64_t pair) const { return (pair ^ pair >> 25) * 0x9E3779B97F4A7C15u >> shift_; }
  bool MayBePair(uint64_t pair) const {
    const size_t place = PlaceOf(pair);
    return (pairs_[place / 64] >> (place % 64) & 1) != 0;
  }

  uint32_t space_;
  bool unknown_characters_join_;
  std::vector<uint8_t> known_;   // of every code point, where unknown ones join
  std::vector<uint64_t> pairs_;  // a bit at the place of each pair that a piece holds
  int shift_ = 0;
  std::vector<uint8_t> ascii_;  // whether to cut, by right << 8 | left
};

}  // namespace trainwright
