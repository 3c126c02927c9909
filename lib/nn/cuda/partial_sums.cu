#include "lib/nn/cuda/partial_sums.h"

#include "lib/nn/cuda/launch.h"

namespace trainwright::cuda {
namespace {

constexpr int kColumns = 32, kGroups = 8;

/// A thread owns a column of one of the two sums and a group of strips.
__global__ void AddPartialSumsKernel(const float* __restrict__ partial, int64_t strips, int64_t stride,
                                     int64_t width, float* first, float* second) {
  __shared__ float sums[kGroups][kColumns];
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kColumns + threadIdx.x;
  float* out = blockIdx.y == 0 ? first : second;
  const float* from = partial + static_cast<int64_t>(blockIdx.y) * width + column;
  float sum = 0;
  if (column < width && out != nullptr) {
#pragma unroll 8
    for (int64_t strip = threadIdx.y; strip < strips; strip += kGroups) sum += from[strip * stride];
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= width || out == nullptr) return;
  for (int group = 1; group < kGroups; ++group) sum += sums[group][threadIdx.x];
  out[column] += sum;
}

}  // namespace

cudaError_t AddPartialSums(const float* partial, int64_t strips, int64_t width, float* first, float* second,
                           bool has_second, cudaStream_t stream) {
  if (strips == 0 || width == 0 || (first == nullptr && second == nullptr)) return cudaSuccess;
  const dim3 grid(static_cast<unsigned>((width + kColumns - 1) / kColumns), has_second ? 2 : 1);
  return Launch(AddPartialSumsKernel, grid, dim3(kColumns, kGroups), stream, partial, strips,
                has_second ? 2 * width : width, width, first, second);
}

}  // namespace trainwright::cuda
