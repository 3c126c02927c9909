// Rounding, rotary positions and the gated activation: every thread moves packs of neighbours.
#include "lib/nn/cuda/device_code.cuh"
#include "lib/nn/cuda/launch.h"
#include "lib/nn/position/turn_pairs.cuh"

namespace trainwright::cuda {
namespace {

constexpr int kThreads = 256;

template <typename T, int N>
__global__ void __launch_bounds__(kThreads) RoundKernel(const float* in, T* out, int64_t size) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads * N;
  for (int64_t i = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * N; i < size; i += stride) {
    float values[N];
    LoadPack<N>(in + i, values);
    StorePack<N>(values, out + i);
  }
}

/// A block is a row; element i of a head turns with element i + half.
template <typename T, int N>
__global__ void __launch_bounds__(kThreads)
    RopeKernel(T* qkv, const int64_t* __restrict__ positions, const float* __restrict__ cosines,
               const float* __restrict__ sines, int64_t row_width, int num_heads, int head_dim, int half,
               float sign) {
  T* row = qkv + static_cast<int64_t>(blockIdx.x) * row_width;
  const int64_t angle = positions[blockIdx.x] * half;
  const int packs = half / N;
  for (int item = static_cast<int>(threadIdx.x); item < num_heads * packs; item += kThreads) {
    const int i = item % packs * N;
    T* first = row + static_cast<int64_t>(item / packs) * head_dim + i;
    float a[N], b[N], cosine[N], sine[N];
    LoadPack<N>(first, a);
    LoadPack<N>(first + half, b);
    LoadPack<N>(cosines + angle + i, cosine);
    LoadPack<N>(sines + angle + i, sine);
    TurnPairs<N>(cosine, sine, sign, a, b);
    StorePack<N>(a, first);
    StorePack<N>(b, first + half);
  }
}

__device__ inline float Sigmoid(float x) {
  return 1.0f / (1.0f + expf(-x));
}

template <typename T, int N>
__global__ void __launch_bounds__(kThreads)
    SwigluKernel(const T* __restrict__ gate_up, int64_t rows, int64_t width, T* __restrict__ out) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads * N;
  for (int64_t i = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * N; i < rows * width;
       i += stride) {
    const T* gate = gate_up + RowOf(i, width) * width + i;  // before row r of gates lie r of each
    float g[N], u[N];
    LoadPack<N>(gate, g);
    LoadPack<N>(gate + width, u);
#pragma unroll
    for (int k = 0; k < N; ++k) g[k] = g[k] * Sigmoid(g[k]) * u[k];
    StorePack<N>(g, out + i);
  }
}

template <typename T, int N>
__global__ void __launch_bounds__(kThreads)
    SwigluBackwardKernel(T* gate_up, const T* __restrict__ d_out, int64_t rows, int64_t width) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads * N;
  for (int64_t i = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * N; i < rows * width;
       i += stride) {
    T* gate = gate_up + RowOf(i, width) * width + i;  // before row r of gates lie r of each
    float g[N], u[N], d[N];
    LoadPack<N>(gate, g);
    LoadPack<N>(gate + width, u);
    LoadPack<N>(d_out + i, d);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const float sigmoid = Sigmoid(g[k]), silu = g[k] * sigmoid;
      g[k] = d[k] * u[k] * (sigmoid + silu * (1.0f - sigmoid));
      u[k] = d[k] * silu;
    }
    StorePack<N>(g, gate);
    StorePack<N>(u, gate + width);
  }
}

/// Elements of a 16-byte access of the short types; four fp32 take one, eight two.
constexpr int kPack = 8;

}  // namespace

cudaError_t Round(Storage storage, const float* in, void* out, int64_t size, cudaStream_t stream) {
  if (size == 0) return cudaSuccess;
  return WithStorage(storage, [&]<typename T>() {
    auto* to = static_cast<T*>(out);
    if (size % kPack == 0 && Aligned(in) && Aligned(out)) {
      return Launch(RoundKernel<T, kPack>, BlocksFor(size / kPack, kThreads), kThreads, stream, in, to, size);
    }
    return Launch(RoundKernel<T, 1>, BlocksFor(size, kThreads), kThreads, stream, in, to, size);
  });
}

cudaError_t Rope(Storage storage, void* qkv, const int64_t* positions, const float* cosines,
                 const float* sines, int64_t rows, int64_t row_width, int64_t num_heads, int64_t head_dim,
                 int64_t half, float sign, cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  return WithStorage(storage, [&]<typename T>() {
    const bool wide =
        half % kPack == 0 && head_dim % kPack == 0 && Aligned(qkv) && Aligned(cosines) && Aligned(sines);
    const auto launch = [&](auto kernel) {
      return Launch(kernel, static_cast<unsigned>(rows), kThreads, stream, static_cast<T*>(qkv), positions,
                    cosines, sines, row_width, static_cast<int>(num_heads), static_cast<int>(head_dim),
                    static_cast<int>(half), sign);
    };
    return wide ? launch(RopeKernel<T, kPack>) : launch(RopeKernel<T, 1>);
  });
}

cudaError_t Swiglu(Storage storage, const void* gate_up, int64_t rows, int64_t width, void* out,
                   cudaStream_t stream) {
  if (rows * width == 0) return cudaSuccess;
  return WithStorage(storage, [&]<typename T>() {
    const auto* in = static_cast<const T*>(gate_up);
    auto* to = static_cast<T*>(out);
    if (width % kPack == 0 && Aligned(gate_up) && Aligned(out)) {
      return Launch(SwigluKernel<T, kPack>, BlocksFor(rows * width / kPack, kThreads), kThreads, stream, in,
                    rows, width, to);
    }
    return Launch(SwigluKernel<T, 1>, BlocksFor(rows * width, kThreads), kThreads, stream, in, rows, width,
                  to);
  });
}

cudaError_t SwigluBackward(Storage storage, void* gate_up, const void* d_out, int64_t rows, int64_t width,
                           cudaStream_t stream) {
  if (rows * width == 0) return cudaSuccess;
  return WithStorage(storage, [&]<typename T>() {
    auto* data = static_cast<T*>(gate_up);
    const auto* d = static_cast<const T*>(d_out);
    if (width % kPack == 0 && Aligned(gate_up) && Aligned(d_out)) {
      return Launch(SwigluBackwardKernel<T, kPack>, BlocksFor(rows * width / kPack, kThreads), kThreads,
                    stream, data, d, rows, width);
    }
    return Launch(SwigluBackwardKernel<T, 1>, BlocksFor(rows * width, kThreads), kThreads, stream, data, d,
                  rows, width);
  });
}

}  // namespace trainwright::cuda
