/// How the gradients of a step's parts, on this rank and on all, become those of the whole step.
///
/// A rank makes the gradients of its share of a step in leaves, each from zero. Without exact leaves a rank's
/// share is one leaf, and the engine adds the ranks' up in an order of its own. With them a step has a fixed
/// number of leaves, which are added up as one balanced tree (AddAsTree) inside a rank and across ranks: the
/// sums are the same bit for bit on any number of ranks that is a power of two up to the number of leaves.
///
/// Gradients travel in buckets: parts of the flat buffer from its end to its beginning, which is about the
/// order in which a backward pass completes them. A bucket begins as soon as its segments are done in the
/// last backward pass and all buckets before it have begun: in the same order on all ranks, whatever their
/// passes do.
///
/// Where the parameters are sharded (FlatParameters::Shard) the sums are those of the owners of the blocks
/// alone, in the order of AddAsTree with and without exact leaves. Where gradients are sharded, a leaf's
/// are added to what their owners have of the step so far. Not thread-safe.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "lib/dist/collectives.h"
#include "lib/dist/leaf_tree.h"
#include "lib/dist/tree_all_reduce.h"
#include "lib/dist/world.h"
#include "lib/nn/parameters/flat_parameters.h"

namespace trainwright {

struct GradientExchangeOptions {
  /// Of gradients that travel together, at most; at least 4. Between owners of blocks: see BucketElements.
  int64_t bucket_bytes = int64_t{25} << 20;
  /// Leaves of a step on all ranks together, a power of two that the number of ranks divides; 0: not exact.
  int64_t exact_leaves = 0;
};

class GradientExchange {
 public:
  /// \param world, parameters outlive the exchange; with other ranks or several leaves the gradients are not
  ///     offloaded
  GradientExchange(World* world, FlatParameters* parameters, const GradientExchangeOptions& options);
  GradientExchange(const GradientExchange&) = delete;
  GradientExchange& operator=(const GradientExchange&) = delete;

  /// Of this rank in a step.
  int64_t leaves() const { return leaves_; }
  /// Whether there are other ranks to exchange with.
  bool between_ranks() const { return collectives_ != nullptr; }
  /// Takes all memory that steps need, the gradients' among it; only the first call does. What is begun later
  /// fails for lack of memory in no rank alone.
  /// \param sums of a leaf that AddUp is to add up
  void Prepare(int64_t sums = 0);
  /// Whether what a rank adds to the gradients can be exchanged in several rounds of a step.
  bool takes_rounds() const { return parameters_->gradient_buffer().given_away(); }
  /// Before the first leaf of a step, whatever became of the step before.
  void BeginStep();
  /// Where gradients are sharded: after Finish, before the leaf of another round, whose gradients are
  /// added to those of the rounds before. All ranks have as many rounds.
  void BeginRound();
  /// Zeroes the gradients.
  void BeginLeaf();
  /// The backward pass that comes is the last of the step's, or the round's, last leaf: segments that are
  /// done from now on are complete. Without the call all is exchanged in Finish.
  void LastBackwardBegins() { last_backward_ = true; }
  /// See Body::set_on_segment_gradients_done.
  /// \throws Error{kIo} as PendingWork::Wait
  void SegmentDone(size_t segment);
  void EndLeaf();
  /// Waits until the gradients are the whole step's, the same bit for bit on all ranks; sharded, those of
  /// this rank's shard.
  /// \param complete whether all leaves have ended. A rank whose passes failed has no gradients to give, yet
  ///     takes part in all that the others wait for; theirs are worth nothing then
  /// \throws Error{kIo} as PendingWork::Wait
  void Finish(bool complete);
  /// Adds up sums of the leaves of all ranks as the same tree. A call that all ranks make.
  /// \param sums_lt fp64 [leaves(), terms] of this rank's; overwritten
  /// \returns fp64 [terms], of all, good until the next call; may share its memory with `sums_lt`
  /// \throws Error{kIo} as PendingWork::Wait
  at::Tensor AddUp(at::Tensor sums_lt);

  /// Where parameters are sharded, after Finish: the sum of the squares of all gradients; on a CPU the bits
  /// of SumOfSquares of them in one buffer. A call that all ranks make.
  /// \returns fp64 [1], where the gradients are
  /// \throws Error{kIo} as PendingWork::Wait
  at::Tensor AddUpSquares();

  /// The time spent waiting for other ranks so far.
  double wait_s() const;
  /// In the present step; of buckets().
  size_t buckets_begun() const { return begun_; }
  size_t buckets() const { return buckets_.size(); }
  /// What Prepare has taken, without the gradients'.
  int64_t held_bytes() const;
  /// What it will take.
  /// \param ranks of the world
  /// \param sums_of kOwners where parameters are sharded
  static int64_t MemoryBytes(const GradientBuffer& gradients, int64_t ranks,
                             const GradientExchangeOptions& options, SumsOf sums_of = SumsOf::kAll);

  /// Releases segments of gradients that are sharded as an exchange between this many ranks does, of a model
  /// whose gradients are not exchanged: what each pass keeps shows.
  /// \returns what is to be called when a segment is done
  static std::function<void(size_t segment)> Releaser(GradientBuffer* gradients, int64_t ranks,
                                                      int64_t bucket_bytes);

 private:
  struct Bucket {
    ElementRange range;
    size_t first_segment = 0, last_segment = 0;  ///< that lie in it, whole or in part
  };

  static std::vector<Bucket> BucketsOf(const std::vector<GradientBuffer::Segment>& segments,
                                       int64_t bucket_elements);
  static std::vector<ElementRange> RangesOf(const std::vector<Bucket>& buckets);
  TreeAllReduce::Buffer FlatBuffer() const;
  bool IsDone(const Bucket& bucket) const;
  void BeginNextBucket();
  /// Where gradients are sharded: takes back the memory of segments that have been read to their
  /// beginning.
  void Release(int64_t read_from);
  void Wait(PendingWork* work);
  /// What is gathered of fp64 numbers of each rank: [ranks, numbers], kept in `memory`.
  at::Tensor& Gathered(int64_t numbers, at::Tensor* memory) const;

  World* world_;
  FlatParameters* parameters_;
  Collectives* collectives_;  ///< null: alone
  int64_t leaves_;
  LeafTree tree_;
  std::vector<Bucket> buckets_;              ///< in the order in which they are exchanged
  std::optional<TreeAllReduce> all_reduce_;  ///< of exact leaves on several ranks, and of sharded parameters
  std::vector<std::unique_ptr<PendingWork>> under_way_;
  at::Tensor gathered_sums_, own_squares_, gathered_squares_;  ///< fp64
  std::vector<bool> segment_done_;
  int64_t ended_leaves_ = 0;
  size_t begun_ = 0;
  int64_t round_ = 0;         ///< of the step
  size_t released_from_ = 0;  ///< of the segments: those from here on are released
  bool last_backward_ = false, complete_ = true;
  double wait_s_ = 0;
};

}  // namespace trainwright
