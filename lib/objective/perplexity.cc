#include "lib/objective/perplexity.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lib/base/error.h"
#include "lib/base/signals.h"
#include "lib/formats/document_parts.h"
#include "lib/loading/part_shares.h"

namespace trainwright {
namespace {

/// Fewer may be marks of a template and of a document's ends alone, which stand for no text.
constexpr uint64_t kTokensOfSomeText = 32;

/// Whether tokens that are predicted stand for text whose bytes were not recorded. Those of a conversation
/// stand with the first of its answers, so of a document that was cut the beginning alone can tell.
bool LacksSourceBytes(const DocumentPart& part) {
  if (!part.starts_document()) return false;
  uint64_t tokens = 0, bytes = 0;
  for (const Segment& segment : part.segments) {
    if ((segment.flags & kSegmentNoLoss) != 0) continue;
    tokens += segment.tokens;
    bytes += segment.source_bytes;
  }
  return bytes == 0 && tokens >= kTokensOfSomeText;
}

}  // namespace

double PerplexitySums::mean_loss_nats() const {
  return loss_nats / static_cast<double>(labels);
}
double PerplexitySums::perplexity() const {
  return std::exp(mean_loss_nats());
}
double PerplexitySums::bits_per_token() const {
  return mean_loss_nats() / std::numbers::ln2;
}
std::optional<double> PerplexitySums::bits_per_byte() const {
  if (lacks_source_bytes || source_bytes == 0) return std::nullopt;
  return loss_nats / std::numbers::ln2 / static_cast<double>(source_bytes);
}

bool IsMasked(const ShardSetHeader& header, LossOn loss_on) {
  if (header.record_kind != RecordKind::kLm && header.record_kind != RecordKind::kSft) {
    throw Error(ErrorCode::kBadInput, "the shards",
                "hold " + RecordKindName(header.record_kind) + " records, of which no token is predicted", "",
                "make the stream with pretokenize --records lm or sft");
  }
  return header.record_kind == RecordKind::kSft && loss_on == LossOn::kAssistant;
}

PerplexityMeter::PerplexityMeter(LanguageModel* model, int64_t sequence_tokens, int64_t batch_tokens,
                                 World* world)
    : model_(model),
      sequence_tokens_(static_cast<size_t>(sequence_tokens)),
      batch_tokens_(batch_tokens),
      losses_(world) {
  TRAINWRIGHT_CHECK(sequence_tokens > 0);
}

void PerplexityMeter::Add(std::span<const uint32_t> tokens, uint32_t next_token, uint64_t source_bytes,
                          bool starts_document, std::span<const uint8_t> predicted) {
  sums_.tokens += tokens.size();
  sums_.source_bytes += source_bytes;
  sums_.documents += starts_document ? 1 : 0;
  for (size_t begin = 0; begin < tokens.size(); begin += sequence_tokens_) {
    const size_t count = std::min(sequence_tokens_, tokens.size() - begin);
    const size_t end = begin + count;
    uint32_t label = end < tokens.size() ? tokens[end] : next_token;
    if (predicted.empty()) {
      sums_.spans += count > 1 || label != kNoId ? 1 : 0;
      batch_.AppendSpan(tokens.subspan(begin, count), label);
    } else {
      if (end < tokens.size() && predicted[end] == 0) label = kNoId;
      const auto own_predicted = predicted.subspan(begin, count);
      const bool has_label = label != kNoId || std::find(own_predicted.begin() + 1, own_predicted.end(), 1) !=
                                                   own_predicted.end();
      sums_.spans += has_label ? 1 : 0;
      if (has_label) batch_.AppendSpan(tokens.subspan(begin, count), label, own_predicted);
    }
    if (batch_.num_tokens() >= batch_tokens_) Flush();
  }
}

void PerplexityMeter::AddChunk(const Chunk& chunk) {
  for (const DocumentPart& part : PartsOf(chunk, split_, /*held_out=*/true)) {
    std::vector<uint8_t> predicted;
    if (masked_) predicted = part.Predicted();
    if (last_run_only_) KeepLastRun(&predicted);
    sums_.lacks_source_bytes |= LacksSourceBytes(part);
    Add(part.tokens, part.next_token(masked_), part.SourceBytes(0, part.tokens.size(), masked_),
        part.starts_document(), predicted);
  }
}

uint64_t PerplexityMeter::AddSet(const ShardSet& set, uint64_t max_tokens,
                                 const std::function<void(uint64_t)>& on_progress, bool skip_bad) {
  return VisitShares(
      set, {.parts = set.parts(), .max_tokens = max_tokens, .skip_bad = skip_bad},
      [this] { return sums_.tokens; },
      [&](const ShardSetPart&, const Chunk& chunk) {
        AddChunk(chunk);
        if (on_progress) on_progress(sums_.tokens);
      });
}

const PerplexitySums& PerplexityMeter::Measure(const std::function<void()>& add) {
  losses_.Run([&] {
    add();
    Flush();
    if (sums_.labels == 0) {
      throw Error(ErrorCode::kBadInput, "evaluation data", "holds no token to predict", "",
                  "every document needs at least two tokens");
    }
  });
  sums_.loss_nats = losses_.sum();
  return sums_;
}

const PerplexitySums& PerplexityMeter::Finish() {
  return Measure([] {});
}

void PerplexityMeter::Flush() {
  if (batch_.num_tokens() == 0) return;
  ThrowIfStopped();
  losses_.Next(batch_.num_tokens(), [&] {
    const ModelInput input = ToModelInput(batch_);
    if (listener_) listener_(input);
    const LossSum loss = model_->Loss(input);
    if (!std::isfinite(loss.loss_nats)) {
      throw Error(ErrorCode::kNonFinite, "loss", "is not finite",
                  "after " + std::to_string(sums_.labels) + " predicted tokens",
                  "a weight is not finite, or values overflow: with bf16 or fp16 try --mixed-precision no");
    }
    return loss.loss_nats;
  });
  sums_.labels += static_cast<uint64_t>(batch_.num_labels);
  batch_ = PackedBatch();
}

}  // namespace trainwright
