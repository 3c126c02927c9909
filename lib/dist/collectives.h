/// Sums and copies of tensors between the ranks of a world.
///
/// All ranks begin the same work in the same order, with tensors of the sizes that belong together. What a
/// work reads must stay as it is, and what it writes must be left alone, until it has been waited for. Not
/// thread-safe: the training thread's.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace trainwright {

/// Work between ranks that goes on beside that of the training thread.
class PendingWork {
 public:
  virtual ~PendingWork() = default;
  /// Returns once this rank has what the work gives it. Called once.
  /// \throws Error{kIo} naming a rank that is gone, see World::Reduce
  virtual void Wait() = 0;
};

class Collectives {
 public:
  virtual ~Collectives() = default;
  /// Adds up each element over all ranks, in an order that the engine chooses; all get the same sums.
  /// \param values contiguous, as many in all ranks; overwritten
  virtual std::unique_ptr<PendingWork> BeginSum(at::Tensor values) = 0;
  /// Gives each rank its part of `send`, and takes a part from each.
  /// \param send, receive contiguous, one-dimensional, of one type: parts one after the other, in the order
  ///     of the ranks that they go to and come from
  /// \param send_counts, receive_counts elements of the parts, which may be 0; what rank a sends to b is what
  ///     b receives from a
  virtual std::unique_ptr<PendingWork> BeginExchange(const at::Tensor& send, at::Tensor receive,
                                                     const std::vector<int64_t>& send_counts,
                                                     const std::vector<int64_t>& receive_counts) = 0;
  /// Gives all ranks the parts of all, in the order of the ranks.
  /// \param own contiguous, of as many elements in all ranks
  /// \param all contiguous, of size() times as many
  virtual std::unique_ptr<PendingWork> BeginGather(const at::Tensor& own, at::Tensor all) = 0;
};

}  // namespace trainwright
