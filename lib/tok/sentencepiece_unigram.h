/// SentencePiece unigram models, encoded without the library, with the ids of its version 0.2.3.
///
/// Of all ways to cut a normalised text into pieces, the one whose scores have the greatest sum. What decides
/// between sums that are equal but for rounding is part of the ids, so sums are formed as the library forms
/// them: in float, from the beginning of the text on, a piece's score added to the best sum at its beginning.
/// A sum replaces another at the same place when it is greater; of equal ones stays that whose last piece is
/// the longest. Where the best sum at a place exceeds 100,000 either way, it is subtracted from that and from
/// all places that have been reached beyond.
///
/// A character that is no piece is one of the least score of normal pieces less 10: its bytes with byte
/// fallback, else <unk>, once for a run of such. A user-defined piece of n bytes has a score of 0.1 (n - 1),
/// unused pieces are none.
///
/// Stretches. At a place that nothing reaches across all ways meet, so what is before is decided, and only
/// its sum is carried on: memory is that of the longest stretch without one. Time is linear in the text,
/// times the longest piece.
///
/// Units. Where no piece holds two neighbouring characters (character_cuts.h) nothing reaches across whatever
/// the text, and what lies between is remembered in a memo of at most kMemoBytes. Which way through a unit is
/// the best depends on the sum S at its beginning, by rounding alone. The library's sum of a way of k pieces
/// is off by at most k h, if h is the most by which one addition is off: half the distance of floats of that
/// size. So the way that is best in exact arithmetic is the library's, too, and no other ties with it there,
/// if it is better than any other whole way by more than 2 n h, where n is the number of characters, the most
/// pieces that a way can have. (The library's sum at a place is the greatest of the sums of the ways to it,
/// since rounding keeps order; so a way whose sum is the single greatest at the unit's end has the greatest,
/// and the single one, at each place that it passes, too, or another way would end as high.) By how much the
/// best way is better is found in double, whose own rounding is allowed for, when a unit is new; what is
/// remembered is the way and the greatest |S|, of seven steps, for which that is enough. At another S, the
/// unit is decided again as the library does. S is carried on by adding the scores of the pieces in float, as
/// the library does. A unit is remembered only where no sum within it can differ from S by more than 1,000,
/// so that none is reset. Ids do not depend on what is in the memo.
/// \source unigram_model.cc and sentencepiece_processor.cc of google/sentencepiece v0.2.3
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/tok/character_cuts.h"
#include "lib/tok/piece_memo.h"
#include "lib/tok/piece_trie.h"
#include "lib/tok/sentencepiece_model.h"

namespace trainwright {

class SentencePieceUnigram {
 public:
  static constexpr size_t kMemoBytes = 64 << 20;

  /// \param name of the model, for messages
  /// \throws Error{kBadInput} for what the library refuses, too: a score that is no finite number, a piece
  ///     that is empty, of 8,000 bytes or more, with a NUL, or there twice; no pieces of text, or none for
  ///     what no piece is
  SentencePieceUnigram(const SentencePieceModel& model, const std::string& name);

  /// The best way to the place where it is in `places`, of those that were found so far.
  struct Place {
    float score = 0;
    uint32_t begin = kUnreached;  ///< of the last piece
    uint32_t id = 0;
    static constexpr uint32_t kUnreached = UINT32_MAX;
  };
  /// The best way to a place of a unit, and how good the second best is, from the unit's beginning.
  struct UnitPlace {
    double best = 0, second = 0;
    uint32_t begin = 0;
    uint32_t id = 0;
  };
  /// What one call works with; may be used again, by one call at a time, for the same model.
  struct Scratch {
    PieceMemo memo{kMemoBytes};
    std::vector<Place> places;
    std::vector<uint32_t> ends;
    std::vector<UnitPlace> unit_places;
    std::vector<uint32_t> unit_ids;
  };

  /// Appends the ids of a text.
  /// \param text what SentencePieceNormalizer made
  void Encode(std::string_view text, Scratch* scratch, std::vector<uint32_t>* ids) const;

 private:
  void ReadPiece(const SentencePieceModel::Piece& piece, uint32_t id);
  /// How far a text is encoded.
  struct Progress {
    float score = 0;
    bool after_unknown = false;
    std::vector<uint32_t>* ids = nullptr;
  };
  bool TakeUnit(uint32_t* unit_ids, size_t count, Progress* progress) const;
  void EncodeUnit(const PieceMemo::Key& key, std::string_view unit, Scratch* scratch,
                  Progress* progress) const;
  void DecideUnit(std::string_view unit, Scratch* scratch) const;
  void EncodeStretches(std::string_view text, Scratch* scratch, Progress* progress) const;
  size_t DecideStretch(std::string_view text, float* score, std::vector<Place>* places) const;
  void AppendPiece(std::string_view piece, uint32_t id, std::vector<uint32_t>* ids) const;

  CharacterCuts cuts_;
  PieceTrie trie_;
  std::vector<float>
      scores_;  // by id, what it adds to a sum; of an unknown character's bytes, the first does
  float unknown_score_ = 0;
  uint32_t unknown_id_ = PieceTrie::kNone;
  size_t longest_unit_characters_ = 0;    // of those that are remembered
  std::array<uint32_t, 256> byte_ids_{};  // with byte fallback
  bool byte_fallback_, escapes_spaces_;
};

}  // namespace trainwright
