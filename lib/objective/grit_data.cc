#include "lib/objective/grit_data.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/units.h"
#include "lib/loading/contrastive_cutter.h"
#include "lib/loading/generative_cutter.h"
#include "lib/loading/joined_shard_set.h"
#include "lib/loading/sample_caps.h"
#include "lib/loading/sample_indexes.h"
#include "lib/loading/set_batches.h"

namespace trainwright {
namespace {

/// Beyond so many loaders none has threads of its own: a step waits for one window at a time then.
constexpr size_t kMostWithWorkers = 100;
/// Chunks of a window, at least, where many loaders share the memory of one.
constexpr uint64_t kLeastWindowChunks = 8;

bool IsContrastive(const OrderedSet& set) {
  return set.records == RecordKind::kContrastive;
}

std::vector<OrderedSet> SetsOfKind(std::span<const OrderedSet> sets, bool contrastive) {
  std::vector<OrderedSet> found;
  for (const OrderedSet& set : sets) {
    if (IsContrastive(set) == contrastive) found.push_back(set);
  }
  return found;
}

Error LacksRecords(const std::string& kind, const std::string& what) {
  return Error(ErrorCode::kBadInput, "--data", "holds no " + kind + " records, and " + what, "",
               "add a set of them by another --data, or choose another --mode");
}

uint64_t OwnSamples(const SampleStreamOptions& cutting) {
  return SampleDraws(cutting.rules, cutting.seed).own_samples();
}

/// The loaders of contrastive sets, in the order of the sets.
std::vector<SampleLoader*> LoadersOfSets(const SampleLoaders& loaders) {
  std::vector<SampleLoader*> of_sets;
  for (auto found = loaders.find(LoaderOfSet(0)); found != loaders.end();
       found = loaders.find(LoaderOfSet(of_sets.size()))) {
    of_sets.push_back(found->second);
  }
  return of_sets;
}

Error TooFewSamples(uint64_t samples, uint64_t step_samples) {
  return Error(ErrorCode::kBadInput, "--data",
               "holds " + std::to_string(samples) + " records in all sets, and a step takes " +
                   std::to_string(step_samples),
               "", "lower --batch or --accum");
}

}  // namespace

std::string LoaderOfSet(size_t number) {
  return number == 0 ? kMainLoader : std::string(kMainLoader) + "." + std::to_string(number + 1);
}

GritData::GritData(GritDataOptions options) : options_(std::move(options)) {
  TRAINWRIGHT_CHECK(options_.embeds || options_.generates);
  if (options_.companion_every < 1) {
    throw Error(ErrorCode::kUsage, "--gen-batch", "must divide --batch");
  }
}

std::vector<std::string> GritData::Loaders(std::span<const OrderedSet> sets) const {
  const size_t contrastive = SetsOfKind(sets, true).size(), generative = sets.size() - contrastive;
  if (options_.embeds && contrastive == 0) {
    throw LacksRecords("contrastive", "there is nothing to embed");
  }
  if (options_.generates && generative == 0) {
    throw LacksRecords("lm or sft", "there is nothing to generate");
  }
  if (!options_.embeds) return {kMainLoader};
  std::vector<std::string> names;
  for (size_t i = 0; i < contrastive; ++i) names.push_back(LoaderOfSet(i));
  if (options_.generates) names.emplace_back(kGenerativeLoader);
  return names;
}

SampleStreamOptions GritData::Cutting(const std::string& loader, const SampleStreamOptions& options) const {
  TRAINWRIGHT_CHECK(!options.sets.empty());
  SampleStreamOptions cutting = options;
  cutting.numbered = true;
  cutting.sets = SetsOfKind(options.sets, embeds_of(loader));
  if (!embeds_of(loader)) return cutting;
  const uint64_t sets = cutting.sets.size();
  size_t number = 0;
  while (LoaderOfSet(number) != loader) ++number;
  cutting.sets = {cutting.sets.at(number)};
  // A window of each set is held.
  cutting.window_chunks =
      std::max(std::min(options.window_chunks, kLeastWindowChunks), options.window_chunks / sets);
  return cutting;
}

std::unique_ptr<const SampleCutter> GritData::MakeCutter(const std::string& loader, RecordKind records,
                                                         const SampleStreamOptions& options) const {
  if (embeds_of(loader)) {
    return std::make_unique<ContrastiveCutter>(
        records, ContrastiveCutterOptions{.query_tokens = options_.query_tokens,
                                          .passage_tokens = options_.passage_tokens,
                                          .choice = options_.choice,
                                          .split = options.split});
  }
  return std::make_unique<GenerativeCutter>(
      records, GenerativeCutterOptions{.tokens = options_.generative_tokens,
                                       .last_run_only = options_.last_answer_only,
                                       .split = options.split});
}

OpenedLoaders GritData::Open(const ShardSet* set, const SampleStreamOptions& options,
                             const LoaderOptions& loader) const {
  SampleStreamOptions all = options;
  if (all.sets.empty()) all.sets = OrderedSetsOf(*set);
  Streams streams;
  for (const std::string& name : Loaders(all.sets)) {
    Stream stream = {.cutting = Cutting(name, all), .cutter = nullptr};
    for (const OrderedSet& part : stream.cutting.sets) {
      stream.cutter = MakeCutter(name, part.records, stream.cutting);  // refuses what it does not know
    }
    streams.emplace(name, std::move(stream));
  }
  AddRules(*set, loader, &streams);
  LoaderOptions own = loader;
  own.cache_bytes /= static_cast<int64_t>(streams.size());
  if (streams.size() > kMostWithWorkers) own.workers = 0;
  OpenedLoaders opened;
  for (auto& [name, stream] : streams) {
    opened[name] = std::make_unique<SampleLoader>(set, std::move(stream.cutter), stream.cutting.order(), own);
  }
  return opened;
}

void GritData::AddRules(const ShardSet& set, const LoaderOptions& loader, Streams* streams) const {
  const std::vector<uint64_t> caps = SampleCapsOf(set.parts(), options_.max_records, options_.num_samples);
  const auto cap_of = [&](const OrderedSet& part) { return caps.at(part.number); };
  bool is_capped = false, is_weighted = false;
  for (const auto& [name, stream] : *streams) {
    for (const OrderedSet& part : stream.cutting.sets) {
      is_capped |= cap_of(part) > 0 && (part.documents == 0 || cap_of(part) < part.documents);
      is_weighted |= part.weight != part.chunks;
    }
  }
  if (streams->size() == 1 && !is_capped) return;
  if (is_weighted) {
    throw Error(ErrorCode::kUsage, "--data-weights",
                "does not go with several sets of records of --objective grit: an epoch has each record once",
                "", "leave it out; --num-samples limits how many records a set gives");
  }
  const auto start = std::chrono::steady_clock::now();
  uint64_t samples = 0;
  SampleIndexes alone;
  SampleIndexes& indexes = loader.indexes != nullptr ? *loader.indexes : alone;
  const std::string choice = "positives " + std::to_string(options_.choice.positives) + ", negatives " +
                             std::to_string(options_.choice.negatives);
  for (auto& [name, stream] : *streams) {
    DrawRules& rules = stream.cutting.rules;
    rules.index = indexes.Get(set, *stream.cutter, stream.cutting.sets, loader.skip_bad_chunks > 0,
                              embeds_of(name) ? choice : "");
    rules.extra = options_.extra;
    for (const OrderedSet& part : stream.cutting.sets) rules.most_samples.push_back(cap_of(part));
    samples += rules.index->samples();
  }
  LogDebug("counted " + std::to_string(samples) + " samples in " + FormatFixed(SecondsSince(start), 2) +
           " s");
  SetEpochs(static_cast<uint64_t>(streams->begin()->second.cutting.step_samples), streams);
}

void GritData::SetEpochs(uint64_t step_samples, Streams* streams) const {
  Stream& main = streams->at(kMainLoader);
  uint64_t epoch_samples = OwnSamples(main.cutting);
  if (streams->contains(LoaderOfSet(1))) {
    TRAINWRIGHT_CHECK(step_samples > 0);
    std::vector<uint64_t> samples;
    for (size_t i = 0; streams->contains(LoaderOfSet(i)); ++i) {
      DrawRules& rules = streams->at(LoaderOfSet(i)).cutting.rules;
      samples.push_back(OwnSamples(streams->at(LoaderOfSet(i)).cutting));
      rules.step_samples = step_samples;
    }
    epoch_samples = SetBatches(samples, step_samples, options_.seed).batches() * step_samples;
    if (epoch_samples == 0) {
      throw TooFewSamples(std::accumulate(samples.begin(), samples.end(), uint64_t{0}), step_samples);
    }
    main.cutting.rules.run_epoch_samples = epoch_samples;
  }
  const auto generative = streams->find(kGenerativeLoader);
  if (generative != streams->end()) {
    DrawRules& rows = generative->second.cutting.rules;
    rows.epoch_samples = std::max(epoch_samples, OwnSamples(generative->second.cutting));
    // Of several sets an epoch is what they have: their batches are whole ones.
    if (!streams->contains(LoaderOfSet(1))) {
      epoch_samples = main.cutting.rules.epoch_samples = rows.epoch_samples;
    }
  }
  main.cutting.rules.run_epoch_tokens = TokensOfEpoch(epoch_samples, *streams);
}

uint64_t GritData::TokensOfEpoch(uint64_t samples, const Streams& streams) const {
  double of_sets = 0, of_rows = 0;  // tokens of all their samples
  uint64_t in_sets = 0, rows = 0;   // samples
  for (const auto& [name, stream] : streams) {
    const SampleDraws draws(stream.cutting.rules, stream.cutting.seed);
    const bool is_companion = options_.embeds && name == kGenerativeLoader;
    (is_companion ? of_rows : of_sets) += draws.kept_tokens();
    (is_companion ? rows : in_sets) += draws.own_samples();
  }
  const auto mean = [](double tokens, uint64_t of) { return of > 0 ? tokens / static_cast<double>(of) : 0; };
  const double of_sample =
      mean(of_sets, in_sets) + mean(of_rows, rows) / static_cast<double>(options_.companion_every);
  return static_cast<uint64_t>(std::llround(of_sample * static_cast<double>(samples)));
}

std::vector<Sample> GritData::Draw(const SampleLoaders& loaders, int64_t samples, bool drop_last) const {
  std::vector<Sample> step = loaders.contains(LoaderOfSet(1))
                                 ? DrawOfSets(loaders, static_cast<uint64_t>(samples))
                                 : loaders.at(kMainLoader)->NextStep(samples, drop_last);
  const auto generative = loaders.find(kGenerativeLoader);
  if (generative == loaders.end()) return step;
  const int64_t every = options_.companion_every;
  std::vector<Sample> rows = generative->second->NextStep((samples + every - 1) / every, drop_last);
  for (size_t i = 0; i < rows.size(); ++i) {
    Sample& sample = step[i * static_cast<size_t>(every)];
    sample = sample.With(std::move(rows[i]));
  }
  return step;
}

std::vector<Sample> GritData::DrawOfSets(const SampleLoaders& loaders, uint64_t samples) const {
  const std::vector<SampleLoader*> of_sets = LoadersOfSets(loaders);
  std::vector<uint64_t> lengths;
  uint64_t taken = 0, all = 0;
  for (const SampleLoader* loader : of_sets) {
    lengths.push_back(loader->rules()->own_samples());
    all += lengths.back();
    taken += loader->cursor().taken;
  }
  const SetBatches batches(lengths, samples, options_.seed);
  if (batches.batches() == 0) throw TooFewSamples(all, samples);
  if (taken % samples != 0) {
    throw Error(ErrorCode::kBadInput, "data position",
                "lies inside a step of " + std::to_string(samples) + " records", "",
                "resume with the --batch x --accum x ranks that the run began with");
  }
  const uint64_t number = taken / samples, epoch = number / batches.batches();
  if (number % batches.batches() == 0) {
    // What an epoch dropped is passed over.
    for (SampleLoader* loader : of_sets) loader->Seek({.epoch = epoch, .taken = loader->cursor().taken});
  }
  std::vector<Sample> step;
  step.reserve(samples);
  for (const uint32_t set : batches.SetsOf(epoch, number % batches.batches())) {
    step.push_back(of_sets[set]->Next());
  }
  return step;
}

std::vector<Sample> GritData::Join(std::vector<Sample> samples) const {
  if (!options_.embeds || !options_.generates) return samples;
  std::vector<Sample> records, rows;
  for (const Sample& sample : samples) (IsRow(sample) ? rows : records).push_back(sample);
  const auto every = static_cast<size_t>(options_.companion_every);
  for (size_t i = 0; i < records.size() && !rows.empty(); i += every) {
    records[i] = records[i].With(rows[i / every % rows.size()]);
  }
  return records;
}

PackedBatch GritData::Pack(std::span<const Sample> samples) const {
  PackedBatch batch;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (IsRow(samples[i])) continue;
    PackRecord(samples[i], options_.choice, options_.seed, static_cast<uint32_t>(i), &batch);
  }
  for (size_t i = 0; i < samples.size(); ++i) {
    const Sample* row = IsRow(samples[i]) ? &samples[i] : samples[i].companion();
    if (row != nullptr) PackRow(*row, static_cast<uint32_t>(i), &batch);
  }
  return batch;
}

PackedBatch GritData::LongestBatch(int64_t samples, int64_t text_tokens) const {
  PackedBatch batch;
  uint64_t texts = 0;
  const auto append = [&](TextUse use, int64_t record, int64_t most_tokens) {
    const bool is_row = use == TextUse::kGenerative;
    const auto length = static_cast<size_t>(std::min(most_tokens, text_tokens));
    const std::vector<uint32_t> tokens(length, 0);
    const std::vector<uint8_t> predicted(length, is_row ? 1 : 0);
    batch.AppendSpan(std::span<const uint32_t>(tokens), kNoId, predicted);
    batch.notes.push_back(
        {.use = use, .record = static_cast<uint32_t>(record), .text_hash = is_row ? 0 : ++texts});
  };
  for (int64_t i = 0; options_.embeds && i < samples; ++i) {
    append(TextUse::kQuery, i, options_.query_tokens);
    ++batch.num_labels;  // as a record has one
    for (uint64_t k = 0; k < std::max<uint64_t>(1, options_.choice.positives); ++k) {
      append(TextUse::kPositive, i, options_.passage_tokens);
    }
    for (uint64_t k = 0; k < options_.choice.negatives; ++k) {
      append(TextUse::kNegative, i, options_.passage_tokens);
    }
  }
  const int64_t every = options_.embeds ? options_.companion_every : 1;
  for (int64_t i = 0; options_.generates && i < samples; i += every) {
    append(TextUse::kGenerative, i, options_.generative_tokens);
  }
  return batch;
}

}  // namespace trainwright
