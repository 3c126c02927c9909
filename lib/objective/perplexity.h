/// How well a model predicts documents: summed loss over every label.
///
/// Documents are cut into spans of at most the sequence length as training cuts them: positions start at 0 in
/// each span, attention stays inside it, and the last label of a cut span is the token after the cut. Of sft
/// records only the tokens that the records say are labels, unless asked otherwise.
///
/// Several ranks divide the micro-batches: all read the same data and cut it alike, and each computes its own
/// of them. The result has the same bits as one rank's with as many threads as each of them has.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "lib/dist/batch_sums.h"
#include "lib/dist/world.h"
#include "lib/formats/shard.h"
#include "lib/formats/shard_set.h"
#include "lib/loading/document_split.h"
#include "lib/loading/packed_batch.h"
#include "lib/loading/sample_stream.h"
#include "lib/model/language_model.h"
#include "lib/objective/model_input.h"

namespace trainwright {

struct PerplexitySums {
  double loss_nats = 0;  ///< summed over labels
  uint64_t labels = 0;   ///< predicted tokens
  uint64_t tokens = 0;   ///< tokens read
  uint64_t documents = 0;
  uint64_t spans = 0;         ///< that have a label: whole documents, or parts of those that are cut
  uint64_t source_bytes = 0;  ///< bytes of text after the tokens, of masked records after the labels
  /// Whether some documents do not say their bytes, as those of other programs' token files.
  bool lacks_source_bytes = false;

  double mean_loss_nats() const;
  double perplexity() const;      ///< exp of the mean loss
  double bits_per_token() const;  ///< of a predicted token
  /// All bits over all source bytes; nothing where these are not known.
  std::optional<double> bits_per_byte() const;
};

/// Whether records of such a set say which of their tokens are labels, and are to be believed.
/// \throws Error{kBadInput} for records that have no labels that it knows
bool IsMasked(const ShardSetHeader& header, LossOn loss_on);

/// Not thread-safe.
class PerplexityMeter {
 public:
  /// Called with each micro-batch of this rank before it is evaluated.
  using BatchListener = std::function<void(const ModelInput&)>;

  /// \param model outlives the meter
  /// \param sequence_tokens longest span, >= 1
  /// \param batch_tokens a micro-batch is evaluated once it holds this many tokens
  /// \param world outlives the meter
  PerplexityMeter(LanguageModel* model, int64_t sequence_tokens, int64_t batch_tokens, World* world = Solo());
  void set_batch_listener(BatchListener listener) { listener_ = std::move(listener); }
  /// Whether the segments of the chunks to come say which tokens are labels; otherwise all are.
  void set_masked(bool masked) { masked_ = masked; }
  bool masked() const { return masked_; }
  /// Whether of the chunks to come, where they are masked, only the last run of each document's labels is
  /// measured. Source bytes are those of all of its labels then, too.
  void set_last_run_only(bool last_run_only) { last_run_only_ = last_run_only; }
  /// Of the chunks to come, only what the split holds out is evaluated.
  void set_split(const std::optional<DocumentSplit>& split) { split_ = split; }
  /// \param next_token label of the last token, or kNoId
  /// \param starts_document false for the rest of a cut one
  /// \param predicted of each token, whether it is a label (1) or not (0); empty: all are
  /// \throws Error{kNonFinite}, Error{kBadInput} on an id outside the vocabulary, Error{kInterrupted,
  ///     kTerminated} once a signal asked to stop
  void Add(std::span<const uint32_t> tokens, uint32_t next_token, uint64_t source_bytes, bool starts_document,
           std::span<const uint8_t> predicted = {});
  /// Every document of a chunk, or of them those that the split holds out.
  void AddChunk(const Chunk& chunk);
  /// Every chunk of a set in stored order.
  /// \param max_tokens stop after the chunk that reaches it, of sets that were joined each part its share
  ///     (VisitShares); 0: the whole set
  /// \param on_progress called with the tokens read so far; may be empty
  /// \param skip_bad whether frames that cannot be read are left out
  /// \returns how many were
  uint64_t AddSet(const ShardSet& set, uint64_t max_tokens, const std::function<void(uint64_t)>& on_progress,
                  bool skip_bad = false);
  /// Evaluates what `add` adds, in a world of several ranks the same on all: what fails on one of them ends
  /// all.
  /// \throws what `add` throws; Error{kBadInput} when there was no label at all, or where what was added
  ///     differs between the ranks; as BatchSums::Run
  const PerplexitySums& Measure(const std::function<void()>& add);
  /// Evaluates what is left, of a rank alone.
  /// \throws as Measure
  const PerplexitySums& Finish();
  /// What has been read; the loss is reported at the end.
  const PerplexitySums& sums() const { return sums_; }

 private:
  void Flush();

  LanguageModel* model_;
  size_t sequence_tokens_;
  int64_t batch_tokens_;
  BatchListener listener_;
  bool masked_ = false, last_run_only_ = false;
  std::optional<DocumentSplit> split_;
  PackedBatch batch_;
  BatchSums losses_;  // in nats
  PerplexitySums sums_;
};

}  // namespace trainwright
