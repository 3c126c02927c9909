/// Tokenizers of tokenizer.json files that are no byte-level BPE: BPE of characters (Llama 2, Mistral, Gemma,
/// Phi-3), Unigram (T5, XLM-R, ALBERT), WordPiece (BERT), with the ids that Hugging Face tokenizers gives
/// without special tokens added.
///
/// Text that spells an added token becomes that token, special or not, as in the library. Of bytes that are
/// not UTF-8, which the library takes none of, each becomes one U+FFFD.
///
/// A text is normalised (text_normalizer.h), cut, and what is between the cuts is encoded by
/// sentencepiece_bpe.h, json_unigram.h or word_piece.h. Pieces of text are remembered in a memo of at most
/// kMemoBytes for each thread that encodes at a time, beside that of sentencepiece_bpe.h; ids do not depend
/// on what is in them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/tok/added_token_matcher.h"
#include "lib/tok/json_tokenizer.h"
#include "lib/tok/json_unigram.h"
#include "lib/tok/piece_memo.h"
#include "lib/tok/sentencepiece_bpe.h"
#include "lib/tok/text_decoder.h"
#include "lib/tok/text_normalizer.h"
#include "lib/tok/word_piece.h"
#include "lib/tok/worker_pool.h"

namespace trainwright {

class TextTokenizer final : public JsonTokenizer {
 public:
  static constexpr size_t kMemoBytes = 64 << 20;

  /// \param content the bytes of the file that `parsed`, which has a text_pipeline.h, was read from
  TextTokenizer(std::string content, TokenizerJson parsed);
  ~TextTokenizer() override;

  void Encode(std::string_view text, std::vector<uint32_t>* ids) const override;
  /// A space at the beginning that the tokenizer drops is the mark then.
  void EncodeContinued(std::string_view text, std::vector<uint32_t>* ids) const override;
  void EncodeUnmatched(std::string_view text, bool continued, std::vector<uint32_t>* ids) const override;
  bool marks_start() const override { return pipeline().marks_start(); }
  /// See reference_text_tokenizer.h.
  std::unique_ptr<Tokenizer> MakeReference() const override;
  /// As the library's with skip_special_tokens: special tokens stand for no text.
  std::string Decode(std::span<const uint32_t> ids) const override;
  DecodedId DecodedIdOf(uint32_t id) const override;

 private:
  /// What one thread encodes with.
  struct Worker {
    PieceMemo memo{kMemoBytes};
    JsonUnigram::Scratch scratch;
    std::vector<uint32_t> ids;
    std::string normalized, folded;
  };
  /// What is known of where a text begins.
  struct Start {
    bool marked = true;        ///< gets the mark that texts get
    bool at_origin = true;     ///< is the beginning of what was given to Encode
    bool after_space = false;  ///< continues, with a space that is dropped
  };

  const TextPipeline& pipeline() const { return *json().text; }
  /// The added tokens that are looked for in text as it is, and in normalised text.
  struct Matchers {
    const AddedTokenMatcher &raw, &normalized;
  };

  Start ContinuedStart(std::string_view text) const;
  void EncodeAll(std::string_view text, Start start, const Matchers& matchers,
                 std::vector<uint32_t>* ids) const;
  void EncodeStretch(std::string_view text, Start start, const AddedTokenMatcher& normalized_tokens,
                     Worker* worker, std::vector<uint32_t>* ids) const;
  void EncodePart(std::string_view text, Start start, Worker* worker, std::vector<uint32_t>* ids) const;
  void EncodeWords(std::string_view text, bool marked, Worker* worker, std::vector<uint32_t>* ids) const;
  void EncodeMarked(std::string_view text, Worker* worker, std::vector<uint32_t>* ids) const;
  void EncodePiece(std::string_view piece, Worker* worker, std::vector<uint32_t>* ids) const;
  void AskModel(std::string_view piece, Worker* worker, std::vector<uint32_t>* ids) const;
  bool DropsSpaceAt(std::string_view text) const;

  TextNormalizer normalizer_;
  AddedTokenMatcher raw_tokens_, normalized_tokens_, no_tokens_{{}, false};
  TextDecoder decoder_;
  std::unique_ptr<SentencePieceBpe> bpe_;
  std::optional<JsonUnigram> unigram_;
  std::optional<WordPiece> word_piece_;
  std::unordered_map<std::string, uint32_t> whole_pieces_;  // with ignore_merges
  bool has_normalized_tokens_ = false;
  bool only_marks_ = false;  // all that normalisation does is to put a mark before a text, or nothing
  mutable WorkerPool<Worker> workers_;
};

}  // namespace trainwright
