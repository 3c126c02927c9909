#include "lib/loading/generative_cutter.h"

#include <algorithm>
#include <span>
#include <vector>

#include "lib/base/error.h"
#include "lib/formats/document_parts.h"
#include "lib/loading/contrastive_cutter.h"

namespace trainwright {

GenerativeCutter::GenerativeCutter(RecordKind records, const GenerativeCutterOptions& options)
    : options_(options) {
  if (options_.tokens < 1) {
    throw Error(ErrorCode::kUsage, "--generative-max-len", "must be at least 1 token");
  }
  if (records != RecordKind::kLm && records != RecordKind::kSft) {
    throw Error(ErrorCode::kBadInput, "shards", "hold records of which no token is predicted", "",
                "make the stream with pretokenize --records lm or sft");
  }
}

void GenerativeCutter::Cut(const Chunk& chunk, SampleWindow* window) const {
  const auto limit = static_cast<size_t>(options_.tokens);
  for (const DocumentPart& part : PartsOf(chunk, options_.split, /*held_out=*/false)) {
    if (!part.starts_document() || part.tokens.empty()) continue;
    const size_t kept = std::min(limit, part.tokens.size());
    std::vector<uint8_t> predicted = part.Predicted();
    // Of the whole document: where the limit cuts its last answer off, no other takes its place.
    if (options_.last_run_only) KeepLastRun(&predicted);
    predicted.resize(kept);
    // The first token of a row follows none.
    const auto labels = static_cast<uint32_t>(std::count(predicted.begin() + 1, predicted.end(), uint8_t{1}));
    if (labels == 0) {
      ++window->cuts.left_out;
      continue;
    }
    if (kept < part.tokens.size() || (part.segments.back().flags & kSegmentEndsMidDocument) != 0) {
      ++window->cuts.shortened;
    }
    const auto span = static_cast<uint32_t>(window->spans.size());
    window->spans.push_back({.begin = window->tokens.size(),
                             .tokens = static_cast<uint32_t>(kept),
                             .next_token = kNoId,
                             .source_bytes = part.SourceBytes(0, kept, /*masked=*/false),
                             .starts_document = true,
                             .tag = EncodeTextTag({.use = TextUse::kGenerative})});
    window->tokens.Append(part.tokens.first(kept));
    window->predicted.insert(window->predicted.end(), predicted.begin(), predicted.end());
    window->samples.push_back(
        {.span_begin = span, .span_end = span + 1, .tokens = static_cast<uint32_t>(kept), .labels = labels});
  }
}

std::string GenerativeCutter::Identity() const {
  std::string identity = "rows of documents\n";
  if (options_.last_run_only) identity += "last run only\n";
  if (options_.split) identity += IdentityOf(*options_.split);
  return identity;
}

bool GenerativeCutter::HasLabel(const ShardTotals& /*totals*/) const {
  return false;  // what is predicted may lie behind the limit in every document
}

std::string GenerativeCutter::NothingToLearn() const {
  return "hold no document with a token to predict among its first " + std::to_string(options_.tokens) +
         ", so there is nothing to learn";
}

std::string GenerativeCutter::TellCuts(const CutCounts& counts) const {
  std::string text;
  if (counts.shortened > 0) {
    text = std::to_string(counts.shortened) + " documents are cut at --generative-max-len " +
           std::to_string(options_.tokens);
  }
  if (counts.left_out > 0) {
    text += (text.empty() ? "" : ", and ") + std::to_string(counts.left_out) +
            " left out without a token to predict in that";
  }
  return text;
}

}  // namespace trainwright
