#include "lib/objective/grit_batch.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/error.h"
#include "lib/loading/span_note.h"
#include "lib/spec/model_flops.h"

namespace trainwright {
namespace {

int32_t LengthOf(const PackedBatch& batch, size_t span) {
  return batch.span_starts[span + 1] - batch.span_starts[span];
}

/// Number of the first sample of a micro-batch in the step.
int64_t FirstSampleOf(const StepBatches& batches, size_t micro_batch) {
  return batches.places.empty() ? 0 : batches.places[micro_batch].front().index;
}

/// Appends a span of another micro-batch.
/// \param records_before of the result, those that are not the other's
void AppendSpanOf(const PackedBatch& from, size_t span, uint32_t records_before, PackedBatch* to) {
  const auto append = [&](const std::vector<int64_t>& values, std::vector<int64_t>* target) {
    target->insert(target->end(), values.begin() + from.span_starts[span],
                   values.begin() + from.span_starts[span + 1]);
  };
  append(from.tokens, &to->tokens);
  append(from.positions, &to->positions);
  append(from.labels, &to->labels);
  if (to->span_starts.empty()) to->span_starts.push_back(0);
  to->span_starts.push_back(to->span_starts.back() + LengthOf(from, span));
  SpanNote note = from.notes[span];
  note.record += records_before;
  to->notes.push_back(note);
}

/// Some spans of a micro-batch, laid end to end.
/// \param spans rising
/// \param first_index number of the micro-batch's sample 0 in the step
ModelInput InputOfSpans(const GritMicroBatch& micro_batch, const std::vector<size_t>& spans,
                        int64_t first_index) {
  const PackedBatch& batch = micro_batch.batch();
  const StepPass& pass = micro_batch.pass;
  std::vector<int64_t> tokens, positions, labels;
  ModelInput input;
  input.span_starts = {0};
  DropoutPosition dropout = {.seed = pass.seed, .step = pass.step, .samples = {}};
  for (const size_t span : spans) {
    dropout.samples.push_back({.index = first_index + static_cast<int64_t>(batch.notes[span].record),
                               .row = input.span_starts.back(),
                               .token = batch.span_starts[span] - micro_batch.spans.record_begins[span]});
    const auto append = [&](const std::vector<int64_t>& from, std::vector<int64_t>* to) {
      to->insert(to->end(), from.begin() + batch.span_starts[span],
                 from.begin() + batch.span_starts[span + 1]);
    };
    append(batch.tokens, &tokens);
    append(batch.positions, &positions);
    append(batch.labels, &labels);
    input.span_starts.push_back(input.span_starts.back() + LengthOf(batch, span));
  }
  const auto longs = at::TensorOptions().dtype(at::kLong);
  input.tokens_n = at::tensor(tokens, longs);
  input.positions_n = at::tensor(positions, longs);
  input.labels_n = at::tensor(labels, longs);
  input.pin = pass.pin;
  input.dropout = std::move(dropout);
  return input;
}

}  // namespace

GritSpans::GritSpans(const PackedBatch& batch) {
  const size_t count = batch.notes.size();
  TRAINWRIGHT_CHECK(batch.span_starts.size() == count + 1 || (batch.span_starts.empty() && count == 0));
  for (size_t span = 0; span < count; ++span) {
    const TextUse use = batch.notes[span].use;
    const bool goes_on = use == TextUse::kPositive || use == TextUse::kNegative;
    record_begins.push_back(goes_on ? record_begins.back() : batch.span_starts[span]);
    switch (use) {
      case TextUse::kQuery:
        queries.push_back(span);
        positives_of_query.push_back(0);
        passages_of_query.push_back(0);
        break;
      case TextUse::kPositive:
        ++positives_of_query.back();
        [[fallthrough]];
      case TextUse::kNegative:
        ++passages_of_query.back();
        passages.push_back(span);
        break;
      case TextUse::kGenerative:
        rows.push_back(span);
        break;
    }
  }
}

std::vector<TextRange> TextRangesOf(const GritSpans& spans, bool splits_texts) {
  const int64_t queries = spans.num_queries(), texts = spans.num_texts();
  if (queries == 0) return {};
  if (!splits_texts) return {{0, texts}};
  return {{queries, texts}, {0, queries}};
}

TextPass TextPassOf(const GritMicroBatch& micro_batch, const TextRange& range, AttentionMask mask) {
  const PackedBatch& batch = micro_batch.batch();
  const GritSpans& spans = micro_batch.spans;
  std::vector<size_t> texts;  // spans by the numbers of their texts
  for (int64_t text = range.begin; text < range.end; ++text) {
    const bool is_query = text < spans.num_queries();
    texts.push_back(is_query ? spans.queries[static_cast<size_t>(text)]
                             : spans.passages[static_cast<size_t>(text - spans.num_queries())]);
  }
  std::vector<size_t> rising = texts;
  std::sort(rising.begin(), rising.end());
  TextPass result;
  result.range = range;
  result.input =
      InputOfSpans(micro_batch, rising, FirstSampleOf(*micro_batch.pass.batches, micro_batch.number));
  result.input.mask = mask;
  for (const size_t span : texts) {
    const auto place = std::lower_bound(rising.begin(), rising.end(), span) - rising.begin();
    const int32_t begin = result.input.span_starts[static_cast<size_t>(place)];
    result.spans.begin.push_back(begin);
    result.spans.first_pooled.push_back(begin + static_cast<int32_t>(batch.notes[span].first_pooled));
    result.spans.end.push_back(begin + LengthOf(batch, span));
  }
  return result;
}

ModelInput RowsOf(const GritMicroBatch& micro_batch, int64_t samples_of_step) {
  const int64_t first = FirstSampleOf(*micro_batch.pass.batches, micro_batch.number);
  return InputOfSpans(micro_batch, micro_batch.spans.rows, first + samples_of_step);
}

PackedBatch JoinSpans(JoinedSpans wanted, const StepBatches& batches, size_t begin, size_t end) {
  PackedBatch joined;
  for (size_t i = begin; i < end; ++i) {
    const PackedBatch& batch = batches.micro_batches[i];
    const auto before = static_cast<uint32_t>(FirstSampleOf(batches, i) - FirstSampleOf(batches, begin));
    for (size_t span = 0; span < batch.notes.size(); ++span) {
      const bool is_row = batch.notes[span].use == TextUse::kGenerative;
      if (is_row == (wanted == JoinedSpans::kRows)) AppendSpanOf(batch, span, before, &joined);
    }
    if (wanted == JoinedSpans::kRows) continue;
    for (UndrawnPositive positive : batch.undrawn_positives) {
      positive.record += before;
      joined.undrawn_positives.push_back(positive);
    }
  }
  return joined;
}

StepBatches WithJoinedTexts(const StepBatches& batches, int64_t parts) {
  const size_t count = batches.micro_batches.size(), of_part = count / static_cast<size_t>(parts);
  TRAINWRIGHT_CHECK(count % static_cast<size_t>(parts) == 0);
  StepBatches joined = {.micro_batches = std::vector<PackedBatch>(count),
                        .places = batches.places,
                        .denominators = batches.denominators,
                        .of_step = batches.of_step};
  for (size_t begin = 0; begin < count; begin += of_part) {
    joined.micro_batches[begin] = JoinSpans(JoinedSpans::kTexts, batches, begin, begin + of_part);
  }
  return joined;
}

StepBatches JoinedRows(const StepBatches& batches) {
  StepBatches joined = {.micro_batches = {}, .places = {}, .denominators = batches.denominators};
  joined.micro_batches.push_back(JoinSpans(JoinedSpans::kRows, batches, 0, batches.micro_batches.size()));
  if (!batches.places.empty()) joined.places = {batches.places.front()};
  return joined;
}

std::vector<int64_t> LabelsOfRows(const PackedBatch& batch, const GritSpans& spans) {
  std::vector<int64_t> counts;
  for (const size_t span : spans.rows) {
    counts.push_back(std::count_if(batch.labels.begin() + batch.span_starts[span],
                                   batch.labels.begin() + batch.span_starts[span + 1],
                                   [](int64_t label) { return label != kIgnoreLabel; }));
  }
  return counts;
}

int64_t TokensIfPadded(const PackedBatch& batch) {
  enum { kQueries, kPassages, kRows, kSorts };
  std::array<int64_t, kSorts> longest = {}, count = {};
  for (size_t span = 0; span < batch.notes.size(); ++span) {
    const TextUse use = batch.notes[span].use;
    const size_t sort = use == TextUse::kQuery ? kQueries : use == TextUse::kGenerative ? kRows : kPassages;
    longest[sort] = std::max<int64_t>(longest[sort], LengthOf(batch, span));
    ++count[sort];
  }
  int64_t tokens = 0;
  for (size_t sort = 0; sort < kSorts; ++sort) tokens += longest[sort] * count[sort];
  return tokens;
}

int64_t AttentionPairsOf(const PackedBatch& batch, AttentionMask mask, const ModelConfig& model) {
  const int64_t backwards = CountAttentionPairs(batch.span_starts, model);
  if (mask == AttentionMask::kCausal || backwards == 0) return backwards;
  // Both ways a token sees as many before it as behind it see it: twice the pairs, but itself once.
  std::vector<int32_t> starts = {0};
  for (size_t span = 0; span < batch.notes.size(); ++span) {
    if (batch.notes[span].use == TextUse::kGenerative) continue;
    starts.push_back(starts.back() + LengthOf(batch, span));
  }
  return backwards + CountAttentionPairs(starts, model) - starts.back();
}

}  // namespace trainwright
