// The embedding's gradient without atomics: equal tokens lie side by side, and the first of them adds all of
// them up.
#include "lib/nn/cuda/device_code.cuh"

namespace trainwright::cuda {
namespace {

constexpr int kThreads = 128;

template <int N>
__global__ void __launch_bounds__(kThreads)
    EmbeddingBackwardKernel(const float* __restrict__ d_x, const int64_t* __restrict__ sorted_tokens,
                            const int64_t* __restrict__ sorted_rows, int64_t rows, int64_t width,
                            float* table_gradient) {
  const int64_t begin = blockIdx.x, token = sorted_tokens[begin];
  if (begin > 0 && sorted_tokens[begin - 1] == token) return;
  const int64_t i = (static_cast<int64_t>(blockIdx.y) * kThreads + threadIdx.x) * N;
  if (i >= width) return;
  float* to = table_gradient + token * width + i;
  float sums[N];
  LoadPack<N>(to, sums);
#pragma unroll 4
  for (int64_t item = begin; item < rows && sorted_tokens[item] == token; ++item) {
    float values[N];
    LoadPack<N>(d_x + sorted_rows[item] * width + i, values);
#pragma unroll
    for (int k = 0; k < N; ++k) sums[k] += values[k];
  }
  StorePack<N>(sums, to);
}

}  // namespace

cudaError_t EmbeddingBackward(const float* d_x, const int64_t* sorted_tokens, const int64_t* sorted_rows,
                              int64_t rows, int64_t width, float* table_gradient, cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  const bool wide = width % 4 == 0 && Aligned(d_x) && Aligned(table_gradient);
  const int64_t packs = wide ? width / 4 : width;
  const dim3 grid(static_cast<unsigned>(rows), static_cast<unsigned>((packs + kThreads - 1) / kThreads));
  const auto launch = [&](auto kernel) {
    kernel<<<grid, kThreads, 0, stream>>>(d_x, sorted_tokens, sorted_rows, rows, width, table_gradient);
  };
  wide ? launch(EmbeddingBackwardKernel<4>) : launch(EmbeddingBackwardKernel<1>);
  return cudaGetLastError();
}

}  // namespace trainwright::cuda
