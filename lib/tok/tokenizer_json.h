/// Hugging Face tokenizer.json files, read strictly: what this build does not do exactly as the library does
/// is refused by name.
///
/// Of byte-level BPE, known by the pre-tokenizer ByteLevel, are read the model BPE, without dropout,
/// byte_fallback, fuse_unk, affixes; the normalizer NFC or none; the pre-tokenizers ByteLevel, Digits of
/// single digits before ByteLevel, Split by a regular expression of pretokens.h before ByteLevel; the decoder
/// ByteLevel. What is read of all others says text_pipeline.h. Of either, added tokens are read, and of the
/// post-processor the special tokens at both ends: the suite adds BOS and EOS itself. Truncation and padding
/// are checked and ignored.
/// \source the Rust sources of Hugging Face tokenizers, v0.23
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/tok/byte_pair_merges.h"
#include "lib/tok/pretokens.h"
#include "lib/tok/text_pipeline.h"

namespace trainwright {

/// A token that is looked for in the text before it is cut.
struct AddedToken {
  std::string content;  ///< as the file writes it
  /// What is looked for: normalised content, if `normalized`; with ' ' for U+2581 where the normalizer of a
  /// text_pipeline.h makes the two one.
  std::string pattern;
  uint32_t id = 0;
  bool single_word = false;  ///< only where no word character comes beside it
  bool left_strip = false;   ///< with the white space before it
  bool right_strip = false;  ///< with the white space after it
  bool normalized = false;   ///< looked for in the normalised text, after all those that are not
  bool special = false;      ///< stands for no text
};

struct TokenizerJson {
  struct Token {
    std::string bytes;  ///< what it stands for
    bool in_model = false;
    bool spells_bytes = false;  ///< written in the characters that stand for bytes, and so found in text
    bool special = false;
  };
  std::vector<Token> tokens;             ///< by id; ids that the file leaves out have no text
  std::array<uint32_t, 256> byte_ids{};  ///< kNoId: the byte is dropped
  std::vector<BytePairMerge> merges;
  bool ignore_merges = false;  ///< a piece that is a token becomes that token
  std::vector<AddedToken> added_tokens;
  bool nfc = false;
  bool cut_digits = false;  ///< every digit is a piece, before `cut_rule` cuts what is between
  bool add_prefix_space = false;
  CutRule cut_rule = CutRule::kNone;
  /// Of what is no byte-level BPE; the members from `byte_ids` on but for added_tokens are unused then.
  std::optional<TextPipeline> text;
  uint32_t bos_id = kNoId, eos_id = kNoId, pad_id = kNoId, unk_id = kNoId;
};

/// \param content the bytes of the file
/// \param name for messages
/// \throws Error{kBadInput} when it is malformed, or is a tokenizer that this build does not encode exactly
TokenizerJson ParseTokenizerJson(std::string_view content, const std::string& name);

/// The id of an added token or one of the model, by how the file writes it, as the library's token_to_id; or
/// kNoId.
uint32_t IdOfToken(const TokenizerJson& json, std::string_view content);

}  // namespace trainwright
