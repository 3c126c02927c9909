#include "lib/loading/sample_order.h"

#include <algorithm>
#include <utility>

#include "lib/base/checksum.h"
#include "lib/base/error.h"
#include "lib/base/rng.h"
#include "lib/loading/sample_cutter.h"

namespace trainwright {
namespace {

std::vector<OrderedSet> SetsOf(const SampleOrderOptions& options, uint64_t chunks) {
  if (!options.sets.empty()) return options.sets;
  return {{.chunks = chunks, .weight = 1}};
}

/// Sorts them by length and puts groups of neighbours in an order of their own. Those of one length stay in
/// the order that they have.
void GroupByLength(uint64_t key, std::vector<SampleWindow::Entry>* samples) {
  using Entry = SampleWindow::Entry;
  std::vector<Entry> sorted = std::move(*samples);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Entry& a, const Entry& b) { return a.tokens > b.tokens; });
  const uint64_t groups = (sorted.size() + kLengthGroupSamples - 1) / kLengthGroupSamples;
  const KeyedPermutation order(groups, key);
  samples->clear();
  samples->reserve(sorted.size());
  for (uint64_t i = 0; i < groups; ++i) {
    const uint64_t begin = order(i) * kLengthGroupSamples;
    const uint64_t end = std::min<uint64_t>(begin + kLengthGroupSamples, sorted.size());
    samples->insert(samples->end(), sorted.begin() + static_cast<ptrdiff_t>(begin),
                    sorted.begin() + static_cast<ptrdiff_t>(end));
  }
}

}  // namespace

SampleOrder::SampleOrder(const SampleOrderOptions& options, uint64_t chunks)
    : options_(options),
      chunk_order_(SetsOf(options, chunks),
                   {.seed = options.seed, .shuffle = options.shuffle, .block_chunks = options.block_chunks}) {
  if (options_.window_chunks < 1) throw Error(ErrorCode::kUsage, "window", "must be at least 1 chunk");
  if (options_.rules.index == nullptr) return;
  const std::vector<OrderedSet>& sets = chunk_order_.sets();
  TRAINWRIGHT_CHECK(options_.rules.index->sets() == sets.size());
  const auto comes_once = [&](const OrderedSet& set) { return set.weight == set.chunks || sets.size() == 1; };
  TRAINWRIGHT_CHECK(std::all_of(sets.begin(), sets.end(), comes_once));
  rules_.emplace(options_.rules, options_.seed);
}

uint64_t SampleOrder::windows_of_chunks() const {
  return (chunk_order_.slots() + options_.window_chunks - 1) / options_.window_chunks;
}

uint64_t SampleOrder::windows_of_draws() const {
  if (!rules_) return 0;
  const uint64_t draws = options_.rules.window_draws;
  return (rules_->extra_samples() + draws - 1) / draws;
}

WindowId SampleOrder::After(WindowId id) const {
  return id.window + 1 < windows() ? WindowId{id.epoch, id.window + 1} : WindowId{id.epoch + 1, 0};
}

double SampleOrder::ShareBefore(WindowId id, double in_window) const {
  const auto number = static_cast<double>(id.window);
  if (windows_of_draws() > 0) return (number + in_window) / static_cast<double>(windows());
  const uint64_t begin = id.window * options_.window_chunks, slots = chunk_order_.slots();
  const uint64_t size = std::min(options_.window_chunks, slots - begin);
  return (static_cast<double>(begin) + in_window * static_cast<double>(size)) / static_cast<double>(slots);
}

std::vector<ChunkDraw> SampleOrder::DrawsOf(WindowId id) const {
  const uint64_t begin = id.window * options_.window_chunks;
  const uint64_t end = std::min(begin + options_.window_chunks, chunk_order_.slots());
  std::vector<ChunkDraw> draws;
  draws.reserve(end - begin);
  for (uint64_t slot = begin; slot < end; ++slot) draws.push_back(chunk_order_.At(id.epoch, slot));
  return draws;
}

std::vector<SampleDraws::Draw> SampleOrder::ExtraOf(WindowId id) const {
  TRAINWRIGHT_CHECK(IsDrawn(id) && id.window < windows());
  const uint64_t window_draws = options_.rules.window_draws;
  const uint64_t begin = (id.window - windows_of_chunks()) * window_draws;
  const uint64_t end = std::min(begin + window_draws, rules_->extra_samples());
  std::vector<SampleDraws::Draw> draws;
  draws.reserve(end - begin);
  for (uint64_t number = begin; number < end; ++number) draws.push_back(rules_->ExtraAt(id.epoch, number));
  return draws;
}

void SampleOrder::Permute(WindowId id, std::vector<SampleWindow::Entry>* samples) const {
  if (!options_.shuffle || samples->empty()) return;
  const std::vector<SampleWindow::Entry> stored = std::move(*samples);
  const KeyedPermutation order(stored.size(), Rng(options_.seed, "sample order", id.epoch).Bits(id.window));
  samples->clear();
  samples->reserve(stored.size());
  for (uint64_t i = 0; i < stored.size(); ++i) samples->push_back(stored[order(i)]);
  if (!options_.group_by_length) return;
  GroupByLength(Rng(options_.seed, "length groups", id.epoch).Bits(id.window), samples);
}

std::string SampleOrder::Fingerprint(const ShardSet& set, const SampleCutter& cutter) const {
  std::string identity = "trainwright sample order 1\ncontent " + HexEncode(set.content_sha256()) +
                         "\nseed " + std::to_string(options_.seed) + "\nsequence_tokens " +
                         std::to_string(cutter.sequence_tokens()) + "\nwindow_chunks " +
                         std::to_string(options_.window_chunks) + "\nshuffle " +
                         (options_.shuffle ? "1" : "0") + "\n" + cutter.Identity();
  if (options_.group_by_length) identity += "group_by_length\n";
  if (options_.block_chunks > 1) {
    identity += "block_chunks " + std::to_string(options_.block_chunks) + "\n";
  }
  uint64_t next_chunk = 0;
  for (const OrderedSet& part : options_.sets) {
    identity += "set of " + std::to_string(part.chunks) + " weight " + std::to_string(part.weight);
    if (part.first_chunk != next_chunk) identity += " from chunk " + std::to_string(part.first_chunk);
    identity += "\n";
    next_chunk = part.first_chunk + part.chunks;
  }
  if (rules_) identity += rules_->Identity();
  return HexEncode(Sha256Of(AsBytes(identity)));
}

}  // namespace trainwright
