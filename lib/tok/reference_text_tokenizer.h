/// Tokenizers of text_tokenizer.h the slow way: what they are compared with.
///
/// Added tokens are tried one by one at every place; every piece is made as a text of its own, with U+2581
/// where the library has it; of all pairs of a BPE the one of the lowest rank merges, again and again; the
/// best way through a piece is found over all its parts, each looked up as a text; nothing is remembered.
/// Reading the file, normalizers and decoders are shared with TextTokenizer; those are tested against Hugging
/// Face tokenizers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/tok/reference_merges.h"
#include "lib/tok/text_normalizer.h"
#include "lib/tok/tokenizer.h"
#include "lib/tok/tokenizer_json.h"

namespace trainwright {

class ReferenceTextTokenizer final : public Tokenizer {
 public:
  /// \param original what is compared, which outlives this
  ReferenceTextTokenizer(TokenizerJson json, const Tokenizer* original);

  void Encode(std::string_view text, std::vector<uint32_t>* ids) const override;
  void EncodeContinued(std::string_view text, std::vector<uint32_t>* ids) const override;
  void EncodeUnmatched(std::string_view text, bool continued, std::vector<uint32_t>* ids) const override;
  bool marks_start() const override { return pipeline().marks_start(); }
  std::string method() const override { return "the suite's slow reading of tokenizer.json"; }
  const std::vector<SpecialToken>& special_tokens() const override { return original_.special_tokens(); }
  std::string Decode(std::span<const uint32_t> ids) const override { return original_.Decode(ids); }
  const TokenizerIdentity& identity() const override { return original_.identity(); }

 private:
  const TextPipeline& pipeline() const { return *json_.text; }
  /// \param added the added tokens that are looked for
  void EncodeFrom(std::string_view text, bool continued, const std::vector<AddedToken>& added,
                  std::vector<uint32_t>* ids) const;
  void EncodeStretch(std::string_view text, bool mark, bool origin, bool after_space,
                     const std::vector<AddedToken>& added, std::vector<uint32_t>* ids) const;
  std::vector<std::string> PiecesOf(const std::string& text, bool mark, bool origin) const;
  void EncodePiece(const std::string& piece, std::vector<uint32_t>* ids) const;
  void EncodeBpe(const std::string& piece, std::vector<uint32_t>* ids) const;
  void EncodeUnigram(const std::string& piece, std::vector<uint32_t>* ids) const;
  void EncodeWordPiece(const std::string& piece, std::vector<uint32_t>* ids) const;
  /// The ids of the bytes of what is no token; false when there is no byte fallback.
  bool AppendBytes(std::string_view text, std::vector<uint32_t>* ids) const;

  TokenizerJson json_;
  const Tokenizer& original_;
  TextNormalizer normalizer_;
  ReferenceMerges merges_;
  std::map<std::string, uint32_t, std::less<>> ids_;
  std::map<uint32_t, double> scores_;
  double unknown_score_ = 0;
  size_t longest_bytes_ = 0;
};

}  // namespace trainwright
