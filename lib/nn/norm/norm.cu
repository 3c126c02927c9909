// Residual addition with root-mean-square normalisation, and its backward pass. A block works on one row.
#include "lib/nn/cuda/launch.h"
#include "lib/nn/cuda/partial_sums.h"
#include "lib/nn/cuda/row_packs.cuh"

namespace trainwright::cuda {
namespace {

/// out = weight (x rstd), each product rounded: who computes the row again gets the same bits.
template <int N, typename T>
__device__ inline void StoreScaled(const float (&x)[N], float rstd, const float* __restrict__ weight,
                                   int64_t column, T* __restrict__ out) {
  float values[N], weights[N];
  LoadPack<N>(weight + column, weights);
#pragma unroll
  for (int k = 0; k < N; ++k) values[k] = weights[k] * (x[k] * rstd);
  StorePack<N>(values, out + column);
}

template <typename T, typename S, int N, int kPacks>
__global__ void __launch_bounds__(kRowThreads)
    AddNormKernel(const S* __restrict__ residual, const T* __restrict__ update,
                  const float* __restrict__ weight, float epsilon, int64_t width, S* sum,
                  T* __restrict__ normed, float* __restrict__ rstd) {
  __shared__ float shared[32];
  const int64_t row = static_cast<int64_t>(blockIdx.x) * width;
  // May have been written by this block, each element by the thread that reads it, so it is no __restrict__.
  const S* x = update != nullptr ? sum + row : residual + row;
  float values[kHeld<kPacks>][N] = {};
  float squares = 0;
  ForPacks<N, kPacks>(width, [&](int pack, int64_t column) {
    LoadPack<N>(residual + row + column, values[pack]);
    if (update != nullptr) {
      float updates[N];
      LoadPack<N>(update + row + column, updates);
#pragma unroll
      for (int k = 0; k < N; ++k) values[pack][k] += updates[k];
      StorePack<N>(values[pack], sum + row + column);
      RoundPack<S>(values[pack]);
    }
#pragma unroll
    for (int k = 0; k < N; ++k) squares += values[pack][k] * values[pack][k];
  });
  const float total = CombineBlock(squares, shared, Plus());
  const float scale = 1.0f / sqrtf(total / static_cast<float>(width) + epsilon);
  if (threadIdx.x == 0) rstd[blockIdx.x] = scale;
  ForPacks<N, kPacks>(width, [&](int pack, int64_t column) {
    if constexpr (kPacks == 0) LoadPack<N>(x + column, values[pack]);
    StoreScaled<N>(values[pack], scale, weight, column, normed + row);
  });
}

template <typename T, typename S, int N>
__global__ void __launch_bounds__(kRowThreads)
    NormAgainKernel(const S* __restrict__ x, const float* __restrict__ rstd, const float* __restrict__ weight,
                    int64_t width, T* __restrict__ normed) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * width;
  const float scale = rstd[blockIdx.x];
  ForPacks<N, 0>(width, [&](int, int64_t column) {
    float values[N];
    LoadPack<N>(x + row + column, values);
    StoreScaled<N>(values, scale, weight, column, normed + row);
  });
}

/// A block takes a strip of rows one after another; a thread owns its columns of the weight's gradient: in
/// registers, or with kPacks 0 in `partial`.
template <typename T, typename S, int N, int kPacks>
__global__ void __launch_bounds__(kRowThreads)
    NormBackwardKernel(const T* __restrict__ d_normed, const S* __restrict__ x,
                       const float* __restrict__ rstd, const float* __restrict__ weight, RowStrips strips,
                       int64_t width, S* d_x, T* __restrict__ d_short, float* __restrict__ partial) {
  __shared__ float shared[32];
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * strips.rows;
  const int64_t end = begin + strips.rows < strips.total_rows ? begin + strips.rows : strips.total_rows;
  float* own = partial + static_cast<int64_t>(blockIdx.x) * width;
  float d_weight[kHeld<kPacks>][N] = {};
  float weights[kHeld<kPacks>][N] = {}, dy[kHeld<kPacks>][N] = {}, values[kHeld<kPacks>][N] = {},
        dx[kHeld<kPacks>][N] = {};
  for (int64_t row = begin; row < end; ++row) {
    const int64_t at = row * width;
    const float scale = rstd[row];
    const auto load = [&](int pack, int64_t column) {
      LoadPack<N>(weight + column, weights[pack]);
      LoadPack<N>(d_normed + at + column, dy[pack]);
      LoadPack<N>(x + at + column, values[pack]);
      LoadPack<N>(d_x + at + column, dx[pack]);
    };
    float projection = 0;
    ForPacks<N, kPacks>(width, [&](int pack, int64_t column) {
      load(pack, column);
      if constexpr (kPacks == 0) {
        if (row > begin) {
          LoadPack<N>(own + column, d_weight[pack]);
        } else {
#pragma unroll
          for (int k = 0; k < N; ++k) d_weight[pack][k] = 0;
        }
      }
#pragma unroll
      for (int k = 0; k < N; ++k) {
        projection += dy[pack][k] * weights[pack][k] * values[pack][k];
        d_weight[pack][k] += dy[pack][k] * (values[pack][k] * scale);
      }
      if constexpr (kPacks == 0) StorePack<N>(d_weight[pack], own + column);
    });
    // d x = rstd (w dy - xhat mean(w dy xhat)), xhat = x rstd
    const float mean = CombineBlock(projection, shared, Plus()) * scale * scale / static_cast<float>(width);
    ForPacks<N, kPacks>(width, [&](int pack, int64_t column) {
      if constexpr (kPacks == 0) load(pack, column);
#pragma unroll
      for (int k = 0; k < N; ++k) {
        dx[pack][k] += scale * (weights[pack][k] * dy[pack][k] - values[pack][k] * mean);
      }
      StorePack<N>(dx[pack], d_x + at + column);
      if (d_short != nullptr) StorePack<N>(dx[pack], d_short + at + column);
    });
  }
  if constexpr (kPacks > 0) {
    ForPacks<N, kPacks>(width, [&](int pack, int64_t column) { StorePack<N>(d_weight[pack], own + column); });
  }
}

}  // namespace

cudaError_t AddNorm(NormStorage storage, const void* residual, const void* update, const float* weight,
                    float epsilon, int64_t rows, int64_t width, void* sum, void* normed, float* rstd,
                    cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  const bool wide = width % kRowPack == 0 && Aligned(residual) && Aligned(update) && Aligned(weight) &&
                    Aligned(sum) && Aligned(normed);
  return WithNormStorage(storage, [&]<typename T, typename S>() {
    return WithPacks(width, wide, [&]<int N, int kPacks>(unsigned threads) {
      return Launch(AddNormKernel<T, S, N, kPacks>, static_cast<unsigned>(rows), threads, stream,
                    static_cast<const S*>(residual), static_cast<const T*>(update), weight, epsilon, width,
                    static_cast<S*>(sum), static_cast<T*>(normed), rstd);
    });
  });
}

cudaError_t NormAgain(NormStorage storage, const void* x, const float* rstd, const float* weight,
                      int64_t rows, int64_t width, void* normed, cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  const bool wide = width % kRowPack == 0 && Aligned(x) && Aligned(weight) && Aligned(normed);
  return WithNormStorage(storage, [&]<typename T, typename S>() {
    const auto launch = [&](auto kernel, int64_t items) {
      return Launch(kernel, static_cast<unsigned>(rows), RowThreadsOf(items, 1), stream,
                    static_cast<const S*>(x), rstd, weight, width, static_cast<T*>(normed));
    };
    return wide ? launch(NormAgainKernel<T, S, kRowPack>, width / kRowPack)
                : launch(NormAgainKernel<T, S, 1>, width);
  });
}

int64_t NormBackwardBlocks(int64_t rows) {
  return NormStripsOf(rows).count;
}

cudaError_t NormBackward(NormStorage storage, const void* d_normed, const void* x, const float* rstd,
                         const float* weight, int64_t rows, int64_t width, void* d_x, void* d_short,
                         float* d_weight, float* partial, cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  const bool wide = width % kRowPack == 0 && Aligned(d_normed) && Aligned(x) && Aligned(weight) &&
                    Aligned(d_x) && Aligned(d_short) && Aligned(partial);
  const RowStrips strips = NormStripsOf(rows);
  const cudaError_t status = WithNormStorage(storage, [&]<typename T, typename S>() {
    return WithPacks(width, wide, [&]<int N, int kPacks>(unsigned threads) {
      return Launch(NormBackwardKernel<T, S, N, kPacks>, static_cast<unsigned>(strips.count), threads, stream,
                    static_cast<const T*>(d_normed), static_cast<const S*>(x), rstd, weight, strips, width,
                    static_cast<S*>(d_x), static_cast<T*>(d_short), partial);
    });
  });
  if (status != cudaSuccess) return status;
  return AddPartialSums(partial, strips.count, width, d_weight, nullptr, /*has_second=*/false, stream);
}

}  // namespace trainwright::cuda
