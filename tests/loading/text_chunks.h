/// Chunks of contrastive records and of documents whose every text is known by its tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/formats/shard.h"

namespace trainwright::test {

/// A text as tests know it: ids of its own.
struct PlainText {
  std::vector<uint32_t> instruction, pooled;
  std::vector<uint32_t> tokens() const {
    std::vector<uint32_t> all = instruction;
    all.insert(all.end(), pooled.begin(), pooled.end());
    return all;
  }
};

struct PlainRecord {
  PlainText query;
  std::vector<PlainText> positives, negatives;
};

/// Two bytes of source a pooled token.
inline void AddText(TextRole role, const PlainText& text, Chunk* chunk) {
  uint8_t goes_on = 0;
  if (!text.instruction.empty()) {
    chunk->segments.push_back({.tokens = static_cast<uint32_t>(text.instruction.size()),
                               .flags = static_cast<uint8_t>(RoleFlag(role) | kSegmentNoLoss)});
    goes_on = kSegmentContinuesPrevious;
  }
  chunk->segments.push_back({.tokens = static_cast<uint32_t>(text.pooled.size()),
                             .flags = static_cast<uint8_t>(RoleFlag(role) | goes_on),
                             .source_bytes = 2 * text.pooled.size()});
  for (const uint32_t token : text.tokens()) chunk->tokens.push_back(token);
}

inline void AddRecord(const PlainRecord& record, Chunk* chunk) {
  AddText(TextRole::kQuery, record.query, chunk);
  for (const PlainText& text : record.positives) AddText(TextRole::kPositive, text, chunk);
  for (const PlainText& text : record.negatives) AddText(TextRole::kNegative, text, chunk);
}

/// Records in chunks of one to three of them.
inline std::vector<Chunk> ChunksOf(const std::vector<PlainRecord>& records) {
  std::vector<Chunk> chunks;
  for (size_t i = 0; i < records.size();) {
    Chunk& chunk = chunks.emplace_back();
    const size_t size = 1 + chunks.size() % 3;
    for (const size_t end = i + size; i < end && i < records.size(); ++i) AddRecord(records[i], &chunk);
  }
  return chunks;
}

/// The token that record r's query has, alone; its positives have it plus 1, 2, ..., its negatives plus 11,
/// ...
inline uint32_t QueryToken(uint32_t record) {
  return 20 * record;
}

/// Records of one token a text, with the numbers from `first` on.
inline std::vector<PlainRecord> NumberedRecords(uint32_t count, uint32_t first = 0, uint32_t positives = 1,
                                                uint32_t negatives = 1) {
  std::vector<PlainRecord> records;
  for (uint32_t r = first; r < first + count; ++r) {
    PlainRecord& record = records.emplace_back();
    record.query.pooled = {QueryToken(r)};
    for (uint32_t i = 0; i < positives; ++i) record.positives.push_back({{}, {QueryToken(r) + 1 + i}});
    for (uint32_t i = 0; i < negatives; ++i) record.negatives.push_back({{}, {QueryToken(r) + 11 + i}});
  }
  return records;
}

/// Chunks of one to three documents of two tokens each: document d has d and d.
inline std::vector<Chunk> NumberedDocuments(uint32_t count, uint32_t first = 0) {
  std::vector<Chunk> chunks;
  for (uint32_t d = first; d < first + count;) {
    Chunk& chunk = chunks.emplace_back();
    const uint32_t size = static_cast<uint32_t>(1 + chunks.size() % 3);
    for (const uint32_t end = d + size; d < end && d < first + count; ++d) {
      chunk.segments.push_back({.tokens = 2, .source_bytes = 5});
      chunk.tokens.insert(chunk.tokens.end(), {d, d});
    }
  }
  return chunks;
}

}  // namespace trainwright::test
