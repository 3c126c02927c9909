/// Between which neighbouring characters a text may be cut without changing what a SentencePiece BPE model
/// makes of it.
///
/// A merge across two neighbouring characters makes a piece that holds them side by side, and a user-defined
/// piece is found only where all its characters come. So between two characters that no piece holds side by
/// side nothing reaches across, and what is left of them and right of them is encoded by itself. (Ties
/// between merges of one score are broken leftmost, which the parts agree on.)
///
/// Without byte fallback, a run of unknown characters becomes one <unk>: nothing is cut between two of those,
/// unless whoever cuts sees to that.
/// Immutable after construction and thread-safe.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/tok/sentencepiece_model.h"

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
    return MayCutFolded(Fold(left), Fold(right));
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
  enum Kind : uint8_t { kHasRight = 1, kHasLeft = 2, kKnown = 4 };
  bool MayCutFolded(uint32_t left, uint32_t right) const;
  void AddBigram(uint32_t left, uint32_t right);
  bool IsBigram(uint32_t left, uint32_t right) const;

  uint32_t space_;
  bool unknown_characters_join_;
  std::vector<uint8_t> kinds_;     // of every code point
  std::vector<uint64_t> bigrams_;  // hash table of left << 32 | right; 0 is empty
  size_t bigram_count_ = 0;
  std::vector<uint8_t> ascii_;  // whether to cut, by right << 8 | left
};

}  // namespace trainwright
