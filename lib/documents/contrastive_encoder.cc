#include "lib/documents/contrastive_encoder.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

constexpr uint64_t kCharactersPerToken = 10;

/// The first `characters` Unicode characters of valid UTF-8.
std::string_view FirstCharacters(std::string_view text, uint64_t characters) {
  if (text.size() <= characters) return text;
  size_t end = 0;
  while (end < text.size() && characters > 0) {
    do ++end;
    while (end < text.size() && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80);
    --characters;
  }
  return text.substr(0, end);
}

/// Keeps `most` tokens of an encoded text, of which the pooled run is the last: the first ones, and the last
/// `after`.
void CutTo(uint64_t most, uint64_t after, EncodedChat* chat) {
  LossRun& pooled = chat->runs.back();
  const uint64_t kept = pooled.tokens - (chat->ids.size() - most);
  pooled.source_bytes =
      static_cast<uint64_t>(static_cast<unsigned __int128>(pooled.source_bytes) * kept / pooled.tokens);
  pooled.tokens = kept;
  const auto end = chat->ids.end() - static_cast<ptrdiff_t>(after);
  chat->ids.erase(chat->ids.begin() + static_cast<ptrdiff_t>(most - after), end);
}

}  // namespace

ContrastiveEncoder::Fit ContrastiveEncoder::Check(const ContrastiveExample& example) const {
  if (cut_ == TextCut::kAsTokenizers) return Fit::kFits;
  for (const InstructedText& text : example.texts) {
    const uint64_t limit = limits_.of(text.role);
    if (limit > 0 && CountCharacters(text.instruction) > kCharactersPerToken * limit) {
      return Fit::kInstructionHasTooManyCharacters;
    }
  }
  return Fit::kFits;
}

std::optional<DocumentProblem> ContrastiveEncoder::Encode(const ContrastiveExample& example,
                                                          EncodedRecord* record, Fit* fit) const {
  record->ids.clear();
  record->runs.clear();
  record->tokenizer_calls = record->texts_cut = 0;
  *fit = Check(example);
  if (*fit != Fit::kFits) return std::nullopt;
  const bool as_trained = cut_ == TextCut::kAsTrained;
  // A text without a limit is looked at whole.
  const bool limited = as_trained && limits_.query_tokens > 0 && limits_.passage_tokens > 0;
  const uint64_t most_characters =
      limited ? kCharactersPerToken * std::max(limits_.query_tokens, limits_.passage_tokens) : UINT64_MAX;
  EncodedChat chat;
  for (const InstructedText& text : example.texts) {
    const std::string_view looked_at = FirstCharacters(text.text, most_characters);
    texts_->EncodeText(text.instruction, looked_at, &chat);
    record->tokenizer_calls += chat.tokenizer_calls;
    std::erase_if(chat.runs, [](const LossRun& run) { return run.tokens == 0; });
    if (chat.runs.empty() || !chat.runs.back().loss) {
      return DocumentProblem{SkipReason::kEmptyText,
                             std::string("a text of \"") + TextRoleName(text.role) + "\" has no tokens",
                             {},
                             {}};
    }
    const uint64_t limit = limits_.of(text.role);
    const uint64_t kept_after = as_trained ? 0 : chat.tokens_after_text;
    const uint64_t around_text = chat.ids.size() - chat.runs.back().tokens + kept_after;
    const bool too_long = limit > 0 && chat.ids.size() > limit;
    if (too_long && around_text >= limit) {
      *fit = Fit::kInstructionHasTooManyTokens;
      return std::nullopt;
    }
    if (too_long) CutTo(limit, kept_after, &chat);
    record->texts_cut += too_long || looked_at.size() < text.text.size() ? 1 : 0;
    for (LossRun& run : chat.runs) run.role = text.role;
    chat.runs.front().begins_text = true;
    record->ids.insert(record->ids.end(), chat.ids.begin(), chat.ids.end());
    record->runs.insert(record->runs.end(), chat.runs.begin(), chat.runs.end());
  }
  return std::nullopt;
}

}  // namespace trainwright
