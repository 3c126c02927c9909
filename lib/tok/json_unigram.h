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
/// \source encode_optimized and tokenize of models/unigram/model.rs of Hugging Face tokenizers, v0.23
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/tok/piece_trie.h"
#include "lib/tok/text_pipeline.h"

namespace trainwright {

class JsonUnigram {
 public:
  /// \param pipeline of the model kUnigram
  explicit JsonUnigram(const TextPipeline& pipeline);

  /// The best way to a place, of those that were found so far.
  struct Place {
    double score = 0;
    uint32_t begin = kUnreached;  ///< of the last token
    uint32_t id = 0;
    static constexpr uint32_t kUnreached = UINT32_MAX;
  };
  /// What one call works with; may be used again, by one call at a time, for the same model.
  struct Scratch {
    std::vector<Place> places;
    std::vector<uint32_t> ends;
  };

  /// Appends the ids of a text.
  /// \param text valid UTF-8, of less than 2^32 bytes; with ' ' for U+2581 where the pipeline folds spaces
  void Encode(std::string_view text, Scratch* scratch, std::vector<uint32_t>* ids) const;

 private:
  size_t DecideStretch(std::string_view text, double* score, std::vector<Place>* places) const;
  void AppendUnknown(std::string_view text, std::vector<uint32_t>* ids) const;

  std::unordered_map<std::string, uint32_t> ids_;
  PieceTrie trie_;
  std::vector<double> scores_;
  double unknown_score_ = 0;
  uint32_t unknown_id_;
  std::array<uint32_t, 256> byte_ids_{};
  bool byte_fallback_, folds_spaces_;
};

}  // namespace trainwright
