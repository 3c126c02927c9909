// Residual addition with root-mean-square normalisation, and its backward pass. A block works on one row.
#include "lib/nn/cuda/device_code.cuh"

namespace trainwright::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 512;

/// normed = weight * (x * scale) over one row, by the whole block. `x` may have been written by this block,
/// each element by the thread that reads it here, so it is no __restrict__.
template <int N, typename T>
__device__ void ScaleRow(const float* x, const float* __restrict__ weight, float scale, int64_t width,
                         T* __restrict__ normed) {
  for (int64_t i = static_cast<int64_t>(threadIdx.x) * N; i < width; i += kThreads * N) {
    float values[N], weights[N];
    LoadPack<N>(x + i, values);
    LoadPack<N>(weight + i, weights);
#pragma unroll
    for (int k = 0; k < N; ++k) values[k] = weights[k] * (values[k] * scale);
    StorePack<N>(values, normed + i);
  }
}

template <typename T, int N, bool kUpdate>
__global__ void __launch_bounds__(kThreads)
    AddNormKernel(const float* __restrict__ residual, const T* __restrict__ update,
                  const float* __restrict__ weight, float epsilon, int64_t width, float* sum,
                  T* __restrict__ normed, float* __restrict__ rstd) {
  __shared__ float shared[32];
  const int64_t row = static_cast<int64_t>(blockIdx.x) * width;
  const float* x = kUpdate ? sum : residual;
  float squares = 0;
  for (int64_t i = static_cast<int64_t>(threadIdx.x) * N; i < width; i += kThreads * N) {
    float values[N];
    LoadPack<N>(residual + row + i, values);
    if constexpr (kUpdate) {
      float updates[N];
      LoadPack<N>(update + row + i, updates);
#pragma unroll
      for (int k = 0; k < N; ++k) values[k] += updates[k];
      StorePack<N>(values, sum + row + i);
    }
#pragma unroll
    for (int k = 0; k < N; ++k) squares += values[k] * values[k];
  }
  const float total = CombineBlock(squares, shared, Plus());
  const float scale = 1.0f / sqrtf(total / static_cast<float>(width) + epsilon);
  if (threadIdx.x == 0) rstd[blockIdx.x] = scale;
  // A thread reads back what it wrote itself, from the cache.
  ScaleRow<N>(x + row, weight, scale, width, normed + row);
}

template <typename T, int N>
__global__ void __launch_bounds__(kThreads)
    NormAgainKernel(const float* __restrict__ x, const float* __restrict__ rstd,
                    const float* __restrict__ weight, int64_t width, T* __restrict__ normed) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * width;
  const float scale = rstd[blockIdx.x];
  ScaleRow<N>(x + row, weight, scale, width, normed + row);
}

/// A block takes a strip of rows one after another; a thread owns its columns of the weight's gradient.
template <typename T, int N>
__global__ void __launch_bounds__(kThreads)
    NormBackwardKernel(const T* __restrict__ d_normed, const float* __restrict__ x,
                       const float* __restrict__ rstd, const float* __restrict__ weight, int64_t rows,
                       int64_t width, int64_t block_rows, float* d_x, float* __restrict__ partial) {
  __shared__ float shared[32];
  float* d_weight = partial + static_cast<int64_t>(blockIdx.x) * width;
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * block_rows;
  const int64_t end = begin + block_rows < rows ? begin + block_rows : rows;
  for (int64_t row = begin; row < end; ++row) {
    const float scale = rstd[row];
    float projection = 0;
    for (int64_t i = static_cast<int64_t>(threadIdx.x) * N; i < width; i += kThreads * N) {
      float dy[N], values[N], weights[N], sums[N];
      LoadPack<N>(d_normed + row * width + i, dy);
      LoadPack<N>(x + row * width + i, values);
      LoadPack<N>(weight + i, weights);
      if (row == begin) {
#pragma unroll
        for (int k = 0; k < N; ++k) sums[k] = 0;
      } else {
        LoadPack<N>(d_weight + i, sums);
      }
#pragma unroll
      for (int k = 0; k < N; ++k) {
        projection += dy[k] * weights[k] * values[k];
        sums[k] += dy[k] * (values[k] * scale);
      }
      StorePack<N>(sums, d_weight + i);
    }
    // d x = rstd (w dy - xhat mean(w dy xhat)), xhat = x rstd
    const float mean = CombineBlock(projection, shared, Plus()) * scale * scale / static_cast<float>(width);
    for (int64_t i = static_cast<int64_t>(threadIdx.x) * N; i < width; i += kThreads * N) {
      float dy[N], values[N], weights[N], dx[N];
      LoadPack<N>(d_normed + row * width + i, dy);
      LoadPack<N>(x + row * width + i, values);
      LoadPack<N>(weight + i, weights);
      LoadPack<N>(d_x + row * width + i, dx);
#pragma unroll
      for (int k = 0; k < N; ++k) dx[k] += scale * (weights[k] * dy[k] - values[k] * mean);
      StorePack<N>(dx, d_x + row * width + i);
    }
  }
}

constexpr int kColumns = 32, kGroups = 8;

/// d_weight += the strips' sums: eight groups of strips, each in order, then the groups in order.
__global__ void AddPartialsKernel(const float* __restrict__ partial, int64_t blocks, int64_t width,
                                  float* d_weight) {
  __shared__ float sums[kGroups][kColumns];
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kColumns + threadIdx.x;
  float sum = 0;
  if (column < width) {
    for (int64_t block = threadIdx.y; block < blocks; block += kGroups)
      sum += partial[block * width + column];
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= width) return;
  for (int group = 1; group < kGroups; ++group) sum += sums[group][threadIdx.x];
  d_weight[column] += sum;
}

int64_t BlockRows(int64_t rows) {
  const int64_t block_rows = (rows + kMostBlocks - 1) / kMostBlocks;
  return block_rows < 8 ? 8 : block_rows;
}

}  // namespace

cudaError_t AddNorm(Storage storage, const float* residual, const void* update, const float* weight,
                    float epsilon, int64_t rows, int64_t width, float* sum, void* normed, float* rstd,
                    cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  const bool wide = width % 4 == 0 && Aligned(residual) && Aligned(update) && Aligned(weight) &&
                    Aligned(sum) && Aligned(normed);
  return WithStorage(storage, [&]<typename T>() {
    const auto* updates = static_cast<const T*>(update);
    auto* out = static_cast<T*>(normed);
    const auto launch = [&](auto kernel) {
      kernel<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(residual, updates, weight, epsilon, width,
                                                                   sum, out, rstd);
    };
    if (update != nullptr) {
      wide ? launch(AddNormKernel<T, 4, true>) : launch(AddNormKernel<T, 1, true>);
    } else {
      wide ? launch(AddNormKernel<T, 4, false>) : launch(AddNormKernel<T, 1, false>);
    }
    return cudaGetLastError();
  });
}

cudaError_t NormAgain(Storage storage, const float* x, const float* rstd, const float* weight, int64_t rows,
                      int64_t width, void* normed, cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  const bool wide = width % 4 == 0 && Aligned(x) && Aligned(weight) && Aligned(normed);
  return WithStorage(storage, [&]<typename T>() {
    const auto launch = [&](auto kernel) {
      kernel<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(x, rstd, weight, width,
                                                                   static_cast<T*>(normed));
    };
    wide ? launch(NormAgainKernel<T, 4>) : launch(NormAgainKernel<T, 1>);
    return cudaGetLastError();
  });
}

int64_t NormBackwardBlocks(int64_t rows) {
  return (rows + BlockRows(rows) - 1) / BlockRows(rows);
}

cudaError_t NormBackward(Storage storage, const void* d_normed, const float* x, const float* rstd,
                         const float* weight, int64_t rows, int64_t width, float* d_x, float* d_weight,
                         float* partial, cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  const bool wide = width % 4 == 0 && Aligned(d_normed) && Aligned(x) && Aligned(weight) && Aligned(d_x) &&
                    Aligned(partial);
  const int64_t blocks = NormBackwardBlocks(rows);
  const cudaError_t status = WithStorage(storage, [&]<typename T>() {
    const auto launch = [&](auto kernel) {
      kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(
          static_cast<const T*>(d_normed), x, rstd, weight, rows, width, BlockRows(rows), d_x, partial);
    };
    wide ? launch(NormBackwardKernel<T, 4>) : launch(NormBackwardKernel<T, 1>);
    return cudaGetLastError();
  });
  if (status != cudaSuccess) return status;
  AddPartialsKernel<<<static_cast<unsigned>((width + kColumns - 1) / kColumns), dim3(kColumns, kGroups), 0,
                      stream>>>(partial, blocks, width, d_weight);
  return cudaGetLastError();
}

}  // namespace trainwright::cuda
