/// The documents of a chunk, whole or in part, put together again from their segments.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/formats/shard.h"

namespace trainwright {

/// One document, or a part of one, in a chunk: an attention span. Refers to the chunk.
struct DocumentPart {
  std::span<const uint32_t> tokens;
  std::span<const Segment> segments;  ///< of sft records one or more, of lm records one
  bool alone = false;                 ///< whether the token after it is to be ignored

  bool starts_document() const { return (segments.front().flags & kSegmentStartsMidDocument) == 0; }
  /// The token after the part when its document goes on elsewhere and that is not to be ignored, else kNoId.
  /// \param masked kNoId as well when the records say that it is not predicted
  uint32_t next_token(bool masked) const;
  /// Of each token, whether the records say that it is predicted (1) or not (0).
  std::vector<uint8_t> Predicted() const;
  /// Bytes of text after the tokens [begin, end): each segment's shared out evenly, exact in sum.
  /// \param masked of predicted tokens only
  uint64_t SourceBytes(uint64_t begin, uint64_t end, bool masked) const;
};

/// Leaves of the runs of predicted tokens the last one.
/// \param predicted as DocumentPart::Predicted gives it
void KeepLastRun(std::vector<uint8_t>* predicted);

/// In stored order, without padding.
std::vector<DocumentPart> PartsOf(const Chunk& chunk);

}  // namespace trainwright
