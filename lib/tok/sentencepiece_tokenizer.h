/// SentencePiece models (.model), encoded by libsentencepiece itself.
///
/// Ids are those of SentencePieceProcessor::Encode for the whole document. Invalid UTF-8 becomes one U+FFFD
/// per bad byte, as the library does. Literal U+2581 in the text is a space to the library, so Decode gives a
/// space.
///
/// The library needs some 100 bytes of memory per byte of text. Long documents are therefore cut and encoded
/// part by part wherever that provably gives the same ids: in a BPE model with byte fallback and no text
/// normalisation, a merge across two neighbouring characters makes a piece that holds them side by side, so
/// between two characters that no piece holds side by side no merge ever reaches across. Other models encode
/// whole.
#pragma once

#include <memory>

#include "lib/tok/sentencepiece_model.h"
#include "lib/tok/tokenizer.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace trainwright {

class SentencePieceTokenizer final : public Tokenizer {
 public:
  /// \param serialized_model the bytes of a .model file   \param name for messages
  /// \throws Error{kBadInput} when they are no SentencePiece model
  SentencePieceTokenizer(std::string serialized_model, const std::string& name);
  ~SentencePieceTokenizer() override;
  void Encode(std::string_view text, std::vector<uint32_t>* ids) const override;
  void EncodeContinued(std::string_view text, std::vector<uint32_t>* ids) const override;
  bool marks_start() const override { return model_.add_dummy_prefix && !model_.treat_whitespace_as_suffix; }
  /// Control pieces, and user-defined ones that are written like marks: "<mask>", "[INST]".
  const std::vector<SpecialToken>& special_tokens() const override { return special_tokens_; }
  /// As SentencePieceProcessor::Decode: control pieces (BOS, EOS) stand for no text, <unk> for " U+2047 ".
  std::string Decode(std::span<const uint32_t> ids) const override;
  const TokenizerIdentity& identity() const override { return identity_; }

  /// The first offset >= `from` at which `text` may be cut without changing any id; text.size() when there is
  /// none.
  size_t FindCut(std::string_view text, size_t from) const;

 private:
  /// Encodes in parts, the first by `processor`.
  void EncodeFrom(const sentencepiece::SentencePieceProcessor* processor, std::string_view text,
                  std::vector<uint32_t>* ids) const;

  TokenizerIdentity identity_;
  SentencePieceModel model_;
  bool may_cut_ = false;
  std::unique_ptr<sentencepiece::SentencePieceProcessor> whole_;
  std::vector<SpecialToken> special_tokens_;
  /// The same model without its dummy prefix, for every part of a document but the first; null when no part
  /// ever follows another.
  std::unique_ptr<sentencepiece::SentencePieceProcessor> continuation_;
};

}  // namespace trainwright
