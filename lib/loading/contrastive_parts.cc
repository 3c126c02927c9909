#include "lib/loading/contrastive_parts.h"

#include <algorithm>

#include "lib/formats/document_parts.h"

namespace trainwright {

std::vector<ContrastiveRecord> ContrastiveRecordsOf(const Chunk& chunk) {
  std::vector<ContrastiveRecord> records;
  for (const DocumentPart& part : PartsOf(chunk)) {
    ContrastiveText text = {.tokens = part.tokens};
    for (const Segment& segment : part.segments) {
      if ((segment.flags & kSegmentNoLoss) != 0) text.instruction_tokens += segment.tokens;
      text.source_bytes += segment.source_bytes;
    }
    switch (RoleOf(part.segments.front())) {
      case TextRole::kQuery:
        records.push_back({.query = text});
        break;
      case TextRole::kPositive:
        records.back().positives.push_back(text);
        break;
      case TextRole::kNegative:
        records.back().negatives.push_back(text);
        break;
    }
  }
  return records;
}

bool FitsWithin(const TextLimits& limits, const ContrastiveRecord& record) {
  const auto fits = [](const ContrastiveText& text, int64_t limit) {
    return static_cast<int64_t>(text.instruction_tokens) < limit;
  };
  const auto passage_fits = [&](const ContrastiveText& text) { return fits(text, limits.passage_tokens); };
  return !record.positives.empty() && fits(record.query, limits.query_tokens) &&
         std::all_of(record.positives.begin(), record.positives.end(), passage_fits) &&
         std::all_of(record.negatives.begin(), record.negatives.end(), passage_fits);
}

}  // namespace trainwright
