/// Sums of a flat buffer's ranges over all ranks in the order of AddAsTree, so that they are the same bit for
/// bit on all of them and fit into the tree of leaves.
///
/// Blocks of kReductionBlock elements of the whole buffer belong to the ranks round-robin. Of each range a
/// rank sends every other the part that is that one's, adds up what it gets for its own, and sends the sums
/// to all, or keeps them. Ranges are begun one after the other and go on while later ones are begun; how many
/// are under way at once, and so the memory, is bounded, and the order of all that is sent depends on nothing
/// but the ranges. Not thread-safe.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "lib/dist/collectives.h"
#include "lib/dist/world.h"
#include "lib/spec/exchange_memory.h"
#include "lib/spec/range_plan.h"

namespace trainwright {

class TreeAllReduce {
 public:
  /// The flat buffer as the caller keeps it. Elements are asked for when their range begins, and given once
  /// each, in a call of Begin or Finish.
  struct Buffer {
    std::function<void(int64_t begin, at::Tensor out)> read;
    std::function<void(int64_t begin, const at::Tensor& sums)> write;
  };

  /// \param world that has collectives; outlives this
  /// \param ranges not empty, in the order in which they will be begun; each element in one at most
  TreeAllReduce(World* world, const std::vector<ElementRange>& ranges, SumsOf sums_of, Buffer buffer);
  /// Takes the memory of what is under way, once.
  /// \param options fp32, where the flat buffer is
  void Allocate(const at::TensorOptions& options);
  /// Forgets what was begun.
  void Clear();
  /// Begins the next range; its elements are read.
  /// \throws Error{kIo} as PendingWork::Wait
  void Begin();
  /// Once all have begun: waits until all sums are written.
  /// \throws Error{kIo} as PendingWork::Wait
  void Finish();
  /// The time spent waiting for others.
  double wait_s() const { return wait_s_; }
  int64_t held_bytes() const;
  /// What Allocate takes.
  static int64_t MemoryBytes(const std::vector<ElementRange>& ranges, int64_t ranks, SumsOf sums_of);

 private:
  /// Memory of a range under way, and what is.
  struct Slot {
    at::Tensor packed, received;
    std::unique_ptr<PendingWork> work;
  };

  Slot& SlotOf(size_t range) { return slots_[range % slots_.size()]; }
  /// Adds up what came of the range after the last added one; begins to send it to all, or writes it.
  void AddNext();
  /// Writes the sums of the range after the last completed one.
  void CompleteNext();
  void Wait(Slot& slot);

  World* world_;
  SumsOf sums_of_;
  Buffer buffer_;
  std::vector<RangePlan> plans_;  ///< of the ranges
  std::vector<Slot> slots_;
  size_t begun_ = 0, added_ = 0, completed_ = 0;
  double wait_s_ = 0;
};

}  // namespace trainwright
