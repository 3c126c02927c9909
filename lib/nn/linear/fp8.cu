// Rounding to fp8: the largest magnitude of a matrix in two stages, then its codes along rows or columns.
#include <string.h>

#include "lib/nn/cuda/device_code.cuh"
#include "lib/nn/cuda/fp8_kernels.h"
#include "lib/nn/cuda/launch.h"

namespace trainwright::cuda {
namespace {

__host__ __device__ inline float BitsToFloat(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}
__host__ __device__ inline uint32_t FloatToBits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

#define TRAINWRIGHT_FP8 __host__ __device__ inline
#include "lib/nn/linear/fp8_body.h"

constexpr int kThreads = 256, kPack = 8;
constexpr int kTileColumns = 32, kTileRows = 128;  // of a block that transposes

struct LargerBits {
  __device__ uint32_t operator()(uint32_t a, uint32_t b) const { return a < b ? b : a; }
};

template <typename T, int N>
__global__ void __launch_bounds__(kThreads)
    LargestKernel(const T* x, int64_t rows, int64_t columns, int64_t stride, uint32_t* partial) {
  __shared__ uint32_t shared[32];
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads * N;
  uint32_t largest = 0;
  for (int64_t i = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * N; i < rows * columns;
       i += step) {
    const int64_t row = RowOf(i, columns);
    float values[N];
    LoadPack<N>(x + row * stride + (i - row * columns), values);
#pragma unroll
    for (int k = 0; k < N; ++k) largest = LargerBits()(largest, FloatToBits(values[k]) & 0x7FFFFFFFu);
  }
  largest = CombineBlock(largest, shared, LargerBits());
  if (threadIdx.x == 0) partial[blockIdx.x] = largest;
}

/// One block.
__global__ void __launch_bounds__(kThreads)
    Fp8ScaleKernel(const uint32_t* partial, int count, float largest_value, float* scale_2) {
  __shared__ uint32_t shared[32];
  uint32_t largest = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads)
    largest = LargerBits()(largest, partial[i]);
  largest = CombineBlock(largest, shared, LargerBits());
  if (threadIdx.x != 0) return;
  const Fp8Scale scale = ScaleOf(largest, largest_value);
  scale_2[0] = scale.scale;
  scale_2[1] = scale.factor;
}

struct alignas(kPack) CodePack {
  uint8_t codes[kPack];
};

/// Lines are rows; a thread writes kPack codes.
template <typename Codes, typename T, bool wide>
__global__ void __launch_bounds__(kThreads)
    EncodeRowsKernel(const T* x, int64_t rows, int64_t columns, int64_t stride, const float* scale_2,
                     uint8_t* codes, int64_t code_stride) {
  const float factor = scale_2[1];
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads * kPack;
  for (int64_t i = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kPack;
       i < rows * code_stride; i += step) {
    const int64_t row = RowOf(i, code_stride), column = i - row * code_stride;
    const T* from = x + row * stride + column;
    float values[kPack] = {};
    if constexpr (wide) {
      if (column < columns) LoadPack<kPack>(from, values);
    } else {
      for (int k = 0; k < kPack && column + k < columns; ++k) values[k] = ToFloat(from[k]);
    }
    CodePack pack;
#pragma unroll
    for (int k = 0; k < kPack; ++k) pack.codes[k] = column + k < columns ? Codes::Of(values[k] * factor) : 0;
    *reinterpret_cast<CodePack*>(codes + i) = pack;
  }
}

/// Lines are columns: a block turns a tile over.
template <typename Codes, typename T>
__global__ void __launch_bounds__(kThreads)
    EncodeColumnsKernel(const T* x, int64_t rows, int64_t columns, int64_t stride, const float* scale_2,
                        uint8_t* codes, int64_t code_stride) {
  constexpr int kWarps = kThreads / 32,
                kLineWords = kTileRows / 4 + 1;  // so that a warp's bytes lie in 32 banks
  __shared__ uint32_t words[kTileColumns * kLineWords];
  auto* const tile = reinterpret_cast<uint8_t*>(words);
  const float factor = scale_2[1];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * kTileRows,
                first_column = static_cast<int64_t>(blockIdx.y) * kTileColumns;
  for (int r = warp; r < kTileRows; r += kWarps) {
    const int64_t row = first_row + r, column = first_column + lane;
    const bool inside = row < rows && column < columns;
    tile[lane * kLineWords * 4 + r] = inside ? Codes::Of(ToFloat(x[row * stride + column]) * factor) : 0;
  }
  __syncthreads();
  for (int c = warp; c < kTileColumns && first_column + c < columns; c += kWarps) {
    const int64_t row = first_row + 4 * lane;
    if (row >= code_stride) continue;
    *reinterpret_cast<uint32_t*>(codes + (first_column + c) * code_stride + row) =
        words[c * kLineWords + lane];
  }
}

bool IsWide(const StoredMatrix& x) {
  return x.columns % kPack == 0 && x.stride % kPack == 0 && Aligned(x.data);
}

}  // namespace

cudaError_t Fp8ScaleOf(const StoredMatrix& x, Fp8Format format, uint32_t* partial, float* scale_2,
                       cudaStream_t stream) {
  const int64_t size = x.rows * x.columns;
  const int pack = IsWide(x) ? kPack : 1;
  const int64_t wanted = (size / pack + kThreads - 1) / kThreads;
  const auto blocks = static_cast<unsigned>(wanted < 1 ? 1 : wanted < kFp8Partials ? wanted : kFp8Partials);
  const cudaError_t status = WithStorage(x.storage, [&]<typename T>() {
    const auto* from = static_cast<const T*>(x.data);
    return pack == kPack ? Launch(LargestKernel<T, kPack>, blocks, kThreads, stream, from, x.rows, x.columns,
                                  x.stride, partial)
                         : Launch(LargestKernel<T, 1>, blocks, kThreads, stream, from, x.rows, x.columns,
                                  x.stride, partial);
  });
  if (status != cudaSuccess) return status;
  return Launch(Fp8ScaleKernel, 1u, kThreads, stream, partial, static_cast<int>(blocks), LargestOf(format),
                scale_2);
}

cudaError_t Fp8Encode(const StoredMatrix& x, Fp8Format format, const float* scale_2, bool columns,
                      uint8_t* codes, int64_t code_stride, cudaStream_t stream) {
  if (x.rows == 0 || x.columns == 0) return cudaSuccess;
  return WithStorage(x.storage, [&]<typename T>() {
    return WithFp8(format, [&]<typename Codes>() {
      const auto launch = [&](auto kernel, dim3 grid) {
        return Launch(kernel, grid, kThreads, stream, static_cast<const T*>(x.data), x.rows, x.columns,
                      x.stride, scale_2, codes, code_stride);
      };
      if (columns) {
        return launch(EncodeColumnsKernel<Codes, T>,
                      dim3(static_cast<unsigned>((code_stride + kTileRows - 1) / kTileRows),
                           static_cast<unsigned>((x.columns + kTileColumns - 1) / kTileColumns)));
      }
      const dim3 grid(BlocksFor(x.rows * code_stride / kPack, kThreads));
      return IsWide(x) ? launch(EncodeRowsKernel<Codes, T, true>, grid)
                       : launch(EncodeRowsKernel<Codes, T, false>, grid);
    });
  });
}

}  // namespace trainwright::cuda
