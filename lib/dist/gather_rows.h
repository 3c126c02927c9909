/// The rows of all ranks, one below the other.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lib/dist/world.h"

namespace trainwright {

/// One such gathering, whose memory is taken before the ranks call each other: a rank that has none left can
/// say so to the others. Where ranks have rows in different numbers the shorter parts travel filled up, and
/// the rows of all are there twice until it is done.
class RowGather {
 public:
  /// Makes no call of the world.
  /// \param world outlives this
  /// \param own_rd this rank's, in one piece, of any type and any shape of a row, where the world's
  ///     collectives move tensors from
  /// \param rows_of_rank of each rank, known to all (GatherWords reports them)
  RowGather(World* world, const at::Tensor& own_rd, const std::vector<int64_t>& rows_of_rank);

  /// Once; all ranks call together.
  /// \returns likewise [sum of rows, ...], there; in a world of one `own_rd` itself
  /// \throws Error{kIo} naming a rank that is gone
  at::Tensor Gather();

 private:
  World* world_;
  std::vector<int64_t> rows_of_rank_;
  at::Tensor own_rd_;
  at::Tensor sent_, received_;  ///< undefined: nothing travels
  at::Tensor rows_;             ///< undefined: what is received has no gaps
};

/// Both in one: all ranks call together.
at::Tensor GatherRows(World* world, const at::Tensor& own_rd, const std::vector<int64_t>& rows_of_rank);

}  // namespace trainwright
