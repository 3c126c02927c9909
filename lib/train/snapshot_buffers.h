/// Host copies of what a checkpoint holds, which training goes on changing while it is written.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trainwright {

/// Host copies of tensors that training changes in place, in buffers that are used again.
class SnapshotBuffers {
 public:
  /// Makes the buffer of a slot, counted from 0, fit a tensor, with its pages in place, so that a copy into
  /// it is a copy alone.
  /// \throws std::exception without the memory
  void Allocate(size_t slot, const at::Tensor& live);
  /// \returns the slot's buffer, valid until its next copy
  at::Tensor Copy(size_t slot, const at::Tensor& live);
  /// What the buffers take of the host's memory: those for a GPU's tensors as torch locks them.
  int64_t size_bytes() const;
  /// Gives the memory back.
  void Release() { buffers_.clear(); }

 private:
  std::vector<at::Tensor> buffers_;
  bool pinned_ = false;  ///< whether the tensors are a GPU's
};

}  // namespace trainwright
