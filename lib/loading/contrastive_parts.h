/// The contrastive records of a chunk, as training takes them: whole, with every negative, so that which of
/// them are used is decided at load time, and with the length of each instruction, which pooling leaves out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/formats/shard.h"

namespace trainwright {

/// One text: an attention span of its own. Refers to the chunk.
struct ContrastiveText {
  std::span<const uint32_t> tokens;  ///< instruction and text, as the model reads them
  uint32_t instruction_tokens = 0;   ///< of these the first: read, not pooled; below tokens.size()
  uint64_t source_bytes = 0;         ///< bytes of the record's own text after the tokens
};

/// Refers to the chunk.
struct ContrastiveRecord {
  ContrastiveText query;
  std::vector<ContrastiveText> positives;  ///< at least one
  std::vector<ContrastiveText> negatives;  ///< in the record's order; may be empty
};

/// In stored order.
/// \param chunk of a set of RecordKind::kContrastive, as the readers of shards give it: its records are whole
std::vector<ContrastiveRecord> ContrastiveRecordsOf(const Chunk& chunk);

/// The longest texts that are taken, instructions included: longer ones lose their end.
struct TextLimits {
  int64_t query_tokens = 32;
  int64_t passage_tokens = 128;  ///< of a positive or negative
};

/// Whether a record has a positive, and each of its texts a token after its instruction within the limits.
bool FitsWithin(const TextLimits& limits, const ContrastiveRecord& record);

}  // namespace trainwright
