/// How many samples each chunk of some sets gives, found by cutting all of them once: what the order needs
/// where it depends on numbers of samples and not of chunks alone.
///
/// 4 bytes a chunk, and 8 for every 64 of them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lib/formats/shard_set.h"
#include "lib/loading/chunk_order.h"
#include "lib/loading/sample_cutter.h"
#include "lib/loading/sample_window.h"

namespace trainwright {

/// Samples are numbered in each set from 0, in stored order. Immutable and thread-safe.
class SampleIndex {
 public:
  /// Reads the sets once.
  /// \param sets of `set`; their order is that of the numbers below
  /// \param skip_bad whether chunks that cannot be read count as empty
  /// \throws what reading the shards throws; Error{kInterrupted, kTerminated} after a stop signal
  static std::shared_ptr<const SampleIndex> Count(const ShardSet& set, const SampleCutter& cutter,
                                                  std::span<const OrderedSet> sets, bool skip_bad = false);

  size_t sets() const { return sets_.size(); }
  uint64_t samples() const;
  /// Of sets()[set]. Throws out_of_range on another number; likewise below.
  uint64_t samples_of(size_t set) const { return sets_.at(set).samples; }
  uint64_t tokens_of(size_t set) const { return sets_.at(set).tokens; }
  uint64_t labels_of(size_t set) const { return sets_.at(set).labels; }
  /// OrderedSet::number of a set.
  uint32_t number_of(size_t set) const { return sets_.at(set).number; }
  /// Whether each chunk of a set could be read.
  const std::vector<bool>& readable_of(size_t set) const { return sets_.at(set).readable; }
  /// How many samples a chunk of one of the sets gives.
  uint32_t samples_in(uint64_t chunk) const;
  /// What did not fit, of all sets.
  const CutCounts& cuts() const { return cuts_; }

  struct Place {
    uint64_t chunk = 0;   ///< in the shard set
    uint32_t number = 0;  ///< among the samples of the chunk
    bool operator==(const Place&) const = default;
  };
  /// \param sample < samples_of(set)
  Place At(size_t set, uint64_t sample) const;
  /// Which of the sets a chunk is of.
  /// \param chunk of one of them
  size_t SetOf(uint64_t chunk) const;
  /// The number, in its set, of the first sample of a chunk.
  uint64_t FirstOf(uint64_t chunk) const;

 private:
  struct CountedSet {
    uint64_t first_chunk = 0;
    uint32_t number = 0;
    std::vector<uint32_t> of_chunk;  // samples of each
    std::vector<bool> readable;
    std::vector<uint64_t> block_begins;  // samples before each 64 chunks
    uint64_t samples = 0, tokens = 0, labels = 0;
  };
  SampleIndex() = default;
  static CountedSet CountSet(const ShardSet& set, const SampleCutter& cutter, const OrderedSet& part,
                             bool skip_bad, CutCounts* cuts);

  std::vector<CountedSet> sets_;
  CutCounts cuts_;
};

}  // namespace trainwright
