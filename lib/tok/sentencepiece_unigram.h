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
/// At a place that nothing reaches across all ways meet, so what is before is decided, and only its sum is
/// carried on: memory is that of the longest stretch without one. Time is linear in the text, times the
/// longest piece.
/// \source unigram_model.cc and sentencepiece_processor.cc of google/sentencepiece v0.2.3
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/tok/piece_trie.h"
#include "lib/tok/sentencepiece_model.h"

namespace trainwright {

class SentencePieceUnigram {
 public:
  /// \param name of the model, for messages
  /// \throws Error{kBadInput} for what the library refuses, too: a score that is no finite number, a piece that
  ///     is empty, of 8,000 bytes or more, with a NUL, or there twice; no pieces at all
  SentencePieceUnigram(const SentencePieceModel& model, const std::string& name);

  /// The best way to the place where it stands in `places`, of those that were found so far.
  struct Place {
    float score = 0;
    uint32_t begin = kUnreached;  ///< of the last piece
    uint32_t id = 0;
    static constexpr uint32_t kUnreached = UINT32_MAX;
  };
  /// What one call works with; may be used again, by one call at a time.
  struct Scratch {
    std::vector<Place> places;
    std::vector<uint32_t> ends;
  };

  /// Appends the ids of a text.
  /// \param text what SentencePieceNormalizer made
  void Encode(std::string_view text, Scratch* scratch, std::vector<uint32_t>* ids) const;

 private:
  void ReadPiece(const SentencePieceModel::Piece& piece, uint32_t id);
  size_t DecideStretch(std::string_view text, float* score, std::vector<Place>* places) const;
  void Emit(std::string_view text, Scratch* scratch, bool* after_unknown, std::vector<uint32_t>* ids) const;

  PieceTrie trie_;
  std::vector<float> scores_;  // by id
  float unknown_score_ = 0;
  uint32_t unknown_id_ = 0;
  std::array<uint32_t, 256> byte_ids_{};  // with byte fallback
  bool byte_fallback_, escapes_spaces_;
};

}  // namespace trainwright
