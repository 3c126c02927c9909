// Reading of NF4: a thread takes eight elements of one block of codes, which are four bytes.
#include "lib/nn/cuda/device_code.cuh"
#include "lib/nn/cuda/launch.h"
#include "lib/nn/linear/nf4_books.h"

namespace trainwright::cuda {
namespace {

constexpr int kThreads = 256, kPack = 8;

/// \param books by value: every launch brings them, so no memory of the device has to hold them
template <typename T>
__global__ void __launch_bounds__(kThreads)
    DequantizeNf4Kernel(const uint8_t* __restrict__ codes, const uint8_t* __restrict__ scales,
                        const float* __restrict__ scale_magnitudes, const float* __restrict__ mean,
                        const Nf4Books books, int64_t size, bool packs, T* __restrict__ out) {
  __shared__ float code_book[16];
  __shared__ float dynamic_map[256];
  dynamic_map[threadIdx.x] = books.dynamic_map[threadIdx.x];
  if (threadIdx.x < 16) code_book[threadIdx.x] = books.code_book[threadIdx.x];
  __syncthreads();
  const float mean_magnitude = *mean;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads * kPack;
  for (int64_t first = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kPack; first < size;
       first += stride) {
    const int64_t block = first / kNf4Block;
    // Rounded after each step, as the definition has it: a contracted sum would have other bits.
    const float magnitude = __fadd_rn(
        __fmul_rn(dynamic_map[scales[block]], scale_magnitudes[block / kNf4ScaleBlock]), mean_magnitude);
    float values[kPack];
    const int64_t count = size - first < kPack ? size - first : kPack;
    uint32_t bytes = 0;
    if (count == kPack && packs) {
      bytes = *reinterpret_cast<const uint32_t*>(codes + first / 2);
    } else {
      for (int i = 0; i < (count + 1) / 2; ++i) bytes |= static_cast<uint32_t>(codes[first / 2 + i]) << 8 * i;
    }
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      const uint32_t byte = bytes >> 8 * (i / 2);
      values[i] = code_book[i % 2 == 0 ? byte >> 4 & 15 : byte & 15] * magnitude;
    }
    if (count == kPack && packs) {
      StorePack<kPack>(values, out + first);
    } else {
      for (int i = 0; i < count; ++i) out[first + i] = FromFloat<T>(values[i]);
    }
  }
}

}  // namespace

cudaError_t DequantizeNf4(Storage storage, const uint8_t* codes, const uint8_t* scales,
                          const float* scale_magnitudes, const float* mean, const Nf4Books& books,
                          int64_t size, void* out, cudaStream_t stream) {
  static_assert(kNf4Block % kPack == 0 && kThreads == 256);
  if (size == 0) return cudaSuccess;
  return WithStorage(storage, [&]<typename T>() {
    return Launch(DequantizeNf4Kernel<T>, BlocksFor((size + kPack - 1) / kPack, kThreads), kThreads, stream,
                  codes, scales, scale_magnitudes, mean, books, size, Aligned(codes) && Aligned(out),
                  static_cast<T*>(out));
  });
}

}  // namespace trainwright::cuda
