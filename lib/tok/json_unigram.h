/// Unigram models of tokenizer.json files: of all ways to cut a text into tokens, the one whose scores have
/// the greatest sum, as Hugging Face tokenizers decides it, which is not as SentencePiece does.
///
/// Sums are formed in double from the beginning of the text on, a token's score added to the best sum at its
/// beginning. A sum replaces another at the same place when it is greater; of equal ones stays that whose
/// last token is the longest. A character that is no token is unknown and has the least score of all tokens
/// less 10. What a run of unknown characters spells is looked for among the tokens; then, with byte fallback,
/// becomes its bytes; else one <unk>.
///
/// At a place that nothing reaches across all ways meet, so what is before is decided: memory is that of the
/// longest stretch without one. Time is linear in the text, times the longest token. Immutable after
/// construction and thread-safe.
///
/// Words. Where no token has a space after its first byte, nothing reaches across the beginning of a word,
/// and the words of a text of more than PieceMemo::kMaxPieceBytes are remembered, in a memo of kMemoBytes at
/// most. Which way through a word is the best depends on the sum at its beginning by rounding alone, as
/// sentencepiece_unigram.h explains: of sums up to kLargestStart an addition is off by at most 2^-33, so a
/// way through a word of n characters that is better than any other by more than 2 n 2^-33 is the best at
/// any of them. A word where it is not, or with unknown characters, is decided again each time.
/// \source encode_optimized and tokenize of models/unigram/model.rs of Hugging Face tokenizers, v0.23
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/tok/piece_memo.h"
#include "lib/tok/piece_trie.h"
#include "lib/tok/text_pipeline.h"

namespace trainwright {

class JsonUnigram {
 public:
  /// \param pipeline of the model kUnigram
  explicit JsonUnigram(const TextPipeline& pipeline);

  static constexpr size_t kMemoBytes = 64 << 20;
  static constexpr double kLargestStart = 0x1p20;

  /// The best way to a place, of those that were found so far.
  struct Place {
    double score = 0;
    uint32_t begin = kUnreached;  ///< of the last token
    uint32_t id = 0;
    static constexpr uint32_t kUnreached = UINT32_MAX;
  };
  /// The best way to a place of a word, and how good the second best is, from the word's beginning.
  struct UnitPlace {
    double best = 0, second = 0;
    uint32_t begin = 0;
    uint32_t id = 0;
  };
  /// What one call works with; may be used again, by one call at a time, for the same model.
  struct Scratch {
    std::vector<Place> places;
    std::vector<uint32_t> ends;
    PieceMemo memo{kMemoBytes};
    std::vector<UnitPlace> unit_places;
    std::vector<uint32_t> unit_ids;
  };

  /// Appends the ids of a text.
  /// \param text valid UTF-8, of less than 2^32 bytes; with ' ' for U+2581 where the pipeline folds spaces
  void Encode(std::string_view text, Scratch* scratch, std::vector<uint32_t>* ids) const;

 private:
  /// How far a text is encoded.
  struct Progress {
    double score = 0;
    size_t unknown_begin = 0, done = 0;  ///< what is between is unknown
  };
  void Flush(std::string_view text, const Progress& progress, std::vector<uint32_t>* ids) const;
  bool TakeWord(std::string_view text, std::string_view word, Scratch* scratch, Progress* progress,
                std::vector<uint32_t>* ids) const;
  bool DecideWord(std::string_view word, Scratch* scratch) const;
  void EncodeStretches(std::string_view text, size_t end, Scratch* scratch, Progress* progress,
                       std::vector<uint32_t>* ids) const;
  size_t DecideStretch(std::string_view text, double* score, std::vector<Place>* places) const;
  void AppendUnknown(std::string_view text, std::vector<uint32_t>* ids) const;

  std::unordered_map<std::string, uint32_t> ids_;
  PieceTrie trie_;
  std::vector<double> scores_;
  double unknown_score_ = 0;
  uint32_t unknown_id_;
  std::array<uint32_t, 256> byte_ids_{};
  bool byte_fallback_, folds_spaces_;
  size_t longest_word_ = 0;     // that is remembered, in bytes
  bool cuts_at_spaces_ = true;  // no token has a space after its first byte
};

}  // namespace trainwright
