#include "lib/loading/sample_index.h"

#include <algorithm>
#include <utility>

#include "lib/base/error.h"
#include "lib/formats/chunk_range.h"

namespace trainwright {
namespace {

constexpr uint64_t kBlockChunks = 64;

}  // namespace

SampleIndex::CountedSet SampleIndex::CountSet(const ShardSet& set, const SampleCutter& cutter,
                                              const OrderedSet& part, bool skip_bad, CutCounts* cuts) {
  CountedSet counted;
  counted.first_chunk = part.first_chunk;
  counted.number = part.number;
  counted.of_chunk.resize(part.chunks);
  counted.readable.resize(part.chunks);
  SampleWindow some;  // ids of 32 bits, whatever the vocabulary
  VisitChunks(set, {part.first_chunk, part.chunks}, skip_bad, [&](uint64_t number, const Chunk& chunk) {
    some = {};
    cutter.Cut(chunk, &some);
    *cuts += some.cuts;
    counted.readable.at(number - part.first_chunk) = true;
    counted.of_chunk.at(number - part.first_chunk) = static_cast<uint32_t>(some.samples.size());
    for (const SampleWindow::Entry& sample : some.samples) {
      counted.tokens += sample.tokens;
      counted.labels += sample.labels;
    }
    return true;
  });
  for (size_t i = 0; i < counted.of_chunk.size(); ++i) {
    if (i % kBlockChunks == 0) counted.block_begins.push_back(counted.samples);
    counted.samples += counted.of_chunk[i];
  }
  return counted;
}

std::shared_ptr<const SampleIndex> SampleIndex::Count(const ShardSet& set, const SampleCutter& cutter,
                                                      std::span<const OrderedSet> sets, bool skip_bad) {
  const std::shared_ptr<SampleIndex> index(new SampleIndex());
  for (const OrderedSet& part : sets) {
    index->sets_.push_back(CountSet(set, cutter, part, skip_bad, &index->cuts_));
  }
  return index;
}

uint64_t SampleIndex::samples() const {
  uint64_t samples = 0;
  for (const CountedSet& set : sets_) samples += set.samples;
  return samples;
}

SampleIndex::Place SampleIndex::At(size_t set, uint64_t sample) const {
  const CountedSet& counted = sets_.at(set);
  TRAINWRIGHT_CHECK(sample < counted.samples);
  const std::vector<uint64_t>& begins = counted.block_begins;
  const auto block =
      static_cast<uint64_t>(std::upper_bound(begins.begin(), begins.end(), sample) - begins.begin()) - 1;
  uint64_t chunk = block * kBlockChunks, left = sample - begins[block];
  for (; left >= counted.of_chunk[chunk]; ++chunk) left -= counted.of_chunk[chunk];
  return {.chunk = counted.first_chunk + chunk, .number = static_cast<uint32_t>(left)};
}

size_t SampleIndex::SetOf(uint64_t chunk) const {
  const auto found = std::find_if(sets_.begin(), sets_.end(), [chunk](const CountedSet& set) {
    return set.first_chunk <= chunk && chunk < set.first_chunk + set.of_chunk.size();
  });
  TRAINWRIGHT_CHECK(found != sets_.end());
  return static_cast<size_t>(found - sets_.begin());
}

uint32_t SampleIndex::samples_in(uint64_t chunk) const {
  const CountedSet& counted = sets_[SetOf(chunk)];
  return counted.of_chunk[chunk - counted.first_chunk];
}

uint64_t SampleIndex::FirstOf(uint64_t chunk) const {
  const CountedSet& counted = sets_[SetOf(chunk)];
  const uint64_t place = chunk - counted.first_chunk, block = place / kBlockChunks;
  uint64_t first = counted.block_begins[block];
  for (uint64_t i = block * kBlockChunks; i < place; ++i) first += counted.of_chunk[i];
  return first;
}

}  // namespace trainwright
