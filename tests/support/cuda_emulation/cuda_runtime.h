/// Stands in for the CUDA header of this name, which nvcc includes into every source by itself: the keywords
/// and the functions of kernels. Compile a .cu source with `-x c++ -include <this file>`.
///
/// `__shared__` variables are static: one block runs at a time. Each block finds them full of 0xFF bytes
/// (NaN as a number) instead of the zeros that would hide a read before a write. Dynamic shared memory is not
/// supported, and a static variable of a function in namespace trainwright::cuda that is no `__shared__` must
/// be const.
#pragma once

#include <cuda_runtime_api.h>
#include <math.h>
#include <string.h>

#include <atomic>
#include <source_location>
#include <type_traits>

#include "tests/support/cuda_emulation/block_sync.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)

/// Of the thread of the kernel that runs in this thread of the host.
inline thread_local constinit uint3 threadIdx{}, blockIdx{};
inline thread_local constinit dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

namespace trainwright::cuda_emulation {

/// The value of a lane of this warp.
/// \param source lane
template <typename T>
T ShuffleFrom(unsigned mask, T value, int source, const std::source_location& where) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof(T));
  bits = CurrentBlock().Shuffle(mask, bits, source, where);
  memcpy(&value, &bits, sizeof(T));
  return value;
}
inline int Lane() {
  return static_cast<int>((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32);
}

inline void __syncthreads(std::source_location where = std::source_location::current()) {
  CurrentBlock().Barrier(where);
}
inline void __syncwarp(unsigned mask = 0xFFFFFFFFu,
                       std::source_location where = std::source_location::current()) {
  CurrentBlock().Shuffle(mask, 0, -1, where);
}
template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32,
              std::source_location where = std::source_location::current()) {
  return ShuffleFrom(mask, value, Lane() / width * width + source % width, where);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32,
                  std::source_location where = std::source_location::current()) {
  const int source = Lane() ^ lanes;
  return ShuffleFrom(mask, value, source / width <= Lane() / width ? source : Lane(), where);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, int lanes, int width = 32,
                   std::source_location where = std::source_location::current()) {
  const int source = Lane() + lanes;
  return ShuffleFrom(mask, value, source / width == Lane() / width ? source : Lane(), where);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, int lanes, int width = 32,
                 std::source_location where = std::source_location::current()) {
  const int source = Lane() - lanes;
  return ShuffleFrom(mask, value, source >= Lane() / width * width ? source : Lane(), where);
}

}  // namespace trainwright::cuda_emulation

using trainwright::cuda_emulation::__shfl_down_sync;
using trainwright::cuda_emulation::__shfl_sync;
using trainwright::cuda_emulation::__shfl_up_sync;
using trainwright::cuda_emulation::__shfl_xor_sync;
using trainwright::cuda_emulation::__syncthreads;
using trainwright::cuda_emulation::__syncwarp;

template <typename T>
T atomicAdd(T* at, std::type_identity_t<T> value) {
  return std::atomic_ref<T>(*at).fetch_add(value);
}
template <typename T>
T atomicMax(T* at, std::type_identity_t<T> value) {
  T seen = std::atomic_ref<T>(*at).load();
  while (seen < value && !std::atomic_ref<T>(*at).compare_exchange_weak(seen, value)) {
  }
  return seen;
}
// The atomic operations above order everything; ThreadSanitizer knows no fences.
inline void __threadfence() {}
inline void __threadfence_block() {}

template <typename T>
T __ldcg(const T* from) {
  return *from;
}
template <typename T>
T __ldg(const T* from) {
  return *from;
}
template <typename T>
T __ldcs(const T* from) {
  return *from;
}
template <typename T>
void __stcs(T* to, std::type_identity_t<T> value) {
  *to = value;
}
template <typename T>
void __stcg(T* to, std::type_identity_t<T> value) {
  *to = value;
}

inline float rsqrtf(float x) {
  return 1.0f / sqrtf(x);
}
inline float __fadd_rn(float a, float b) {
  return a + b;
}
inline float __fmul_rn(float a, float b) {
  return a * b;
}
inline float __fmaf_rn(float a, float b, float c) {
  return fmaf(a, b, c);
}
