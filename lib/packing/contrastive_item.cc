#include "lib/packing/contrastive_item.h"

#include <algorithm>

namespace trainwright {

void ContrastiveItem::Clear() {
  tokens_.clear();
  texts_.clear();
  tokens_dropped_ = 0;
  level_ = UINT64_MAX;
}

void ContrastiveItem::Add(const DocumentPiece& piece) {
  if (piece.begins_text) texts_.push_back({.role = piece.role});
  Text& text = texts_.back();
  if (text.shortened) {
    tokens_dropped_ += piece.tokens.size();
    return;
  }
  text.tokens += piece.tokens.size();
  (piece.loss ? text.pooled_bytes : text.instruction_bytes) += piece.source_bytes;
  if (!piece.loss) text.instruction_tokens += piece.tokens.size();
  tokens_.insert(tokens_.end(), piece.tokens.begin(), piece.tokens.end());
}

bool ContrastiveItem::ShortenTo(uint64_t most_tokens) {
  const auto size_at = [&](uint64_t level) {
    uint64_t sum = 0;
    for (const Text& text : texts_) sum += std::min(text.tokens, std::max(level, text.least()));
    return sum;
  };
  if (size_at(0) > most_tokens) return false;
  if (size_at(level_) > most_tokens) {
    uint64_t fits = 0, too_high = std::min(level_, most_tokens + 1);
    while (too_high - fits > 1) {
      const uint64_t middle = fits + (too_high - fits) / 2;
      (size_at(middle) <= most_tokens ? fits : too_high) = middle;
    }
    level_ = fits;
  }
  auto from = tokens_.begin(), to = tokens_.begin();
  for (Text& text : texts_) {
    const auto next = from + static_cast<ptrdiff_t>(text.tokens);
    const uint64_t kept = std::min(text.tokens, std::max(level_, text.least()));
    to = std::copy(from, from + static_cast<ptrdiff_t>(kept), to);
    from = next;
    if (kept == text.tokens) continue;
    const uint64_t pooled = text.tokens - text.instruction_tokens,
                   pooled_kept = kept - text.instruction_tokens;
    text.pooled_bytes =
        static_cast<uint64_t>(static_cast<unsigned __int128>(text.pooled_bytes) * pooled_kept / pooled);
    tokens_dropped_ += text.tokens - kept;
    text.tokens = kept;
    text.shortened = true;
  }
  tokens_.erase(to, tokens_.end());
  return true;
}

std::vector<Segment> ContrastiveItem::Segments() const {
  std::vector<Segment> segments;
  for (const Text& text : texts_) {
    const uint8_t role = RoleFlag(text.role);
    if (text.instruction_tokens > 0) {
      segments.push_back({.tokens = static_cast<uint32_t>(text.instruction_tokens),
                          .flags = static_cast<uint8_t>(role | kSegmentNoLoss),
                          .source_bytes = text.instruction_bytes});
    }
    const uint8_t continues = text.instruction_tokens > 0 ? kSegmentContinuesPrevious : 0;
    segments.push_back({.tokens = static_cast<uint32_t>(text.tokens - text.instruction_tokens),
                        .flags = static_cast<uint8_t>(role | continues),
                        .source_bytes = text.pooled_bytes});
  }
  return segments;
}

}  // namespace trainwright
