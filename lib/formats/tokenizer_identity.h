/// Which tokenizer made a set of ids. Token streams and shards carry it whole, so that every consumer can
/// refuse ids of another tokenizer, and `train`, `evaluate` and `generate` need no tokenizer flag.
#pragma once

#include <cstdint>
#include <string>

#include "lib/base/checksum.h"

namespace trainwright {

/// Stands for "the tokenizer has no such id" in every format.
inline constexpr uint32_t kNoId = 0xFFFFFFFF;

/// The kind of a tokenizer of which nothing but the size of its vocabulary is known: ids of other programs.
inline constexpr char kUnknownTokenizerKind[] = "unknown";

struct TokenizerIdentity {
  std::string kind;       ///< "bytes", "sentencepiece", "tokenizer_json", "tiktoken" or kUnknownTokenizerKind
  Sha256Digest sha256{};  ///< of the model file's bytes; of the kind's name and version when there is no file
  uint32_t vocab_size = 0;  ///< every id is below it
  uint32_t bos_id = kNoId, eos_id = kNoId, pad_id = kNoId, unk_id = kNoId;
  std::string model;  ///< the model file's bytes; empty for "bytes" and the unknown one

  bool operator==(const TokenizerIdentity&) const = default;
};

}  // namespace trainwright
