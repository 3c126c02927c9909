/// A tensor that grows to the largest shape asked of it and is handed out in pieces, so that steps of
/// changing size do not return memory to the system and fault it in again.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <cstdint>
#include <vector>

namespace trainwright {

class Buffer {
 public:
  /// A contiguous tensor with undefined content; it and earlier results share memory.
  at::Tensor Get(const std::vector<int64_t>& shape, at::ScalarType dtype, at::Device device) {
    int64_t size = 1;
    for (const int64_t extent : shape) size *= extent;
    if (!storage_.defined() || storage_.numel() < size || storage_.scalar_type() != dtype) {
      storage_ = at::Tensor();
      storage_ = at::empty({size}, at::TensorOptions().dtype(dtype).device(device));
    }
    return storage_.narrow(0, 0, size).view(shape);
  }
  /// What it has grown to.
  int64_t bytes() const { return storage_.defined() ? static_cast<int64_t>(storage_.nbytes()) : 0; }

 private:
  at::Tensor storage_;
};

}  // namespace trainwright
