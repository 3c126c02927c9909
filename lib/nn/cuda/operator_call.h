/// What every operator on a device does before and after its launches.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>
#include <cuda_runtime_api.h>

#include <initializer_list>

namespace trainwright::cuda {

/// Makes the tensors' device the current one while it lives.
class OperatorCall {
 public:
  /// \throws c10::Error unless all are contiguous and of one device
  explicit OperatorCall(std::initializer_list<at::Tensor> tensors);
  /// The device's current stream; of the host, on which emulated kernels run, none.
  cudaStream_t stream() const { return stream_; }
  /// \throws c10::Error with the runtime's words on what a launch failed with
  void Check(cudaError_t status) const;

 private:
  c10::DeviceGuard guard_;
  cudaStream_t stream_;
};

}  // namespace trainwright::cuda
