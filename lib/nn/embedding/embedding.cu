// The embedding's gradient without atomics: equal tokens lie side by side, and their rows are summed in two
// stages, so that a token that fills the batch does not wait for one block.
#include "lib/nn/cuda/device_code.cuh"
#include "lib/nn/cuda/launch.h"

namespace trainwright::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int64_t kStretch = kEmbeddingStretchRows;

/// The first column of this thread.
template <int N>
__device__ inline int64_t Column() {
  return (static_cast<int64_t>(blockIdx.y) * kThreads + threadIdx.x) * N;
}

/// Whether the stretch begins with the token that the one before it ends with.
__device__ inline bool Continues(const int64_t* __restrict__ sorted_tokens, int64_t stretch) {
  const int64_t begin = stretch * kStretch;
  return stretch > 0 && sorted_tokens[begin] == sorted_tokens[begin - 1];
}

/// A block takes a stretch of the sorted rows: tokens that begin in it are added to the table, row by row,
/// and the rows of one that began before it are summed up in `partial`.
template <int N, typename T>
__global__ void __launch_bounds__(kThreads)
    EmbeddingStretchKernel(const T* __restrict__ d_x, const int64_t* __restrict__ sorted_tokens,
                           const int64_t* __restrict__ sorted_rows, int64_t rows, int64_t width,
                           float* table_gradient, float* __restrict__ partial) {
  const int64_t stretch = blockIdx.x, i = Column<N>();
  if (i >= width) return;
  const int64_t end = (stretch + 1) * kStretch < rows ? (stretch + 1) * kStretch : rows;
  bool continues = Continues(sorted_tokens, stretch);
  for (int64_t item = stretch * kStretch; item < end;) {
    const int64_t token = sorted_tokens[item];
    float* to = continues ? partial + stretch * width + i : table_gradient + token * width + i;
    float sums[N] = {};
    if (!continues) LoadPack<N>(to, sums);
#pragma unroll 4
    for (; item < end && sorted_tokens[item] == token; ++item) {
      float values[N];
      LoadPack<N>(d_x + sorted_rows[item] * width + i, values);
#pragma unroll
      for (int k = 0; k < N; ++k) sums[k] += values[k];
    }
    StorePack<N>(sums, to);
    continues = false;
  }
}

/// The first stretch that goes on with a token adds what it and those after it have of that token, in order.
template <int N>
__global__ void __launch_bounds__(kThreads)
    AddStretchesKernel(const int64_t* __restrict__ sorted_tokens, int64_t stretches, int64_t width,
                       const float* __restrict__ partial, float* table_gradient) {
  const int64_t first = blockIdx.x, i = Column<N>(), token = sorted_tokens[first * kStretch];
  if (i >= width || !Continues(sorted_tokens, first)) return;
  if (sorted_tokens[(first - 1) * kStretch] == token && Continues(sorted_tokens, first - 1)) return;
  float* to = table_gradient + token * width + i;
  float sums[N];
  LoadPack<N>(to, sums);
#pragma unroll 8
  for (int64_t stretch = first; stretch < stretches && sorted_tokens[stretch * kStretch] == token;
       ++stretch) {
    float values[N];
    LoadPack<N>(partial + stretch * width + i, values);
#pragma unroll
    for (int k = 0; k < N; ++k) sums[k] += values[k];
  }
  StorePack<N>(sums, to);
}

template <int N, typename T>
__global__ void __launch_bounds__(kThreads)
    EmbedKernel(const float* __restrict__ table, const int64_t* __restrict__ indices, int64_t width,
                T* __restrict__ out) {
  const int64_t i = Column<N>();
  if (i >= width) return;
  float values[N];
  LoadPack<N>(table + indices[blockIdx.x] * width + i, values);
  StorePack<N>(values, out + static_cast<int64_t>(blockIdx.x) * width + i);
}

template <int N, typename T>
__global__ void __launch_bounds__(kThreads)
    AddEmbeddingKernel(const float* __restrict__ table, const int64_t* __restrict__ indices, int64_t width,
                       T* out) {
  const int64_t i = Column<N>();
  if (i >= width) return;
  T* to = out + static_cast<int64_t>(blockIdx.x) * width + i;
  float values[N], sums[N];
  LoadPack<N>(table + indices[blockIdx.x] * width + i, values);
  LoadPack<N>(to, sums);
#pragma unroll
  for (int k = 0; k < N; ++k) sums[k] += values[k];
  StorePack<N>(sums, to);
}

/// Blocks for so many rows of threads that own packs of the columns.
dim3 GridOf(int64_t rows, int64_t packs) {
  return dim3(static_cast<unsigned>(rows), static_cast<unsigned>((packs + kThreads - 1) / kThreads));
}

}  // namespace

int64_t EmbeddingStretches(int64_t rows) {
  return (rows + kStretch - 1) / kStretch;
}

cudaError_t EmbeddingBackward(Storage storage, const void* d_x, const int64_t* sorted_tokens,
                              const int64_t* sorted_rows, int64_t rows, int64_t width, float* table_gradient,
                              float* partial, cudaStream_t stream) {
  if (rows * width == 0) return cudaSuccess;
  const bool wide = width % 4 == 0 && Aligned(d_x) && Aligned(table_gradient) && Aligned(partial);
  const int64_t stretches = EmbeddingStretches(rows);
  const dim3 grid = GridOf(stretches, wide ? width / 4 : width);
  const cudaError_t status = WithStorage(storage, [&]<typename T>() {
    return Launch(wide ? EmbeddingStretchKernel<4, T> : EmbeddingStretchKernel<1, T>, grid, kThreads, stream,
                  static_cast<const T*>(d_x), sorted_tokens, sorted_rows, rows, width, table_gradient,
                  partial);
  });
  if (status != cudaSuccess || stretches == 1) return status;
  return Launch(wide ? AddStretchesKernel<4> : AddStretchesKernel<1>, grid, kThreads, stream, sorted_tokens,
                stretches, width, partial, table_gradient);
}

cudaError_t Embed(Storage storage, const float* table, const int64_t* indices, int64_t rows, int64_t width,
                  void* out, cudaStream_t stream) {
  if (rows * width == 0) return cudaSuccess;
  const bool wide = width % 4 == 0 && Aligned(table) && Aligned(out);
  return WithStorage(storage, [&]<typename T>() {
    return Launch(wide ? EmbedKernel<4, T> : EmbedKernel<1, T>, GridOf(rows, wide ? width / 4 : width),
                  kThreads, stream, table, indices, width, static_cast<T*>(out));
  });
}

cudaError_t AddEmbedding(Storage storage, const float* table, const int64_t* indices, int64_t rows,
                         int64_t width, void* out, cudaStream_t stream) {
  if (rows * width == 0) return cudaSuccess;
  const bool wide = width % 4 == 0 && Aligned(table) && Aligned(out);
  return WithStorage(storage, [&]<typename T>() {
    return Launch(wide ? AddEmbeddingKernel<4, T> : AddEmbeddingKernel<1, T>,
                  GridOf(rows, wide ? width / 4 : width), kThreads, stream, table, indices, width,
                  static_cast<T*>(out));
  });
}

}  // namespace trainwright::cuda
