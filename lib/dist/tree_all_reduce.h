/// Sums of a flat buffer's ranges over all ranks in the order of AddAsTree, so that they are the same bit for
/// bit on all of them and fit into the tree of leaves.
///
/// Blocks of kReductionBlock elements of the whole buffer belong to the ranks in turn. Of each range a rank
/// sends every other the part that is that one's, adds up what it gets for its own, and sends the sums to
/// all. Ranges are begun one after the other and go on while later ones are begun; how many are under way at
/// once, and so the memory, is bounded, and the order of all that is sent depends on nothing but the ranges.
/// Not thread-safe.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/dist/collectives.h"
#include "lib/dist/world.h"

namespace trainwright {

/// Elements [begin, end) of a flat buffer.
struct ElementRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

class TreeAllReduce {
 public:
  /// \param world that has collectives; outlives this
  /// \param ranges not empty, in the order in which they will be begun; each element in one at most
  TreeAllReduce(World* world, const std::vector<ElementRange>& ranges);
  /// Takes the memory of what is under way, once.
  /// \param values fp32, the flat buffer or one like it
  void Allocate(const at::Tensor& values);
  /// Forgets what was begun.
  void Clear();
  /// Begins the next range.
  /// \param values the flat buffer; the range's elements are left alone until Finish
  /// \throws Error{kIo} as PendingWork::Wait
  void Begin(at::Tensor& values);
  /// Once all have begun: waits until `values` has all sums.
  /// \throws Error{kIo} as PendingWork::Wait
  void Finish(at::Tensor& values);
  /// The time spent waiting for others.
  double wait_s() const { return wait_s_; }
  int64_t held_bytes() const;
  /// What Allocate takes.
  static int64_t MemoryBytes(const std::vector<ElementRange>& ranges, int64_t ranks);

 private:
  /// A part of a range that is one owner's.
  struct Piece {
    int64_t offset = 0;  ///< in the flat buffer
    int64_t owner = 0;
    int64_t place = 0;  ///< in all of the range that is the owner's
    int64_t size = 0;
  };
  struct Plan {
    std::vector<Piece> pieces;
    std::vector<int64_t> counts;  ///< elements of each owner
    int64_t most = 0;             ///< of them
  };
  /// Memory of a range under way, and what is.
  struct Slot {
    at::Tensor packed, received;
    std::unique_ptr<PendingWork> work;
  };

  static Plan PlanOf(const ElementRange& range, int64_t ranks);
  Slot& SlotOf(size_t range) { return slots_[range % slots_.size()]; }
  /// Adds up what came of the range after the last gathered one, and begins to send it to all.
  void GatherNext();
  /// Takes over the sums of the range after the last completed one.
  void CompleteNext(at::Tensor& values);
  void Wait(Slot& slot);

  World* world_;
  std::vector<Plan> plans_;  ///< of the ranges
  std::vector<Slot> slots_;
  size_t begun_ = 0, gathered_ = 0, completed_ = 0;
  double wait_s_ = 0;
};

}  // namespace trainwright
