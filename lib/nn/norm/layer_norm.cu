// Residual addition with layer normalisation, and its backward pass. A block works on one row.
#include "lib/nn/cuda/launch.h"
#include "lib/nn/cuda/layer_norm_kernels.h"
#include "lib/nn/cuda/partial_sums.h"
#include "lib/nn/cuda/row_packs.cuh"

namespace trainwright::cuda {
namespace {

/// out = (x - mean) rstd weight + bias. The last step is one fused operation whatever the compiler contracts
/// elsewhere: who computes the row again gets the same bits.
template <int N, typename T>
__device__ inline void StoreNormalized(const float (&x)[N], float mean, float rstd,
                                       const float* __restrict__ weight, const float* __restrict__ bias,
                                       int64_t column, T* __restrict__ out) {
  float values[N], weights[N], biases[N] = {};
  LoadPack<N>(weight + column, weights);
  if (bias != nullptr) LoadPack<N>(bias + column, biases);
#pragma unroll
  for (int k = 0; k < N; ++k) values[k] = fmaf((x[k] - mean) * rstd, weights[k], biases[k]);
  StorePack<N>(values, out + column);
}

template <typename T, typename S, int N, int kPacks>
__global__ void __launch_bounds__(kRowThreads)
    AddLayerNormKernel(LayerNormInput norm, const S* __restrict__ residual, const T* __restrict__ update,
                       const float* __restrict__ update_bias, float epsilon, S* sum, T* __restrict__ normed,
                       float* __restrict__ mean, float* __restrict__ rstd) {
  __shared__ float shared[32];
  const int64_t row = static_cast<int64_t>(blockIdx.x) * norm.width;
  // May have been written by this block, each element by the thread that reads it, so it is no __restrict__.
  const S* x = update != nullptr ? sum + row : residual + row;
  float values[kHeld<kPacks>][N] = {};
  float total = 0;
  ForPacks<N, kPacks>(norm.width, [&](int pack, int64_t column) {
    LoadPack<N>(residual + row + column, values[pack]);
    if (update != nullptr) {
      float updates[N], biases[N] = {};
      LoadPack<N>(update + row + column, updates);
      if (update_bias != nullptr) LoadPack<N>(update_bias + column, biases);
#pragma unroll
      for (int k = 0; k < N; ++k) values[pack][k] += updates[k] + biases[k];
      StorePack<N>(values[pack], sum + row + column);
      RoundPack<S>(values[pack]);
    }
#pragma unroll
    for (int k = 0; k < N; ++k) total += values[pack][k];
  });
  const auto width = static_cast<float>(norm.width);
  const float center = CombineBlock(total, shared, Plus()) / width;
  float squares = 0;
  ForPacks<N, kPacks>(norm.width, [&](int pack, int64_t column) {
    if constexpr (kPacks == 0) LoadPack<N>(x + column, values[pack]);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const float centered = values[pack][k] - center;
      squares += centered * centered;
    }
  });
  const float scale = 1.0f / sqrtf(CombineBlock(squares, shared, Plus()) / width + epsilon);
  if (threadIdx.x == 0) {
    mean[blockIdx.x] = center;
    rstd[blockIdx.x] = scale;
  }
  ForPacks<N, kPacks>(norm.width, [&](int pack, int64_t column) {
    if constexpr (kPacks == 0) LoadPack<N>(x + column, values[pack]);
    StoreNormalized<N>(values[pack], center, scale, norm.weight, norm.bias, column, normed + row);
  });
}

template <typename T, typename S, int N>
__global__ void __launch_bounds__(kRowThreads)
    LayerNormAgainKernel(LayerNormInput norm, const S* __restrict__ x, const float* __restrict__ mean,
                         const float* __restrict__ rstd, T* __restrict__ normed) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * norm.width;
  const float center = mean[blockIdx.x], scale = rstd[blockIdx.x];
  ForPacks<N, 0>(norm.width, [&](int, int64_t column) {
    float values[N];
    LoadPack<N>(x + row + column, values);
    StoreNormalized<N>(values, center, scale, norm.weight, norm.bias, column, normed + row);
  });
}

/// What a row's gradient has in common: the sums of w dy and of w dy xhat.
struct RowSums {
  float total, projection;
};

/// As CombineBlock, of both at once.
__device__ inline RowSums SumOverBlock(RowSums sums, RowSums* shared) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32,
            warps = static_cast<int>(blockDim.x) / 32;
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    sums.total += __shfl_xor_sync(0xFFFFFFFFu, sums.total, step);
    sums.projection += __shfl_xor_sync(0xFFFFFFFFu, sums.projection, step);
  }
  if (lane == 0) shared[warp] = sums;
  __syncthreads();
  sums = shared[0];
  for (int i = 1; i < warps; ++i) {
    sums.total += shared[i].total;
    sums.projection += shared[i].projection;
  }
  __syncthreads();
  return sums;
}

/// A block takes a strip of rows one after another; a thread owns its columns of the gradients of weight and
/// bias: in registers, or with kPacks 0 in `partial`.
template <typename T, typename S, int N, int kPacks>
__global__ void __launch_bounds__(kRowThreads)
    LayerNormBackwardKernel(LayerNormInput norm, RowStrips strips, const T* __restrict__ d_normed,
                            const S* __restrict__ x, const float* __restrict__ mean,
                            const float* __restrict__ rstd, S* d_x, T* __restrict__ d_short,
                            float* __restrict__ partial) {
  __shared__ RowSums shared[32];
  const int64_t width = norm.width, begin = static_cast<int64_t>(blockIdx.x) * strips.rows;
  const int64_t end = begin + strips.rows < norm.rows ? begin + strips.rows : norm.rows;
  float* own = partial == nullptr ? nullptr : partial + static_cast<int64_t>(blockIdx.x) * 2 * width;
  float d_weight[kHeld<kPacks>][N] = {}, d_bias[kHeld<kPacks>][N] = {};
  float weights[kHeld<kPacks>][N] = {}, dy[kHeld<kPacks>][N] = {}, normal[kHeld<kPacks>][N] = {},
        dx[kHeld<kPacks>][N] = {};
  for (int64_t row = begin; row < end; ++row) {
    const int64_t at = row * width;
    const float center = mean[row], scale = rstd[row];
    const auto load = [&](int pack, int64_t column) {
      LoadPack<N>(norm.weight + column, weights[pack]);
      LoadPack<N>(d_normed + at + column, dy[pack]);
      LoadPack<N>(x + at + column, normal[pack]);
      LoadPack<N>(d_x + at + column, dx[pack]);
#pragma unroll
      for (int k = 0; k < N; ++k) normal[pack][k] = (normal[pack][k] - center) * scale;
    };
    RowSums sums = {0, 0};
    ForPacks<N, kPacks>(width, [&](int pack, int64_t column) {
      load(pack, column);
      if constexpr (kPacks == 0) {
        if (own != nullptr && row > begin) {
          LoadPack<N>(own + column, d_weight[pack]);
          LoadPack<N>(own + width + column, d_bias[pack]);
        } else {
#pragma unroll
          for (int k = 0; k < N; ++k) d_weight[pack][k] = d_bias[pack][k] = 0;
        }
      }
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const float gradient = weights[pack][k] * dy[pack][k];
        sums.total += gradient;
        sums.projection += gradient * normal[pack][k];
        d_weight[pack][k] += dy[pack][k] * normal[pack][k];
        d_bias[pack][k] += dy[pack][k];
      }
      if constexpr (kPacks == 0) {
        if (own != nullptr) {
          StorePack<N>(d_weight[pack], own + column);
          StorePack<N>(d_bias[pack], own + width + column);
        }
      }
    });
    sums = SumOverBlock(sums, shared);
    // d x = rstd (w dy - mean(w dy) - xhat mean(w dy xhat)), xhat = (x - mean) rstd
    const float shift = sums.total / static_cast<float>(width),
                common = sums.projection / static_cast<float>(width);
    ForPacks<N, kPacks>(width, [&](int pack, int64_t column) {
      if constexpr (kPacks == 0) load(pack, column);
#pragma unroll
      for (int k = 0; k < N; ++k) {
        dx[pack][k] += scale * (weights[pack][k] * dy[pack][k] - shift - normal[pack][k] * common);
      }
      StorePack<N>(dx[pack], d_x + at + column);
      if (d_short != nullptr) StorePack<N>(dx[pack], d_short + at + column);
    });
  }
  if constexpr (kPacks > 0) {
    if (own == nullptr) return;
    ForPacks<N, kPacks>(width, [&](int pack, int64_t column) {
      StorePack<N>(d_weight[pack], own + column);
      StorePack<N>(d_bias[pack], own + width + column);
    });
  }
}

bool Wide(const LayerNormInput& norm) {
  return norm.width % kRowPack == 0 && Aligned(norm.weight) && Aligned(norm.bias);
}

}  // namespace

cudaError_t AddLayerNorm(NormStorage storage, const LayerNormInput& norm, const void* residual,
                         const void* update, const float* update_bias, float epsilon, void* sum, void* normed,
                         float* mean, float* rstd, cudaStream_t stream) {
  if (norm.rows == 0) return cudaSuccess;
  const bool wide = Wide(norm) && Aligned(residual) && Aligned(update) && Aligned(update_bias) &&
                    Aligned(sum) && Aligned(normed);
  return WithNormStorage(storage, [&]<typename T, typename S>() {
    return WithPacks(norm.width, wide, [&]<int N, int kPacks>(unsigned threads) {
      return Launch(AddLayerNormKernel<T, S, N, kPacks>, dim3(static_cast<unsigned>(norm.rows)),
                    dim3(threads), stream, norm, static_cast<const S*>(residual),
                    static_cast<const T*>(update), update_bias, epsilon, static_cast<S*>(sum),
                    static_cast<T*>(normed), mean, rstd);
    });
  });
}

cudaError_t LayerNormAgain(NormStorage storage, const LayerNormInput& norm, const void* x, const float* mean,
                           const float* rstd, void* normed, cudaStream_t stream) {
  if (norm.rows == 0) return cudaSuccess;
  const bool wide = Wide(norm) && Aligned(x) && Aligned(normed);
  return WithNormStorage(storage, [&]<typename T, typename S>() {
    const auto launch = [&](auto kernel, int64_t items) {
      return Launch(kernel, dim3(static_cast<unsigned>(norm.rows)), dim3(RowThreadsOf(items, 1)), stream,
                    norm, static_cast<const S*>(x), mean, rstd, static_cast<T*>(normed));
    };
    return wide ? launch(LayerNormAgainKernel<T, S, kRowPack>, norm.width / kRowPack)
                : launch(LayerNormAgainKernel<T, S, 1>, norm.width);
  });
}

int64_t LayerNormBackwardStrips(int64_t rows) {
  return NormStripsOf(rows).count;
}

cudaError_t LayerNormBackward(NormStorage storage, const LayerNormInput& norm, const void* d_normed,
                              const void* x, const float* mean, const float* rstd,
                              const LayerNormGradients& gradients, cudaStream_t stream) {
  if (norm.rows == 0) return cudaSuccess;
  const bool wide = norm.width % kRowPack == 0 && Aligned(norm.weight) && Aligned(d_normed) && Aligned(x) &&
                    Aligned(gradients.d_x) && Aligned(gradients.d_short) && Aligned(gradients.partial);
  const RowStrips strips = NormStripsOf(norm.rows);
  const cudaError_t status = WithNormStorage(storage, [&]<typename T, typename S>() {
    return WithPacks(norm.width, wide, [&]<int N, int kPacks>(unsigned threads) {
      return Launch(LayerNormBackwardKernel<T, S, N, kPacks>, dim3(static_cast<unsigned>(strips.count)),
                    dim3(threads), stream, norm, strips, static_cast<const T*>(d_normed),
                    static_cast<const S*>(x), mean, rstd, static_cast<S*>(gradients.d_x),
                    static_cast<T*>(gradients.d_short), gradients.partial);
    });
  });
  if (status != cudaSuccess || gradients.partial == nullptr) return status;
  return AddPartialSums(gradients.partial, strips.count, norm.width, gradients.d_weight, gradients.d_bias,
                        /*has_second=*/true, stream);
}

}  // namespace trainwright::cuda
