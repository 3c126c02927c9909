/// Sums of buffers that come one after the other, in the order of AddAsTree: one more buffer in memory for
/// each level of the tree, not for each leaf.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace trainwright {

/// Not thread-safe.
class LeafTree {
 public:
  /// \param leaves a power of two
  explicit LeafTree(int64_t leaves);
  /// How many buffers it takes: the logarithm of the number of leaves to the base of 2.
  static int64_t BuffersOf(int64_t leaves);
  /// Takes their memory, once.
  /// \param leaf one that they are to be like
  void Allocate(const at::Tensor& leaf);
  /// Forgets the leaves added so far.
  void Clear() { added_ = 0; }
  /// The next leaf, which is not the last.
  /// \param leaf overwritten
  void Add(at::Tensor& leaf);
  /// Makes a part of the last leaf that part of the sum of all. Once for each element.
  /// \param begin number of the part's first element in the leaf
  void Complete(int64_t begin, at::Tensor& part) const;
  int64_t held_bytes() const;

 private:
  int64_t leaves_, added_ = 0;
  /// At level k the sum of 2^k leaves, the first of a pair of such sums; there while bit k of added_ is set.
  std::vector<at::Tensor> waiting_;
};

}  // namespace trainwright
