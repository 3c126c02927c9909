/// Byte-level BPE tokenizers of tokenizer.json files (GPT-2, GPT-NeoX, Llama 3, Qwen2, SmolLM2), with the ids
/// that Hugging Face tokenizers gives without special tokens added.
///
/// Text that spells an added token becomes that token, special or not, as in the library. Bytes that are not
/// UTF-8, which the library takes none of, are encoded as they are and come back from Decode.
///
/// Pieces of text are remembered in a memo of at most kMemoBytes for each thread that encodes at a time; ids
/// do not depend on what is in it.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/tok/added_token_matcher.h"
#include "lib/tok/ascii_block.h"
#include "lib/tok/byte_pair_merges.h"
#include "lib/tok/json_tokenizer.h"
#include "lib/tok/piece_memo.h"
#include "lib/tok/tokenizer_json.h"
#include "lib/tok/worker_pool.h"

namespace trainwright {

class ByteLevelBpeTokenizer final : public JsonTokenizer {
 public:
  static constexpr size_t kMemoBytes = 64 << 20;

  /// \param content the bytes of a tokenizer.json file
  /// \param name for messages
  /// \throws Error{kBadInput} as ParseTokenizerJson, and for other tokenizers
  ByteLevelBpeTokenizer(std::string content, const std::string& name);
  /// \param kind of the identity
  /// \param content the bytes of the file that `parsed` was read from
  ByteLevelBpeTokenizer(std::string kind, std::string content, TokenizerJson parsed);
  ~ByteLevelBpeTokenizer() override;

  void Encode(std::string_view text, std::vector<uint32_t>* ids) const override;
  void EncodeContinued(std::string_view text, std::vector<uint32_t>* ids) const override;
  void EncodeUnmatched(std::string_view text, bool continued, std::vector<uint32_t>* ids) const override;
  /// The space that ByteLevel puts before a text, with add_prefix_space.
  bool marks_start() const override { return json().add_prefix_space; }
  /// See reference_byte_level_bpe.h.
  std::unique_ptr<Tokenizer> MakeReference() const override;
  /// Special tokens stand for no text, as for the library with skip_special_tokens. Bytes come back as they
  /// are, where the library puts U+FFFD for those that are not UTF-8.
  std::string Decode(std::span<const uint32_t> ids) const override;
  DecodedId DecodedIdOf(uint32_t id) const override;

 private:
  /// What one thread encodes with.
  struct Worker {
    PieceMemo memo{kMemoBytes};
    BytePairMerges::Scratch scratch;
    std::string normalized, prefixed;
  };

  void EncodeAll(std::string_view text, bool prefix_first, std::vector<uint32_t>* ids) const;
  void EncodeText(std::string_view text, bool prefix, Worker* worker, std::vector<uint32_t>* ids) const;
  template <CutRule rule, bool cut_digits>
  void EncodeCut(std::string_view text, Worker* worker, std::vector<uint32_t>* ids) const;
  size_t FindDigit(std::string_view text, size_t from, size_t* size) const;
  void EncodePiece(const PieceMemo::Key& key, std::string_view piece, Worker* worker,
                   std::vector<uint32_t>* ids) const;

  BytePairMerges merges_;
  AddedTokenMatcher raw_tokens_, normalized_tokens_;
  std::unordered_map<std::string_view, uint32_t> whole_pieces_;  // with ignore_merges
  const uint8_t* classes_;
  ReadAsciiBlockFunction read_block_;
  mutable WorkerPool<Worker> workers_;
};

}  // namespace trainwright
