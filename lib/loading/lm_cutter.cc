#include "lib/loading/lm_cutter.h"

#include <algorithm>
#include <span>
#include <vector>

#include "lib/base/error.h"
#include "lib/formats/document_parts.h"

namespace trainwright {

LossOn ParseLossOn(const std::string& name) {
  if (name == "assistant") return LossOn::kAssistant;
  if (name == "all") return LossOn::kAll;
  throw Error(ErrorCode::kUsage, "--loss-on", "unknown choice \"" + name + "\"", "", "one of assistant, all");
}

const char* NameOf(LossOn loss_on) {
  return loss_on == LossOn::kAssistant ? "assistant" : "all";
}

Packing ParsePacking(const std::string& name) {
  if (name == "on") return Packing::kOn;
  if (name == "off") return Packing::kOff;
  throw Error(ErrorCode::kUsage, "--packing", "unknown choice \"" + name + "\"", "", "one of on, off");
}

std::string PackingName(Packing packing) {
  return packing == Packing::kOn ? "on" : "off";
}

LmCutter::LmCutter(RecordKind records, const LmCutterOptions& options)
    : options_(options), masked_(records == RecordKind::kSft && options.loss_on == LossOn::kAssistant) {
  if (options_.sequence_tokens < 1) throw Error(ErrorCode::kUsage, "--seq", "must be at least 1 token");
  if (records != RecordKind::kLm && records != RecordKind::kSft) {
    throw Error(ErrorCode::kBadInput, "shards", "hold records of which no token is predicted", "",
                "make the stream with pretokenize --records lm or sft");
  }
}

bool LmCutter::FitsBehind(uint64_t sample_tokens, uint64_t tokens) const {
  return options_.packing == Packing::kOn &&
         sample_tokens + tokens <= static_cast<uint64_t>(options_.sequence_tokens);
}

void LmCutter::Cut(const Chunk& chunk, SampleWindow* window) const {
  const auto sequence_tokens = static_cast<uint64_t>(options_.sequence_tokens);
  const auto next_span = [&] { return static_cast<uint32_t>(window->spans.size()); };
  SampleWindow::Entry sample{.span_begin = next_span()};
  const auto push = [&] {
    sample.span_end = next_span();
    const auto spans = std::span(window->spans).subspan(sample.span_begin);
    sample.labels = static_cast<uint32_t>(CountLabels(spans, window->predicted));
    if (!masked_ || sample.labels > 0) window->samples.push_back(sample);
    sample = {.span_begin = next_span()};
  };
  for (const DocumentPart& part : PartsOf(chunk, options_.split, /*held_out=*/false)) {
    const std::vector<uint8_t> predicted = masked_ ? part.Predicted() : std::vector<uint8_t>();
    const uint64_t part_tokens = part.tokens.size();
    const uint64_t part_begin = window->tokens.size();
    window->tokens.Append(part.tokens);
    window->predicted.insert(window->predicted.end(), predicted.begin(), predicted.end());
    for (uint64_t begin = 0; begin < part_tokens; begin += sequence_tokens) {
      const uint64_t end = std::min<uint64_t>(begin + sequence_tokens, part_tokens);
      if (sample.tokens > 0 && !FitsBehind(sample.tokens, end - begin)) push();
      SampleSpan span{.begin = part_begin + begin, .tokens = static_cast<uint32_t>(end - begin)};
      if (end == part_tokens) {
        span.next_token = part.next_token(masked_);
      } else {
        span.next_token = masked_ && predicted[end] == 0 ? kNoId : part.tokens[end];
      }
      span.source_bytes = part.SourceBytes(begin, end, /*masked=*/false);
      span.starts_document = begin == 0 && part.starts_document();
      sample.tokens += span.tokens;
      window->spans.push_back(span);
    }
  }
  if (sample.tokens > 0) push();
}

std::string LmCutter::Identity() const {
  std::string identity = masked_ ? "loss_on assistant\n" : "";
  if (options_.packing == Packing::kOff) identity += "packing off\n";
  if (options_.split) identity += IdentityOf(*options_.split);
  return identity;
}

bool LmCutter::HasLabel(const ShardTotals& totals) const {
  // More tokens than documents: some token follows another of its document.
  return !options_.split && (masked_ ? totals.loss_tokens : totals.tokens) > totals.documents;
}

std::string LmCutter::NothingToLearn() const {
  return masked_ ? "hold no conversation with a token to predict, so there is nothing to learn"
                 : "hold no document of two or more tokens, so there is nothing to learn";
}

}  // namespace trainwright
