#include "lib/nn/cuda/operator_call.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

namespace trainwright::cuda {
namespace {

cudaStream_t CurrentStreamOf(c10::Device device) {
  if (device.is_cpu()) return nullptr;
  const c10::impl::VirtualGuardImpl guard(device.type());
  return static_cast<cudaStream_t>(guard.getStreamNativeHandle(guard.getStream(device)));
}

}  // namespace

OperatorCall::OperatorCall(std::initializer_list<at::Tensor> tensors)
    : guard_(tensors.begin()->device()), stream_(CurrentStreamOf(tensors.begin()->device())) {
  for (const at::Tensor& tensor : tensors) {
    TORCH_CHECK(tensor.is_contiguous() && tensor.device() == tensors.begin()->device(),
                "the operator takes contiguous tensors of one device");
  }
}

void OperatorCall::Check(cudaError_t status) const {
  TORCH_CHECK(status == cudaSuccess, "CUDA kernel: ", cudaGetErrorString(status));
}

}  // namespace trainwright::cuda
