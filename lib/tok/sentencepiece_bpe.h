/// SentencePiece BPE models, encoded without the library: with its ids, many times as fast; and those models
/// of tokenizer.json files that are BPE of characters.
///
/// A text is cut where nothing merges across (character_cuts.h). What lies between is remembered in a memo of
/// at most kMemoBytes for each thread that encodes at a time, and merged when it is new: characters, or
/// user-defined pieces, which never merge; then the pair whose piece has the highest score, of several the
/// leftmost. Ids do not depend on what is in the memo.
///
/// Invalid UTF-8 becomes one U+FFFD per bad byte, as in the library. Of a model that normalises, or removes
/// extra white space, the text is what sentencepiece_normalizer.h made, with its mark.
/// \source bpe_model.cc and sentencepiece_processor.cc of google/sentencepiece, v0.1.97
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/tok/added_token_matcher.h"
#include "lib/tok/byte_pair_merges.h"
#include "lib/tok/character_cuts.h"
#include "lib/tok/piece_memo.h"
#include "lib/tok/sentencepiece_model.h"
#include "lib/tok/text_pipeline.h"
#include "lib/tok/worker_pool.h"

namespace trainwright {

class SentencePieceBpe {
 public:
  static constexpr size_t kMemoBytes = 64 << 20;

  /// \returns null for a model that only the library encodes exactly, and why in `problem`
  static std::unique_ptr<SentencePieceBpe> Make(const SentencePieceModel& model, std::string* problem);

  /// \param pipeline of the model kBpe; without its normalizer and what cuts a text but for cut_before_marks,
  ///     and without ignore_merges
  explicit SentencePieceBpe(const TextPipeline& pipeline);

  /// Appends the ids of `text`. Thread-safe.
  /// \param mark whether the text gets the space at its beginning or end that the model asks for
  void Encode(std::string_view text, bool mark, std::vector<uint32_t>* ids) const;

 private:
  struct Worker {
    PieceMemo memo{kMemoBytes};
    BytePairMerges::Scratch scratch;
    std::string marked, normalized;
    std::vector<uint32_t> ids;
  };
  struct Vocabulary;
  struct Settings {
    uint32_t unknown_id = 0;
    bool byte_fallback = false, has_mark = true, mark_at_end = false;
    bool fuses_unknown = true;  // a run of unknown characters is one id
  };
  SentencePieceBpe(CharacterCuts cuts, Vocabulary vocabulary, const Settings& settings);
  static Settings SettingsOf(const SentencePieceModel& model);

  size_t EncodeFirstUnit(std::string_view text, Worker* worker, std::vector<uint32_t>* ids) const;
  void EncodeLastUnit(std::string_view text, size_t begin, Worker* worker, std::vector<uint32_t>* ids) const;
  void EncodeUnit(std::string_view unit, Worker* worker, std::vector<uint32_t>* ids) const;
  void EncodeUnit(const PieceMemo::Key& key, std::string_view unit, Worker* worker,
                  std::vector<uint32_t>* ids) const;
  void MergeUnit(std::string_view unit, Worker* worker) const;
  void MergeCharacters(std::string_view text, Worker* worker) const;
  void Emit(uint32_t symbol, std::vector<uint32_t>* ids, bool* after_unknown) const;
  uint32_t SymbolOf(uint32_t code_point) const;

  CharacterCuts cuts_;
  BytePairMerges merges_;
  std::unordered_map<uint32_t, uint32_t> characters_;  // ids of pieces of one character
  std::vector<AddedToken> user_defined_;
  AddedTokenMatcher user_defined_matcher_;
  std::unordered_map<uint32_t, std::pair<uint32_t, uint32_t>> unused_;  // what unused pieces fall apart into
  std::array<uint32_t, 256> byte_ids_{};                                // with byte fallback
  Settings settings_;
  mutable WorkerPool<Worker> workers_;
};

}  // namespace trainwright
