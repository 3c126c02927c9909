// Dropout: a thread takes pairs of neighbours, which share 64 random bits.
#include "lib/nn/cuda/device_code.cuh"
#include "lib/nn/cuda/launch.h"
#include "lib/nn/mix_bits.h"

namespace trainwright::cuda {
namespace {

constexpr int kThreads = 256;

/// \param pairs of a row: (width + 1) / 2
template <typename T>
__global__ void __launch_bounds__(kThreads)
    DropoutKernel(const T* x, const int64_t* __restrict__ rows, uint64_t key, uint32_t threshold, float scale,
                  int64_t width, int64_t pairs, int64_t size, T* out) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < size; i += stride) {
    const int64_t row = RowOf(i, pairs), pair = i - row * pairs, first = row * width + 2 * pair;
    const uint64_t bits = CounterBits(
        key, static_cast<uint64_t>(rows[row]) * static_cast<uint64_t>(pairs) + static_cast<uint64_t>(pair));
    const float low = static_cast<uint32_t>(bits) < threshold ? 0.0f : scale,
                high = static_cast<uint32_t>(bits >> 32) < threshold ? 0.0f : scale;
    out[first] = FromFloat<T>(ToFloat(x[first]) * low);
    if (2 * pair + 1 < width) out[first + 1] = FromFloat<T>(ToFloat(x[first + 1]) * high);
  }
}

/// The same of even rows whose pairs are aligned to their own size.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    PairedDropoutKernel(const T* x, const int64_t* __restrict__ rows, uint64_t key, uint32_t threshold,
                        float scale, int64_t pairs, int64_t size, T* out) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < size; i += stride) {
    const int64_t row = RowOf(i, pairs), pair = i - row * pairs;
    const uint64_t bits = CounterBits(
        key, static_cast<uint64_t>(rows[row]) * static_cast<uint64_t>(pairs) + static_cast<uint64_t>(pair));
    float values[2];
    LoadPack<2>(x + 2 * i, values);
    values[0] *= static_cast<uint32_t>(bits) < threshold ? 0.0f : scale;
    values[1] *= static_cast<uint32_t>(bits >> 32) < threshold ? 0.0f : scale;
    StorePack<2>(values, out + 2 * i);
  }
}

}  // namespace

cudaError_t Dropout(Storage storage, const void* x, const int64_t* rows, uint64_t key, uint32_t threshold,
                    float scale, int64_t num_rows, int64_t width, void* out, cudaStream_t stream) {
  if (num_rows * width == 0) return cudaSuccess;
  const int64_t pairs = (width + 1) / 2, size = num_rows * pairs;
  return WithStorage(storage, [&]<typename T>() {
    const auto* in = static_cast<const T*>(x);
    auto* to = static_cast<T*>(out);
    if (width % 2 == 0 && Aligned(x) && Aligned(out)) {
      return Launch(PairedDropoutKernel<T>, BlocksFor(size, kThreads), kThreads, stream, in, rows, key,
                    threshold, scale, pairs, size, to);
    }
    return Launch(DropoutKernel<T>, BlocksFor(size, kThreads), kThreads, stream, in, rows, key, threshold,
                  scale, width, pairs, size, to);
  });
}

}  // namespace trainwright::cuda
