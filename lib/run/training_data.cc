#include "lib/run/training_data.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/temporary_place.h"
#include "lib/base/units.h"
#include "lib/formats/window_stride.h"
#include "lib/io/byte_source.h"
#include "lib/loading/cached_shard_set.h"
#include "lib/loading/joined_shard_set.h"
#include "lib/loading/mixture_weights.h"
#include "lib/loading/sample_caps.h"
#include "lib/loading/spooled_shard_set.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

constexpr char kMakeShardsHint[] =
    "make shards first: pretokenize FILE... | pack --chunk 32768 -o shards/   (train reads shards/ unless "
    "--data names "
    "another place)";

/// How many times as many tokens as another's a set's chunks may hold where some are not full. Padding alone
/// makes less of a difference.
constexpr double kMostUneven = 1.1;

double TokensPerChunk(const DataSource& source) {
  return static_cast<double>(source.tokens) / static_cast<double>(source.chunks);
}

/// Whether the set may hold several parts of a document. What --overflow truncate cuts leaves one.
bool HoldsParts(const ShardSetHeader& header) {
  return header.overflow == OverflowPolicy::kSplit || header.mode == PackMode::kConcat;
}

std::unique_ptr<ShardSet> OpenShards(const TrainSettings& settings, const std::string& path,
                                     const char* flag) {
  if (path == "-") return SpoolShardSet(OpenSource("-"), SpoolFolder(settings));
  if (!fs::exists(path)) {
    throw Error(ErrorCode::kIo, path, std::string("no such shards (") + flag + ")", "", kMakeShardsHint);
  }
  // What only looks ahead copies nothing.
  if (settings.cache_dir.empty() || settings.dry_run || settings.explain) return ShardSet::Open(path);
  return OpenCachedShardSet(path, settings.cache_dir);
}

std::vector<NamedShardSet> OpenSets(const TrainSettings& settings, const std::vector<std::string>& paths,
                                    const char* flag) {
  std::vector<NamedShardSet> sets;
  for (const std::string& path : paths) sets.push_back({path, OpenShards(settings, path, flag)});
  return sets;
}

std::unique_ptr<ShardSet> OpenEvaluated(const TrainSettings& settings) {
  if (settings.eval_data.empty()) return nullptr;
  return JoinShardSets(OpenSets(settings, settings.eval_data, "--eval-data"), UnlikeSets::kTaken);
}

/// Sets that are evaluated are read whole and one after the other: their chunks need not be alike.
void RequireAlikeRecords(const ShardSet& evaluated) {
  const std::vector<ShardSetPart> parts = evaluated.parts();
  for (const ShardSetPart& part : parts) {
    if (part.records == parts.front().records) continue;
    throw Error(ErrorCode::kBadInput, "--eval-data",
                part.name + " holds " + RecordKindName(part.records) + " records, " + parts.front().name +
                    " " + RecordKindName(parts.front().records),
                "", "give sets of one kind of records, and measure the others with evaluate");
  }
}

}  // namespace

std::string TemporaryFolder() {
  return PlaceForTemporaryFiles("/var/tmp");
}

std::string SpoolFolder(const TrainSettings& settings) {
  return settings.cache_dir.empty() ? TemporaryFolder() : settings.cache_dir;
}

std::string DataNames(const TrainSettings& settings) {
  return JoinedPaths(DataPaths(settings));
}

TrainingData::TrainingData(const TrainSettings& settings)
    : TrainingData(OpenSets(settings, DataPaths(settings), "--data"), OpenEvaluated(settings)) {
  if (eval_data_ && eval_data_->header().tokenizer.sha256 != data_->header().tokenizer.sha256) {
    throw Error(ErrorCode::kBadInput, JoinedPaths(settings.eval_data),
                "was made with another tokenizer than " + DataNames(settings), "",
                "pretokenize both with the same --tokenizer");
  }
}

TrainingData::TrainingData(std::vector<NamedShardSet> sets, std::unique_ptr<ShardSet> eval_set)
    : eval_data_(std::move(eval_set)) {
  uint64_t first_chunk = 0;
  for (const NamedShardSet& set : sets) {
    const ShardTotals& totals = set.set->totals();
    sets_.push_back({.first_chunk = first_chunk,
                     .chunks = totals.chunks,
                     .weight = totals.chunks,
                     .number = static_cast<uint32_t>(sets_.size()),
                     .records = set.set->header().record_kind,
                     .documents = totals.documents});
    sources_.push_back({.path = set.name,
                        .chunks = totals.chunks,
                        .tokens = totals.tokens,
                        .has_full_chunks = set.set->header().mode != PackMode::kNone});
    const ShardSetHeader& header = set.set->header();
    if (HoldsParts(header)) documents_split_ += totals.documents_cut;
    if (StrideOf(header) != header.chunk_tokens) overlapping_.push_back(set.name);
    first_chunk += totals.chunks;
    if (totals.chunks == 0 && sets.size() > 1) {
      throw Error(ErrorCode::kBadInput, set.name, "holds no chunk, so nothing can be mixed in from it", "",
                  "leave out --data " + set.name);
    }
  }
  if (sets_.size() == 1) sets_.clear();
  data_ = JoinShardSets(std::move(sets), UnlikeSets::kTaken);
}

std::set<RecordKind> TrainingData::records() const {
  std::set<RecordKind> records;
  for (const ShardSetPart& part : data_->parts()) records.insert(part.records);
  return records;
}

void TrainingData::RequireAlike() const {
  RequireAlikeParts(*data_);
  if (eval_data_) RequireAlikeRecords(*eval_data_);
}

std::string TrainingData::FormatSamplesUsed(const SampleLoaders& loaders) const {
  std::map<std::string, int> sets_of_name;
  for (const DataSource& source : sources_) ++sets_of_name[BaseNameOf(source.path)];
  std::map<std::string, uint64_t> samples;
  for (const auto& [name, loader] : loaders) {
    const std::vector<OrderedSet>& sets = loader->order().sets();
    for (size_t i = 0; i < sets.size(); ++i) {
      const DataSource& source = sources_.at(sets[i].number);
      const SampleDraws* rules = loader->rules();
      const std::string base = BaseNameOf(source.path);
      samples[sets_of_name.at(base) == 1 ? base : source.path] +=
          rules != nullptr ? rules->kept_of(i) : sets[i].documents;
    }
  }
  return nlohmann::json(samples).dump(2) + "\n";
}

std::vector<ChoiceReason> TrainingData::WeighSets(const std::string& weights) {
  if (sets_.empty()) return {};
  if (!weights.empty()) {
    const std::vector<uint64_t> parsed = ParseMixtureWeights(weights, sets_.size());
    for (size_t i = 0; i < sets_.size(); ++i) sets_[i].weight = parsed[i];
  }
  double sum = 0;
  for (const OrderedSet& set : sets_) sum += static_cast<double>(set.weight);
  std::string text;
  for (size_t i = 0; i < sets_.size(); ++i) {
    sources_[i].share = static_cast<double>(sets_[i].weight) / sum;
    text += (i == 0 ? "" : ", ") + FormatFixed(100 * sources_[i].share, 2) + " % " + sources_[i].path;
  }
  return {{"data-weights",
           (weights.empty() ? "by their chunks, each once an epoch: " : "of the chunks drawn: ") + text,
           "mixing " + std::to_string(sets_.size()) + " sets"}};
}

void TrainingData::RequireWeighable(const std::string& weights) const {
  if (weights.empty() || sets_.empty()) return;
  std::vector<const DataSource*> sources;
  size_t full = 0;
  for (const OrderedSet& set : sets_) {
    // --objective grit, which draws rows of texts beside its records, says itself what it weighs.
    if (set.records == RecordKind::kContrastive) return;
    sources.push_back(&sources_[set.number]);
    full += sources.back()->has_full_chunks ? 1 : 0;
  }
  if (full == 0 || full == sources.size()) return;
  const auto [fewest, most] = std::minmax_element(
      sources.begin(), sources.end(),
      [](const DataSource* a, const DataSource* b) { return TokensPerChunk(*a) < TokensPerChunk(*b); });
  if (TokensPerChunk(**most) <= kMostUneven * TokensPerChunk(**fewest)) return;
  throw Error(ErrorCode::kUsage, "--data-weights",
              "gives shares of chunks, of which " + (*fewest)->path + " has " +
                  FormatFixed(TokensPerChunk(**fewest), 1) + " tokens in one, " + (*most)->path + " " +
                  FormatFixed(TokensPerChunk(**most), 1) + ": they would not be shares of tokens",
              "",
              "pack the sets of --mode none with --mode bestfit and the --chunk of the others, or leave it "
              "out: each chunk comes once an epoch then");
}

SplitCounts TrainingData::CountHeldOut(const DocumentSplit& split, bool masked, bool skip_bad_chunks) const {
  const SplitCounts counts = CountSplit(split, *data_, masked, skip_bad_chunks);
  if (counts.held_out_labels == 0 || counts.held_out_documents == counts.documents) {
    throw Error(
        ErrorCode::kUsage, "--eval-split",
        split.asked + " holds out " + std::to_string(counts.held_out_documents) + " of the data's " +
            std::to_string(counts.documents) + " documents, " +
            (counts.held_out_labels == 0 ? "with nothing to predict" : "which leaves nothing to train on"),
        "",
        "their hashes decide: give another share, a number of documents (--eval-split 1), or another "
        "--eval-split-seed; a document longer than pack's --chunk counts once a chunk, and conversations "
        "that begin with one question go together");
  }
  LogInfo("holding out " + std::to_string(counts.held_out_documents) + " of " +
          std::to_string(counts.documents) + " documents, " +
          FormatCount(static_cast<double>(counts.held_out_tokens)) + " tokens, to evaluate on");
  if (documents_split_ > 0) {
    LogCommonWarning("--eval-split: pack cut " + FormatNumberOf(documents_split_, "document") +
                     " into parts, and parts of one may be on both sides; a longer --chunk keeps them whole");
  }
  if (!overlapping_.empty()) {
    LogCommonWarning("--eval-split: windows of a document overlap in " + JoinedPaths(overlapping_) +
                     " (pack --stride), so that what is held out of one is trained on in another; hold out "
                     "of shards that were packed without --stride");
  }
  return counts;
}

std::string TrainingData::EvaluationName(const std::optional<DocumentSplit>& split,
                                         int64_t most_tokens) const {
  const ShardSet* set = evaluated(split);
  if (set == nullptr) return "";
  std::string name = "content " + HexEncode(set->content_sha256());
  if (split) {
    name += ", at " + std::to_string(split->bound) + " of seed " + std::to_string(split->seed) +
            (split->key == SplitKey::kQuestion ? " by question" : "");
  }
  if (most_tokens > 0) {
    name += ", " + std::to_string(most_tokens) + " tokens" +
            (set->parts().size() > 1 ? " shared out over the sets" : "");
  }
  return name;
}

std::string TrainingData::FormatSources(const TrainPlan& plan) const {
  if (sets_.empty()) return "";
  const int64_t samples = plan.schedule.total_steps * plan.samples_per_step();
  // Samples of an epoch are not known in all runs; tokens of a whole sample bound them from above.
  const double run_tokens = static_cast<double>(samples) * static_cast<double>(plan.sequence_tokens);
  std::string text = "\n";
  for (const DataSource& source : sources_) {
    text += "data  " + FormatFixed(100 * source.share, 2) + " % " + source.path + ": " +
            FormatCount(static_cast<double>(source.tokens)) + " tokens, read at most " +
            FormatFixed(source.share * run_tokens / static_cast<double>(source.tokens), 2) +
            " times in the run\n";
  }
  return text;
}

}  // namespace trainwright
