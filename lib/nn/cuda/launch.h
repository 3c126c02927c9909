/// The one way by which kernels start. nvcc compiles it to a launch on a stream; without nvcc the same
/// sources are C++ whose kernels run on the host, with the headers of tests/support/cuda_emulation.
#pragma once

#include <cuda_runtime_api.h>

#if !defined(__CUDACC__)
#include <cuda_emulation.h>
#endif

namespace trainwright::cuda {

/// Starts a kernel, which has only `__shared__` memory of a size that it declares.
/// \param arguments converted to the kernel's parameters
/// \returns what the launch itself failed with (cudaErrorInvalidConfiguration: an empty grid, a block of
///          more than 1024 threads, a grid of more than 65535 blocks in y or z); what fails in the kernel
///          shows later
template <typename... Parameters, typename... Arguments>
cudaError_t Launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, cudaStream_t stream,
                   Arguments... arguments) {
#if defined(__CUDACC__)
  kernel<<<grid, block, 0, stream>>>(arguments...);
  return cudaGetLastError();
#else
  return cuda_emulation::Launch(kernel, grid, block, stream, arguments...);
#endif
}

}  // namespace trainwright::cuda
