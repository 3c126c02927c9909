#include "lib/objective/held_out_texts.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "lib/loading/text_draws.h"

namespace trainwright {

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
    if (!FitsWithin(limits_, record)) continue;
    HeldRecord held = {.query = Cut(record.query, limits_.query_tokens)};
    for (const ContrastiveText& text : record.positives) held.positives.push_back(AddPassage(text));
    for (const ContrastiveText& text : record.negatives) held.negatives.push_back(AddPassage(text));
    records_.push_back(std::move(held));
  }
}

}  // namespace trainwright
