#include "lib/loading/contrastive_cutter.h"

#include <algorithm>
#include <span>
#include <vector>

#include "lib/base/error.h"

namespace trainwright {
namespace {

constexpr int kUseShift = 30;
constexpr uint32_t kInstructionMask = (uint32_t{1} << kUseShift) - 1;

}  // namespace

uint32_t EncodeTextTag(const TextTag& tag) {
  TRAINWRIGHT_CHECK(tag.instruction_tokens <= kInstructionMask);
  return static_cast<uint32_t>(tag.use) << kUseShift | tag.instruction_tokens;
}

TextTag DecodeTextTag(uint32_t tag) {
  return {.use = static_cast<TextUse>(tag >> kUseShift), .instruction_tokens = tag & kInstructionMask};
}

ContrastiveCutter::ContrastiveCutter(RecordKind records, const ContrastiveCutterOptions& options)
    : options_(options) {
  if (options_.query_tokens < 1) {
    throw Error(ErrorCode::kUsage, "--query-max-len", "must be at least 1 token");
  }
  if (options_.passage_tokens < 1) {
    throw Error(ErrorCode::kUsage, "--passage-max-len", "must be at least 1 token");
  }
  if (records != RecordKind::kContrastive) {
    throw Error(ErrorCode::kBadInput, "shards", "hold no contrastive records, so there is nothing to pool",
                "", "make the stream with pretokenize --records contrastive");
  }
}

void ContrastiveCutter::AddText(TextUse use, const ContrastiveText& text, SampleWindow* window) const {
  const auto limit =
      static_cast<size_t>(use == TextUse::kQuery ? options_.query_tokens : options_.passage_tokens);
  const size_t kept = std::min(limit, text.tokens.size());
  uint64_t source_bytes = text.source_bytes;
  if (kept < text.tokens.size()) {
    ++window->cuts.shortened;
    // The bytes are those of the text behind the instruction: its share of them.
    const uint64_t pooled = text.tokens.size() - text.instruction_tokens;
    source_bytes = static_cast<uint64_t>(static_cast<unsigned __int128>(source_bytes) *
                                         (kept - text.instruction_tokens) / pooled);
  }
  window->spans.push_back(
      {.begin = window->tokens.size(),
       .tokens = static_cast<uint32_t>(kept),
       .next_token = kNoId,
       .source_bytes = source_bytes,
       .starts_document = use == TextUse::kQuery,
       .tag = EncodeTextTag({.use = use, .instruction_tokens = text.instruction_tokens})});
  window->tokens.Append(text.tokens.first(kept));
}

uint64_t ContrastiveCutter::AddTexts(TextUse use, std::span<const ContrastiveText> texts, uint64_t taken,
                                     SampleWindow* window) const {
  uint64_t tokens = 0;
  for (const ContrastiveText& text : texts) {
    AddText(use, text, window);
    tokens += window->spans.back().tokens;
  }
  return texts.empty() ? 0 : (tokens * taken + texts.size() / 2) / texts.size();
}

void ContrastiveCutter::Cut(const Chunk& chunk, SampleWindow* window) const {
  const TextLimits limits = {.query_tokens = options_.query_tokens,
                             .passage_tokens = options_.passage_tokens};
  for (const ContrastiveRecord& record : ContrastiveRecordsOf(chunk, options_.split, /*held_out=*/false)) {
    if (!FitsWithin(limits, record)) {
      ++window->cuts.left_out;
      continue;
    }
    SampleWindow::Entry sample{.span_begin = static_cast<uint32_t>(window->spans.size()), .labels = 1};
    const uint64_t positives = record.positives.size(), negatives = record.negatives.size();
    const auto& choice = options_.choice;
    uint64_t tokens = AddTexts(TextUse::kQuery, {&record.query, 1}, 1, window);
    tokens += AddTexts(TextUse::kPositive, record.positives,
                       choice ? choice->positives_of(positives) : positives, window);
    tokens += AddTexts(TextUse::kNegative, record.negatives,
                       choice ? choice->negatives_of(negatives) : negatives, window);
    sample.span_end = static_cast<uint32_t>(window->spans.size());
    sample.tokens = static_cast<uint32_t>(std::min<uint64_t>(tokens, UINT32_MAX));
    window->samples.push_back(sample);
  }
}

int64_t ContrastiveCutter::sequence_tokens() const {
  return std::max(options_.query_tokens, options_.passage_tokens);
}

std::string ContrastiveCutter::Identity() const {
  std::string identity = "contrastive records\nquery_tokens " + std::to_string(options_.query_tokens) +
                         "\npassage_tokens " + std::to_string(options_.passage_tokens) + "\n";
  if (options_.split) identity += IdentityOf(*options_.split);
  return identity;
}

bool ContrastiveCutter::HasLabel(const ShardTotals& /*totals*/) const {
  return false;  // each record may be one that does not fit
}

std::string ContrastiveCutter::NothingToLearn() const {
  return "hold no record whose instructions leave its texts a token, so there is nothing to learn";
}

std::string ContrastiveCutter::TellCuts(const CutCounts& counts) const {
  std::string text;
  if (counts.shortened > 0) {
    text = std::to_string(counts.shortened) + " texts are cut at --query-max-len " +
           std::to_string(options_.query_tokens) + " or --passage-max-len " +
           std::to_string(options_.passage_tokens);
  }
  if (counts.left_out > 0) {
    text += (text.empty() ? "" : ", and ") + std::to_string(counts.left_out) +
            " records left out whose instruction fills that";
  }
  return text;
}

}  // namespace trainwright
