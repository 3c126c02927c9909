#include "lib/dist/leaf_tree.h"

#include <ATen/ops/empty_like.h>

#include <bit>

#include "lib/base/error.h"

namespace trainwright {

LeafTree::LeafTree(int64_t leaves) : leaves_(leaves), waiting_(static_cast<size_t>(BuffersOf(leaves))) {}

int64_t LeafTree::BuffersOf(int64_t leaves) {
  TRAINWRIGHT_CHECK(leaves > 0 && std::has_single_bit(static_cast<uint64_t>(leaves)));
  return std::countr_zero(static_cast<uint64_t>(leaves));
}

void LeafTree::Allocate(const at::Tensor& leaf) {
  for (at::Tensor& sum : waiting_) {
    if (!sum.defined()) sum = at::empty_like(leaf);
  }
}

void LeafTree::Add(at::Tensor& leaf) {
  TRAINWRIGHT_CHECK(added_ + 1 < leaves_);
  size_t level = 0;
  for (int64_t rest = added_; rest % 2 == 1; rest /= 2) leaf.add_(waiting_[level++]);
  waiting_[level].copy_(leaf);
  ++added_;
}

void LeafTree::Complete(int64_t begin, at::Tensor& part) const {
  TRAINWRIGHT_CHECK(added_ + 1 == leaves_);
  for (const at::Tensor& sum : waiting_) part.add_(sum.narrow(0, begin, part.numel()));
}

int64_t LeafTree::held_bytes() const {
  int64_t bytes = 0;
  for (const at::Tensor& sum : waiting_) bytes += sum.defined() ? static_cast<int64_t>(sum.nbytes()) : 0;
  return bytes;
}

}  // namespace trainwright
