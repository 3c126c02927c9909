/// SentencePiece models (.model), with the ids of SentencePieceProcessor::Encode for the whole document.
///
/// Unigram models are encoded by sentencepiece_unigram.h with the ids of version 0.2.3, whatever version is
/// installed; BPE models by sentencepiece_bpe.h; either after sentencepiece_normalizer.h where the text does
/// not stay as it is. libsentencepiece, which needs some 100 bytes of memory per byte of text, encodes for
/// models of words and of characters, and for the few BPE models that sentencepiece_bpe.h does not take.
/// Invalid UTF-8 becomes one U+FFFD per bad byte, as the library does. Literal U+2581 in the text is a space
/// to the library, so Decode gives a space.
#pragma once

#include <memory>
#include <optional>

#include "lib/tok/folder_special_tokens.h"
#include "lib/tok/sentencepiece_bpe.h"
#include "lib/tok/sentencepiece_model.h"
#include "lib/tok/sentencepiece_normalizer.h"
#include "lib/tok/sentencepiece_unigram.h"
#include "lib/tok/tokenizer.h"
#include "lib/tok/worker_pool.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace trainwright {

class SentencePieceTokenizer final : public Tokenizer {
 public:
  enum class Encoder { kFastest, kLibrary };

  /// \param serialized_model the bytes of a .model file
  /// \param name for messages
  /// \throws Error{kBadInput} when they are no SentencePiece model
  SentencePieceTokenizer(std::string serialized_model, const std::string& name,
                         Encoder encoder = Encoder::kFastest);
  ~SentencePieceTokenizer() override;
  /// The files beside a model may name another BOS and EOS than it does: they count where they are pieces of
  /// it. Padding and the unknown piece stay the model's.
  void TakeSpecialIds(const FolderSpecialTokens& named);
  /// As recorded with a stream.
  /// \returns false when one is not in the vocabulary
  bool TakeSpecialIds(const TokenizerIdentity& recorded);
  void Encode(std::string_view text, std::vector<uint32_t>* ids) const override;
  void EncodeContinued(std::string_view text, std::vector<uint32_t>* ids) const override;
  /// Of a library that encodes a unigram model: whether it is an old one, too.
  std::string method() const override;
  std::optional<LibraryIdentity> library() const override;
  /// The library.
  std::unique_ptr<Tokenizer> MakeReference() const override;
  /// Cuts of a unigram model whose scores are equal but for rounding, which older libraries decide otherwise.
  bool IsTie(std::span<const uint32_t> ids, std::span<const uint32_t> reference_ids) const override;
  bool marks_start() const override { return model_.add_dummy_prefix && !model_.treat_whitespace_as_suffix; }
  /// Control pieces, user-defined ones that are written like special tokens ("<mask>", "[INST]"), and what
  /// TakeSpecialIds took.
  const std::vector<SpecialToken>& special_tokens() const override { return special_tokens_; }
  /// As SentencePieceProcessor::Decode: control pieces (BOS, EOS) stand for no text, <unk> for " U+2047 ".
  /// What TakeSpecialIds took stands for none either.
  std::string Decode(std::span<const uint32_t> ids) const override;
  DecodedId DecodedIdOf(uint32_t id) const override;
  const TokenizerIdentity& identity() const override { return identity_; }

 private:
  struct Worker {
    std::string normalized;
    SentencePieceUnigram::Scratch scratch;
  };
  bool encodes_itself() const { return bpe_ != nullptr || unigram_ != nullptr; }
  void EncodeItself(std::string_view text, bool mark, std::vector<uint32_t>* ids) const;
  void MakeOwnEncoder(const std::string& name);
  /// BOS and EOS are special tokens, whatever the type of their pieces.
  void MakeEndsSpecial();
  /// Whether a piece that is no control piece stands for no text all the same.
  bool IsSilenced(uint32_t id) const;
  std::string DecodeAll(std::span<const uint32_t> ids) const;

  TokenizerIdentity identity_;
  SentencePieceModel model_;
  std::unique_ptr<SentencePieceNormalizer> normalizer_;  // null: text stays as it is
  // Both null: the library encodes, why is in library_reason_.
  std::unique_ptr<SentencePieceBpe> bpe_;
  std::unique_ptr<SentencePieceUnigram> unigram_;
  std::string library_reason_;
  std::unique_ptr<sentencepiece::SentencePieceProcessor> whole_;
  std::vector<SpecialToken> special_tokens_;
  uint32_t control_id_ = kNoId;  ///< of a control piece
  /// The same model without its dummy prefix, for text that goes on; null when it has none.
  std::unique_ptr<sentencepiece::SentencePieceProcessor> continuation_;
  mutable WorkerPool<Worker> workers_;
};

}  // namespace trainwright
