/// Sums whose order does not depend on the thread count.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lib/spec/reduction_block.h"

namespace trainwright {

/// A sum of squares in fp64 over blocks of a fixed size, added in order. The blocks are those of all values
/// one after the other, so it is the same bit for bit however they are cut into parts. Not thread-safe.
class SquareSum {
 public:
  /// Adds the next values.
  /// \param values fp32, contiguous
  void Add(const at::Tensor& values);
  double total() const;

 private:
  double full_blocks_ = 0;
  std::vector<float> begun_;  ///< of a block, what is there so far
};

/// That of values which are there at once.
/// \param values fp32, contiguous
double SumOfSquares(const at::Tensor& values);

/// That of each of some parts, none larger than a block: SquareSum adds up those of all blocks in order.
/// \param parts fp32, contiguous, on one device
/// \param sums fp64 [as many], contiguous, there, too
void SumSquaresOfBlocks(const std::vector<at::Tensor>& parts, at::Tensor& sums);

}  // namespace trainwright
