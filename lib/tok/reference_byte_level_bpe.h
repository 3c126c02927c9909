/// Byte-level BPE the slow way: what ByteLevelBpeTokenizer is compared with.
///
/// The regular expression is matched by backtracking, added tokens are tried one by one at every place, and
/// of all pairs the one of the lowest rank merges, again and again; nothing is remembered. Reading the file,
/// classes of characters and NFC are shared with ByteLevelBpeTokenizer; those are tested against Hugging Face
/// tokenizers.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/tok/pretoken_pattern.h"
#include "lib/tok/reference_merges.h"
#include "lib/tok/tokenizer.h"
#include "lib/tok/tokenizer_json.h"

namespace trainwright {

class ReferenceByteLevelBpe final : public Tokenizer {
 public:
  /// \param original what is compared, which outlives this
  ReferenceByteLevelBpe(TokenizerJson json, const Tokenizer* original);

  void Encode(std::string_view text, std::vector<uint32_t>* ids) const override;
  void EncodeContinued(std::string_view text, std::vector<uint32_t>* ids) const override;
  void EncodeUnmatched(std::string_view text, bool continued, std::vector<uint32_t>* ids) const override;
  bool marks_start() const override { return json_.add_prefix_space; }
  std::string method() const override { return "the suite's slow byte-level BPE"; }
  const std::vector<SpecialToken>& special_tokens() const override { return original_.special_tokens(); }
  std::string Decode(std::span<const uint32_t> ids) const override { return original_.Decode(ids); }
  const TokenizerIdentity& identity() const override { return original_.identity(); }

 private:
  void EncodeAll(std::string_view text, bool mark, std::vector<uint32_t>* ids) const;
  void EncodeNormalized(std::string_view text, bool mark, std::vector<uint32_t>* ids) const;
  void EncodeText(std::string text, bool mark, std::vector<uint32_t>* ids) const;
  void EncodePiece(std::string_view piece, std::vector<uint32_t>* ids) const;

  const TokenizerJson json_;
  const Tokenizer& original_;
  std::optional<PretokenPattern> pattern_;
  ReferenceMerges merges_;
  std::map<std::string, uint32_t, std::less<>> whole_pieces_;
};

}  // namespace trainwright
