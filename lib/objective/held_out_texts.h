/// The contrastive records that an evaluation reads, and the passages that their queries search. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "lib/formats/shard.h"
#include "lib/loading/contrastive_parts.h"
#include "lib/loading/document_split.h"

namespace trainwright {

/// A text with its tokens.
struct HeldText {
  std::vector<uint32_t> tokens;
  uint32_t instruction_tokens = 0;
};

/// A record by the numbers of its passages.
struct HeldRecord {
  HeldText query;
  std::vector<uint64_t> positives, negatives;
};

/// Not thread-safe.
class HeldOutTexts {
 public:
  /// \param limits as in training
  explicit HeldOutTexts(const TextLimits& limits) : limits_(limits) {}
  /// The records of a chunk that the split holds out, or all without one; those whose instructions leave a
  /// text no token are left out.
  void AddChunk(const Chunk& chunk, const std::optional<DocumentSplit>& split);

  const std::vector<HeldRecord>& records() const { return records_; }
  /// Of all records, each but once.
  const std::vector<HeldText>& passages() const { return passages_; }
  uint64_t tokens() const { return tokens_; }

 private:
  HeldText Cut(const ContrastiveText& text, int64_t limit);
  /// \returns the passage's number, also where it was there before
  uint64_t AddPassage(const ContrastiveText& text);

  TextLimits limits_;
  std::vector<HeldRecord> records_;
  std::vector<HeldText> passages_;
  std::unordered_map<uint64_t, uint64_t> numbers_;  // of passages, by the hashes of all their tokens
  uint64_t tokens_ = 0;
};

}  // namespace trainwright
