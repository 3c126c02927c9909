/// The data half of GRIT: which sets which loader reads, how records become samples, which samples a step
/// takes and how they are laid out. What is drawn is defined in man/trainwright-sample-order.5; all of it
/// follows from the seed and where the loaders are, and nothing from ranks.
///
/// Torch-free but for where it is placed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/formats/shard_set.h"
#include "lib/loading/chunk_order.h"
#include "lib/loading/packed_batch.h"
#include "lib/loading/sample_loaders.h"
#include "lib/loading/sample_stream.h"
#include "lib/loading/text_draws.h"

namespace trainwright {

/// The loader of the generative sets, where texts are embedded, too. Else kMainLoader reads them.
inline constexpr char kGenerativeLoader[] = "generative";
/// The loader of the contrastive set of that number, from 0: kMainLoader, "data.2", "data.3", ...
std::string LoaderOfSet(size_t number);

struct GritDataOptions {
  bool embeds = true, generates = false;  ///< at least one
  int64_t query_tokens = 32, passage_tokens = 128, generative_tokens = 128;
  TextChoice choice = {};
  /// With both: every how-manieth sample of a step, from its first on, has a generative row as its companion.
  int64_t companion_every = 1;
  bool last_answer_only = false;  ///< GenerativeCutterOptions::last_run_only
  DrawRules::Extra extra = DrawRules::Extra::kUniform;
  uint64_t max_records = 0;  ///< of each set; 0: all
  std::string num_samples;   ///< path of the file that SampleCapsOf takes; empty: none
  uint64_t seed = 0;         ///< of the run's order
};

/// Immutable.
class GritData {
 public:
  /// \throws Error{kUsage} on options that say nothing to train on
  explicit GritData(GritDataOptions options);
  const GritDataOptions& options() const { return options_; }

  /// \param sets of the data; never empty
  /// \throws Error{kBadInput} naming --data and the kind of records that the sets lack
  std::vector<std::string> Loaders(std::span<const OrderedSet> sets) const;
  /// \param options whose sets are those of the data; never empty
  SampleStreamOptions Cutting(const std::string& loader, const SampleStreamOptions& options) const;
  /// \param records of the sets that the loader reads
  /// \throws Error{kBadInput, kUsage} as the cutters
  std::unique_ptr<const SampleCutter> MakeCutter(const std::string& loader, RecordKind records,
                                                 const SampleStreamOptions& options) const;
  /// All of Loaders. Samples are counted by reading the sets once more where the order depends on their
  /// numbers: of several contrastive sets, of a set with a cap that it exceeds, and of both kinds of records.
  /// \param set outlives them
  /// \param options whose sets are those of the data; empty: one for each part of `set`
  /// \param loader of each, but for the bytes of the cache, which they share
  /// \throws as Loaders, SampleLoader, SampleCapsOf and MakeCutter; Error{kUsage} where sets that are counted
  ///     have weights other than their chunks; Error{kBadInput} where several contrastive sets have fewer
  ///     samples than a step
  OpenedLoaders Open(const ShardSet* set, const SampleStreamOptions& options,
                     const LoaderOptions& loader) const;
  /// The samples of the next step, those of companions in them.
  /// \param samples of the step, of all ranks together
  /// \throws as SampleLoader::NextStep, wherever the loaders then are
  std::vector<Sample> Draw(const SampleLoaders& loaders, int64_t samples, bool drop_last) const;
  /// As Objective::Join: records with the rows among `samples` as their companions, where there are both.
  std::vector<Sample> Join(std::vector<Sample> samples) const;
  /// Records first, each a query and its passages, then rows, whether samples of their own or companions.
  /// The notes' `record` is the number of the sample in `samples`.
  PackedBatch Pack(std::span<const Sample> samples) const;
  /// As Objective::LongestBatch: of this many samples, with companions where there are both.
  PackedBatch LongestBatch(int64_t samples, int64_t text_tokens) const;

 private:
  /// A loader to be.
  struct Stream {
    SampleStreamOptions cutting;
    std::unique_ptr<const SampleCutter> cutter;
  };
  using Streams = std::map<std::string, Stream>;

  bool embeds_of(const std::string& loader) const { return options_.embeds && loader != kGenerativeLoader; }
  /// Adds the rules that streams need, if any.
  void AddRules(const ShardSet& set, const LoaderOptions& loader, Streams* streams) const;
  /// Sets how long epochs are, of streams whose samples are counted.
  /// \throws Error{kBadInput} where all contrastive sets together have fewer samples than a step
  void SetEpochs(uint64_t step_samples, Streams* streams) const;
  /// About how many tokens steps take in this many samples, their companions' among them.
  uint64_t TokensOfEpoch(uint64_t samples, const Streams& streams) const;
  std::vector<Sample> DrawOfSets(const SampleLoaders& loaders, uint64_t samples) const;

  GritDataOptions options_;
};

}  // namespace trainwright
