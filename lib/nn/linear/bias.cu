// A bias added to the rows of a matrix, and the sums of its columns: a thread owns columns.
#include "lib/nn/cuda/bias_kernels.h"

#include "lib/nn/cuda/column_strips.cuh"
#include "lib/nn/cuda/launch.h"

namespace trainwright::cuda {
namespace {

/// Elements of a 16-byte access of the short types; four fp32 take one, eight two.
constexpr int kPack = 8;

template <typename T, int N>
__global__ void __launch_bounds__(kStripThreads)
    AddBiasKernel(T* x, const float* __restrict__ bias, RowStrips strips, int64_t width, int64_t stride) {
  const StripPlace place(strips, N);
  if (place.column >= width) return;
  float biases[N];
  LoadPack<N>(bias + place.column, biases);
#pragma unroll 4
  for (int64_t row = place.begin; row < place.end; row += kGroups) {
    T* at = x + row * stride + place.column;
    float values[N];
    LoadPack<N>(at, values);
#pragma unroll
    for (int k = 0; k < N; ++k) values[k] += biases[k];
    StorePack<N>(values, at);
  }
}

template <typename T, int N>
__global__ void __launch_bounds__(kStripThreads)
    ColumnSumsKernel(const T* __restrict__ x, RowStrips strips, int64_t width, int64_t stride,
                     float* __restrict__ partial) {
  const StripPlace place(strips, N);
  float sums[N] = {};
  if (place.column < width) {
#pragma unroll 4
    for (int64_t row = place.begin; row < place.end; row += kGroups) {
      float values[N];
      LoadPack<N>(x + row * stride + place.column, values);
#pragma unroll
      for (int k = 0; k < N; ++k) sums[k] += values[k];
    }
  }
  StoreStripSums<N>(sums, place, width, partial);
}

}  // namespace

cudaError_t AddBias(Storage storage, void* x, const float* bias, int64_t rows, int64_t width, int64_t stride,
                    cudaStream_t stream) {
  if (rows * width == 0) return cudaSuccess;
  const bool wide = width % kPack == 0 && stride % kPack == 0 && Aligned(x) && Aligned(bias);
  const RowStrips strips = ColumnStripsOf(rows);
  return WithStorage(storage, [&]<typename T>() {
    const auto launch = [&](auto kernel, dim3 grid) {
      return Launch(kernel, grid, StripBlock(), stream, static_cast<T*>(x), bias, strips, width, stride);
    };
    return wide ? launch(AddBiasKernel<T, kPack>, StripGrid<kPack>(width, strips))
                : launch(AddBiasKernel<T, 1>, StripGrid<1>(width, strips));
  });
}

int64_t ColumnSumStrips(int64_t rows) {
  return ColumnStripsOf(rows).count;
}

cudaError_t BiasBackward(Storage storage, const void* dy, int64_t rows, int64_t width, int64_t stride,
                         float* d_bias, float* partial, cudaStream_t stream) {
  if (rows * width == 0) return cudaSuccess;
  const bool wide = width % kPack == 0 && stride % kPack == 0 && Aligned(dy) && Aligned(partial);
  const RowStrips strips = ColumnStripsOf(rows);
  const cudaError_t status = WithStorage(storage, [&]<typename T>() {
    const auto launch = [&](auto kernel, dim3 grid) {
      return Launch(kernel, grid, StripBlock(), stream, static_cast<const T*>(dy), strips, width, stride,
                    partial);
    };
    return wide ? launch(ColumnSumsKernel<T, kPack>, StripGrid<kPack>(width, strips))
                : launch(ColumnSumsKernel<T, 1>, StripGrid<1>(width, strips));
  });
  if (status != cudaSuccess) return status;
  return AddPartialSums(partial, strips.count, width, d_bias, nullptr, /*has_second=*/false, stream);
}

}  // namespace trainwright::cuda
