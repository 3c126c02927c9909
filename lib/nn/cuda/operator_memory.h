/// The memory of an operator's tensors as launches take it.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "lib/nn/cuda/kernels.h"

namespace trainwright::cuda {

inline Storage StorageOf(const at::Tensor& stored) {
  switch (stored.scalar_type()) {
    case at::kFloat:
      return Storage::kFp32;
    case at::kBFloat16:
      return Storage::kBf16;
    case at::kHalf:
      return Storage::kFp16;
    default:
      TORCH_CHECK(false, "stored values are fp32, bf16 or fp16, not ", stored.scalar_type());
  }
}

inline NormStorage NormStorageOf(const at::Tensor& stored, const at::Tensor& stream) {
  return {StorageOf(stored), StorageOf(stream)};
}
/// What is written of a residual stream, or its gradient, and has the type of what is read of it.
inline void* StreamOf(const at::Tensor& read, at::Tensor& written) {
  TORCH_CHECK(written.scalar_type() == read.scalar_type(),
              "a residual stream and its gradient have one type");
  return written.mutable_data_ptr();
}

inline float* Floats(at::Tensor& tensor) {
  return tensor.mutable_data_ptr<float>();
}
inline const float* Floats(const at::Tensor& tensor) {
  return tensor.const_data_ptr<float>();
}
inline const int64_t* Longs(const at::Tensor& tensor) {
  return tensor.const_data_ptr<int64_t>();
}

/// Null where there is no tensor.
template <typename T>
T* DataOrNull(const std::optional<at::Tensor>& tensor) {
  return tensor ? tensor->mutable_data_ptr<T>() : nullptr;
}
inline float* FloatsOrNull(const std::optional<at::Tensor>& tensor) {
  return DataOrNull<float>(tensor);
}
inline void* StoredOrNull(const std::optional<at::Tensor>& tensor) {
  return tensor ? tensor->mutable_data_ptr() : nullptr;
}

}  // namespace trainwright::cuda
