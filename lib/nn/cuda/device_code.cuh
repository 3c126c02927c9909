/// What the kernels share: conversions, places, 16-byte packs, sums over a block.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "lib/nn/cuda/kernels.h"

namespace trainwright::cuda {

__device__ inline float ToFloat(float value) {
  return value;
}
__device__ inline float ToFloat(__nv_bfloat16 value) {
  return __bfloat162float(value);
}
__device__ inline float ToFloat(__half value) {
  return __half2float(value);
}

template <typename T>
__device__ inline T FromFloat(float value) {
  return value;
}
template <>
__device__ inline __nv_bfloat16 FromFloat<__nv_bfloat16>(float value) {
  return __float2bfloat16_rn(value);
}
template <>
__device__ inline __half FromFloat<__half>(float value) {
  return __float2half_rn(value);
}

/// Which row an element of a matrix lies in. A division of 64 bits takes as long as the memory that a kernel
/// moves for it; one of 32, where both numbers allow it, a fraction of that.
__device__ inline int64_t RowOf(int64_t element, int64_t width) {
  if (element > 0xFFFFFFFFll || width > 0xFFFFFFFFll) return element / width;
  return static_cast<uint32_t>(element) / static_cast<uint32_t>(width);
}

/// N neighbours, moved in accesses of up to 16 bytes.
template <typename T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack {
  T values[N];
};

template <int N, typename T>
__device__ inline void LoadPack(const T* from, float (&to)[N]) {
  const Pack<T, N> pack = *reinterpret_cast<const Pack<T, N>*>(from);
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = ToFloat(pack.values[i]);
}

template <int N, typename T>
__device__ inline void StorePack(const float (&from)[N], T* to) {
  Pack<T, N> pack;
#pragma unroll
  for (int i = 0; i < N; ++i) pack.values[i] = FromFloat<T>(from[i]);
  *reinterpret_cast<Pack<T, N>*>(to) = pack;
}

/// As stored in elements of type T and loaded again.
template <typename T, int N>
__device__ inline void RoundPack(float (&values)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) values[i] = ToFloat(FromFloat<T>(values[i]));
}

struct Plus {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Max {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

/// Combines a value of every thread in a fixed order; every thread gets the result. The block is a multiple
/// of 32 threads.
/// \param shared 32 elements, free for use again when all threads have returned
template <typename T, typename Combine>
__device__ inline T CombineBlock(T value, T* shared, Combine combine) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32,
            warps = static_cast<int>(blockDim.x) / 32;
#pragma unroll
  for (int step = 16; step > 0; step /= 2) value = combine(value, __shfl_xor_sync(0xFFFFFFFFu, value, step));
  if (lane == 0) shared[warp] = value;
  __syncthreads();
  T result = shared[0];
  for (int i = 1; i < warps; ++i) result = combine(result, shared[i]);
  __syncthreads();
  return result;
}

/// Calls function.template operator()<element type>().
template <typename Function>
cudaError_t WithStorage(Storage storage, const Function& function) {
  switch (storage) {
    case Storage::kFp32:
      return function.template operator()<float>();
    case Storage::kBf16:
      return function.template operator()<__nv_bfloat16>();
    case Storage::kFp16:
      return function.template operator()<__half>();
  }
  return cudaErrorInvalidValue;
}

inline bool Aligned(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % 16 == 0;
}

/// Blocks of a grid-stride loop over `items` with `threads` a block.
inline unsigned BlocksFor(int64_t items, int threads) {
  constexpr int64_t kMost = 65536;
  const int64_t blocks = (items + threads - 1) / threads;
  return static_cast<unsigned>(blocks < kMost ? blocks : kMost);
}

}  // namespace trainwright::cuda
