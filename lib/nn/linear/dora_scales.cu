// The gradient of columns that were scaled, and of their magnitudes, in one pass: a thread owns columns.
#include "lib/nn/cuda/column_scale_kernels.h"
#include "lib/nn/cuda/column_strips.cuh"
#include "lib/nn/cuda/launch.h"

namespace trainwright::cuda {
namespace {

/// Elements of a 16-byte access of the short types; four fp32 take one, eight two.
constexpr int kPack = 8;

template <typename T, int N>
__global__ void __launch_bounds__(kStripThreads)
    ScaleColumnsBackwardKernel(ColumnScales of, const T* __restrict__ dy, int64_t dy_stride, T* y,
                               int64_t y_stride, RowStrips strips, float* __restrict__ partial) {
  const StripPlace place(strips, N);
  float sums[N] = {};
  if (place.column < of.width) {
    float scales[N], norms[N];
    LoadPack<N>(of.scale + place.column, scales);
    LoadPack<N>(of.norm + place.column, norms);
#pragma unroll 4
    for (int64_t row = place.begin; row < place.end; row += kGroups) {
      T* at = y + row * y_stride + place.column;
      float values[N], gradients[N];
      LoadPack<N>(at, values);
      LoadPack<N>(dy + row * dy_stride + place.column, gradients);
#pragma unroll
      for (int k = 0; k < N; ++k) {
        sums[k] += values[k] * gradients[k];
        gradients[k] *= scales[k];
      }
      StorePack<N>(gradients, at);
    }
#pragma unroll
    for (int k = 0; k < N; ++k) sums[k] /= norms[k];
  }
  StoreStripSums<N>(sums, place, of.width, partial);
}

}  // namespace

int64_t ScaleColumnsStrips(int64_t rows) {
  return ColumnStripsOf(rows).count;
}

cudaError_t ScaleColumnsBackward(Storage storage, const ColumnScales& of, const void* dy, int64_t dy_stride,
                                 void* y, int64_t y_stride, float* d_magnitude, float* partial,
                                 cudaStream_t stream) {
  if (of.rows * of.width == 0) return cudaSuccess;
  const bool wide = of.width % kPack == 0 && dy_stride % kPack == 0 && y_stride % kPack == 0 && Aligned(dy) &&
                    Aligned(y) && Aligned(of.scale) && Aligned(of.norm) && Aligned(partial);
  const RowStrips strips = ColumnStripsOf(of.rows);
  const cudaError_t status = WithStorage(storage, [&]<typename T>() {
    const auto launch = [&](auto kernel, dim3 grid) {
      return Launch(kernel, grid, StripBlock(), stream, of, static_cast<const T*>(dy), dy_stride,
                    static_cast<T*>(y), y_stride, strips, partial);
    };
    return wide ? launch(ScaleColumnsBackwardKernel<T, kPack>, StripGrid<kPack>(of.width, strips))
                : launch(ScaleColumnsBackwardKernel<T, 1>, StripGrid<1>(of.width, strips));
  });
  if (status != cudaSuccess) return status;
  return AddPartialSums(partial, strips.count, of.width, d_magnitude, nullptr, /*has_second=*/false, stream);
}

}  // namespace trainwright::cuda
