/// SentencePiece models (.model), with the ids of SentencePieceProcessor::Encode for the whole document.
///
/// BPE models whose text stays as it is are encoded by sentencepiece_bpe.h, all others (unigram models,
/// models that normalise) by libsentencepiece, which needs some 100 bytes of memory per byte of text. Invalid
/// UTF-8 becomes one U+FFFD per bad byte, as the library does. Literal U+2581 in the text is a space to the
/// library, so Decode gives a space.
#pragma once

#include <memory>

#include "lib/tok/sentencepiece_bpe.h"
#include "lib/tok/sentencepiece_model.h"
#include "lib/tok/tokenizer.h"

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
  void Encode(std::string_view text, std::vector<uint32_t>* ids) const override;
  void EncodeContinued(std::string_view text, std::vector<uint32_t>* ids) const override;
  std::string method() const override;
  /// The library.
  std::unique_ptr<Tokenizer> MakeReference() const override;
  bool marks_start() const override { return model_.add_dummy_prefix && !model_.treat_whitespace_as_suffix; }
  /// Control pieces, and user-defined ones that are written like special tokens: "<mask>", "[INST]".
  const std::vector<SpecialToken>& special_tokens() const override { return special_tokens_; }
  /// As SentencePieceProcessor::Decode: control pieces (BOS, EOS) stand for no text, <unk> for " U+2047 ".
  std::string Decode(std::span<const uint32_t> ids) const override;
  const TokenizerIdentity& identity() const override { return identity_; }

 private:
  TokenizerIdentity identity_;
  SentencePieceModel model_;
  std::unique_ptr<SentencePieceBpe> bpe_;  // null: the library encodes, why is in library_reason_
  std::string library_reason_;
  std::unique_ptr<sentencepiece::SentencePieceProcessor> whole_;
  std::vector<SpecialToken> special_tokens_;
  /// The same model without its dummy prefix, for text that goes on; null when it has none.
  std::unique_ptr<sentencepiece::SentencePieceProcessor> continuation_;
};

}  // namespace trainwright
