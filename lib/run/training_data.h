/// The shard sets that a training run reads: those of --data as one, and what it is evaluated on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/formats/record_kind.h"
#include "lib/formats/shard_set.h"
#include "lib/loading/chunk_order.h"
#include "lib/loading/document_split.h"
#include "lib/loading/joined_shard_set.h"
#include "lib/loading/sample_loaders.h"
#include "lib/run/run_planner.h"
#include "lib/run/train_settings.h"

namespace trainwright {

/// In a run's directory: what TrainingData::FormatSamplesUsed says, of objectives whose samples are numbered.
inline constexpr char kSamplesUsedFile[] = "dataset_num_samples.json";

/// A set of shards that a run reads.
struct DataSource {
  std::string path;
  double share = 1;  ///< of the chunks drawn
  uint64_t chunks = 0, tokens = 0;
  /// Whether its chunks are full but for padding; else each is as short as a document (pack --mode none).
  bool has_full_chunks = true;
};

/// The paths of --data, for messages.
std::string DataNames(const TrainSettings& settings);
/// $TMPDIR, or /var/tmp.
std::string TemporaryFolder();
/// Where data that came through a pipe is kept.
std::string SpoolFolder(const TrainSettings& settings);

/// Not thread-safe; the sets live as long as it does.
class TrainingData {
 public:
  /// Opens the sets of --data as one, and those of --eval-data likewise. Sets of unlike records may be among
  /// them: see RequireAlike.
  /// \throws Error{kIo, kBadInput} on sets that cannot be read, or were made with different tokenizers
  explicit TrainingData(const TrainSettings& settings);
  /// The same of sets that are open.
  /// \param sets at least one
  /// \param eval_set null: none
  explicit TrainingData(std::vector<NamedShardSet> sets, std::unique_ptr<ShardSet> eval_set = nullptr);

  const ShardSet& set() const { return *data_; }
  /// The sets that are mixed; empty: one.
  const std::vector<OrderedSet>& sets() const { return sets_; }
  /// The kinds of records of the sets of --data.
  std::set<RecordKind> records() const;
  /// For an objective that does not take mixtures of records.
  /// \throws Error{kBadInput} naming the first set that holds other records than the first of --data, or of
  ///     --eval-data, or of --data chunks of another length
  void RequireAlike() const;
  /// The same for the records, one too.
  const std::vector<DataSource>& sources() const { return sources_; }
  /// Of --eval-data; null: none.
  const ShardSet* eval_set() const { return eval_data_.get(); }
  /// What a run is evaluated on: documents that it holds out of the data, --eval-data, or null.
  const ShardSet* evaluated(const std::optional<DocumentSplit>& split) const {
    return split ? data_.get() : eval_data_.get();
  }
  /// Names what of it a run is evaluated on. "": nothing.
  /// \param most_tokens of an evaluation; 0: all
  std::string EvaluationName(const std::optional<DocumentSplit>& split, int64_t most_tokens) const;
  /// How many samples loaders take of each set, by the set's name, as JSON. Of sets whose samples are not
  /// counted it is their documents.
  std::string FormatSamplesUsed(const SampleLoaders& loaders) const;
  /// Gives the sets their weights.
  /// \param weights as in --data-weights
  /// \returns what was chosen; empty for one set
  std::vector<ChoiceReason> WeighSets(const std::string& weights);
  /// For a run that begins: one that has such weights keeps them.
  /// \param weights as in --data-weights; empty: none
  /// \throws Error{kUsage} where chunks of sets hold so unlike numbers of tokens, since some, not
  ///     all, are of pack --mode none, that shares of chunks are no shares of tokens
  void RequireWeighable(const std::string& weights) const;
  /// What a split holds out, counted and reported.
  /// \param masked whether only some tokens are predicted
  /// \throws Error{kUsage} when a side of it has nothing to predict
  SplitCounts CountHeldOut(const DocumentSplit& split, bool masked, bool skip_bad_chunks) const;
  /// What of the data has which share of a run, for --dry-run; empty for one set.
  std::string FormatSources(const TrainPlan& plan) const;

 private:
  std::unique_ptr<ShardSet> data_, eval_data_;
  std::vector<OrderedSet> sets_;
  std::vector<DataSource> sources_;
  uint64_t documents_split_ = 0;          // by pack, into parts in several chunks
  std::vector<std::string> overlapping_;  // sets whose windows of long documents overlap
};

}  // namespace trainwright
