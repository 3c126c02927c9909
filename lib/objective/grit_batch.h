/// A micro-batch of GRIT split up: its texts as the body takes them, with where their pooled rows lie, and
/// its rows to generate.
///
/// Texts are numbered as their vectors lie: the queries of the micro-batch, then its passages, those of a
/// query together and its positives first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/loading/packed_batch.h"
#include "lib/model/language_model.h"
#include "lib/nn/pooling/span_pooling.h"
#include "lib/objective/objective.h"

namespace trainwright {

/// Which spans of a micro-batch are what.
struct GritSpans {
  /// \param batch of GritData::Pack
  explicit GritSpans(const PackedBatch& batch);

  int64_t num_queries() const { return static_cast<int64_t>(queries.size()); }
  int64_t num_passages() const { return static_cast<int64_t>(passages.size()); }
  int64_t num_texts() const { return num_queries() + num_passages(); }

  std::vector<size_t> queries, passages, rows;  ///< numbers of spans; rows are to be generated
  std::vector<int64_t> positives_of_query, passages_of_query;
  std::vector<int32_t> record_begins;  ///< of each span, the first token of its record or row
};

/// A micro-batch in a pass. Refers to what it is made of.
struct GritMicroBatch {
  const StepPass& pass;
  size_t number = 0;       ///< among the micro-batches of the pass
  const GritSpans& spans;  ///< of it

  const PackedBatch& batch() const { return pass.batches->micro_batches[number]; }
};

/// Texts by their numbers.
struct TextRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

/// How the texts of a micro-batch go through the body: all at once, or passages and queries apart.
std::vector<TextRange> TextRangesOf(const GritSpans& spans, bool splits_texts);

/// Texts that go through the body together.
struct TextPass {
  BodyInput input;
  PooledSpans spans;  ///< in `input`; of each text of the range, in their order
  TextRange range;
};

/// What a text drops depends on its sample's number in the step and on its place in the record, and not on
/// what it is packed with.
/// \param mask of texts to embed
TextPass TextPassOf(const GritMicroBatch& micro_batch, const TextRange& range, AttentionMask mask);

/// The rows to generate of a micro-batch that has some, with labels.
/// \param samples_of_step of all ranks, where the rows are companions of samples: their numbers begin after
///     these; 0: they are the samples
ModelInput RowsOf(const GritMicroBatch& micro_batch, int64_t samples_of_step);

/// Which spans of micro-batches are put together.
enum class JoinedSpans { kTexts, kRows };

/// Those of micro-batches [begin, end), as of one. Records are numbered from the first sample of them all.
PackedBatch JoinSpans(JoinedSpans wanted, const StepBatches& batches, size_t begin, size_t end);

/// The same texts in as many micro-batches, without rows: those of each of the equal parts, which may be
/// leaves, in the first one of it.
StepBatches WithJoinedTexts(const StepBatches& batches, int64_t parts);

/// All rows in one micro-batch.
StepBatches JoinedRows(const StepBatches& batches);

/// Of each row, how many labels it has.
std::vector<int64_t> LabelsOfRows(const PackedBatch& batch, const GritSpans& spans);

/// Tokens that a batch of each sort of text, every one padded to its longest, would have.
int64_t TokensIfPadded(const PackedBatch& batch);

/// Pairs of tokens that attend to each other, as of TokenCounts.
/// \param mask of texts to embed
int64_t AttentionPairsOf(const PackedBatch& batch, AttentionMask mask, const ModelConfig& model);

}  // namespace trainwright
