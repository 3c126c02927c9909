/// The order in which training visits the chunks of one or several shard sets:
/// man/trainwright-sample-order.5.
///
/// Integer arithmetic alone, O(sets) memory and time: the chunk of any slot of any epoch is computed, never
/// looked up, so nothing has to be carried from one slot to the next and a resumed run needs its position
/// only.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/formats/record_kind.h"

namespace trainwright {

/// Chunks [first_chunk, first_chunk + chunks) of a shard set that are drawn from as one source: records of
/// one kind.
struct OrderedSet {
  uint64_t first_chunk = 0;
  uint64_t chunks = 0;  ///< >= 1
  /// Its share of the slots is weight / (sum of weights); sums below 2^63. Equal to `chunks` in all sets:
  /// each chunk comes once an epoch.
  uint64_t weight = 1;
  // The rest is no part of the order.
  uint32_t number = 0;  ///< among the sets of the data: what Sample::set() returns
  RecordKind records = RecordKind::kLm;
  uint64_t documents = 0;  ///< that start in it; 0: not said
  bool operator==(const OrderedSet&) const = default;
};

struct ChunkOrderOptions {
  uint64_t seed = 0;
  bool shuffle = true;        ///< false: stored order in each set
  uint64_t block_chunks = 1;  ///< consecutive chunks that stay together, >= 1
};

/// Where a slot leads.
struct ChunkDraw {
  uint32_t set = 0;
  uint64_t pass = 0;   ///< over that set, from 0
  uint64_t place = 0;  ///< in the pass: the how-manieth chunk of it
  uint64_t chunk = 0;  ///< number in the joined set: first_chunk of its set included
  bool operator==(const ChunkDraw&) const = default;
};

/// Immutable and thread-safe.
class ChunkOrder {
 public:
  /// \param sets at least one, each with chunks
  /// \throws Error{kUsage} on a block or weight of 0
  ChunkOrder(std::vector<OrderedSet> sets, const ChunkOrderOptions& options);
  /// Slots of an epoch: as many as all sets have chunks.
  uint64_t slots() const { return slots_; }
  const std::vector<OrderedSet>& sets() const { return sets_; }
  /// \param slot < slots()
  ChunkDraw At(uint64_t epoch, uint64_t slot) const;
  /// The chunk that takes the place of one that cannot be read, at the given attempt: attempts 0, 1, ... up
  /// to the chunks of its set visit each of them once.
  uint64_t Substitute(const ChunkDraw& draw, uint64_t attempt) const;
  /// The substitutes of a pass: for each of its places whose chunk cannot be read the first that can.
  /// \param set < sets().size()
  /// \param readable by the number of the chunk in its set; at least one is
  std::vector<uint64_t> SubstitutesOf(uint32_t set, uint64_t pass, const std::vector<bool>& readable) const;
  /// How many of the first `slots` slots of the whole stream each set has.
  std::vector<uint64_t> CountsOf(uint64_t slots) const;

 private:
  ChunkDraw InPass(uint32_t set, uint64_t pass, uint64_t place) const;
  uint64_t KeyOf(const char* stream, uint64_t set, uint64_t pass) const;

  std::vector<OrderedSet> sets_;
  ChunkOrderOptions options_;
  uint64_t slots_ = 0, total_weight_ = 0;
};

}  // namespace trainwright
