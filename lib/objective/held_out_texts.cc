#include "lib/objective/held_out_texts.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "lib/loading/text_draws.h"

namespace trainwright {

bool HeldOutTexts::Fits(const ContrastiveRecord& record) const {
  const auto passage_fits = [&](const ContrastiveText& text) {
    return static_cast<int64_t>(text.instruction_tokens) < limits_.passage_tokens;
  };
  return static_cast<int64_t>(record.query.instruction_tokens) < limits_.query_tokens &&
         !record.positives.empty() &&
         std::all_of(record.positives.begin(), record.positives.end(), passage_fits) &&
         std::all_of(record.negatives.begin(), record.negatives.end(), passage_fits);
}

HeldText HeldOutTexts::Cut(const ContrastiveText& text, int64_t limit) {
  const size_t kept = std::min(text.tokens.size(), static_cast<size_t>(limit));
  tokens_ += kept;
  return {.tokens = {text.tokens.begin(), text.tokens.begin() + static_cast<std::ptrdiff_t>(kept)},
          .instruction_tokens = text.instruction_tokens};
}

uint64_t HeldOutTexts::AddPassage(const ContrastiveText& text) {
  HeldText passage = Cut(text, limits_.passage_tokens);
  const auto [known, is_new] = numbers_.try_emplace(HashOfTokens(passage.tokens), passages_.size());
  if (is_new) passages_.push_back(std::move(passage));
  return known->second;
}

void HeldOutTexts::AddChunk(const Chunk& chunk, const std::optional<DocumentSplit>& split) {
  for (const ContrastiveRecord& record : ContrastiveRecordsOf(chunk, split, /*held_out=*/true)) {
    if (!Fits(record)) continue;
    HeldRecord held = {.query = Cut(record.query, limits_.query_tokens)};
    for (const ContrastiveText& text : record.positives) held.positives.push_back(AddPassage(text));
    for (const ContrastiveText& text : record.negatives) held.negatives.push_back(AddPassage(text));
    records_.push_back(std::move(held));
  }
}

uint64_t ForEachChunk(const ShardSet& set, const ShardSetPart& part, bool skip_bad,
                      const std::function<bool(const Chunk&)>& use) {
  uint64_t frames_skipped = 0;
  for (uint64_t next = part.first_chunk; next < part.first_chunk + part.chunks;) {
    const PassFrame frame = ReadPassFrame(set, next, skip_bad);
    frames_skipped += frame.skipped ? 1 : 0;
    for (const Chunk& chunk : frame.chunks) {
      if (!use(chunk)) return frames_skipped;
    }
    next = frame.next_chunk;
  }
  return frames_skipped;
}

}  // namespace trainwright
