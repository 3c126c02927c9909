// The Gaussian error linear unit with the bias before it, and its backward pass with that bias's gradient: a
// thread owns columns.
#include "lib/nn/cuda/bias_kernels.h"
#include "lib/nn/cuda/column_strips.cuh"
#include "lib/nn/cuda/gelu_kernels.h"
#include "lib/nn/cuda/launch.h"

namespace trainwright::cuda {
namespace {

__device__ inline float Exp(float x) {
  return expf(x);
}
/// The second where a NaN is the first.
__device__ inline float Smaller(float a, float b) {
  return b < a ? b : a;
}
__device__ inline float Larger(float a, float b) {
  return a < b ? b : a;
}

#define TRAINWRIGHT_GELU __device__
#include "lib/nn/activation/gelu_body.h"
#undef TRAINWRIGHT_GELU

/// Elements of a 16-byte access of the short types; four fp32 take one, eight two.
constexpr int kPack = 8;

template <typename T, int N, typename Activation>
__global__ void __launch_bounds__(kStripThreads)
    GeluKernel(const T* __restrict__ in, const float* __restrict__ bias, RowStrips strips, int64_t width,
               T* __restrict__ out) {
  const StripPlace place(strips, N);
  if (place.column >= width) return;
  float biases[N] = {};
  if (bias != nullptr) LoadPack<N>(bias + place.column, biases);
#pragma unroll 4
  for (int64_t row = place.begin; row < place.end; row += kGroups) {
    const int64_t at = row * width + place.column;
    float values[N];
    LoadPack<N>(in + at, values);
#pragma unroll
    for (int k = 0; k < N; ++k) values[k] = Activation::Value(values[k] + biases[k]);
    StorePack<N>(values, out + at);
  }
}

template <typename T, int N, typename Activation>
__global__ void __launch_bounds__(kStripThreads)
    GeluBackwardKernel(const T* __restrict__ d_out, const float* __restrict__ bias, RowStrips strips,
                       int64_t width, T* in, float* __restrict__ partial) {
  const StripPlace place(strips, N);
  float sums[N] = {};
  if (place.column < width) {
    float biases[N] = {};
    if (bias != nullptr) LoadPack<N>(bias + place.column, biases);
#pragma unroll 2
    for (int64_t row = place.begin; row < place.end; row += kGroups) {
      const int64_t at = row * width + place.column;
      float values[N], d[N];
      LoadPack<N>(in + at, values);
      LoadPack<N>(d_out + at, d);
#pragma unroll
      for (int k = 0; k < N; ++k) {
        values[k] = d[k] * Activation::Derivative(values[k] + biases[k]);
        sums[k] += ToFloat(FromFloat<T>(values[k]));
      }
      StorePack<N>(values, in + at);
    }
  }
  if (partial != nullptr) StoreStripSums<N>(sums, place, width, partial);
}

/// Calls function.template operator()<storage, activation>().
template <typename Function>
cudaError_t WithKind(Storage storage, GeluKind kind, const Function& function) {
  return WithStorage(storage, [&]<typename T>() {
    return kind == GeluKind::kErf ? function.template operator()<T, GeluErf>()
                                  : function.template operator()<T, GeluTanh>();
  });
}

}  // namespace

cudaError_t Gelu(Storage storage, GeluKind kind, const void* in, const float* bias, int64_t rows,
                 int64_t width, void* out, cudaStream_t stream) {
  if (rows * width == 0) return cudaSuccess;
  const bool wide = width % kPack == 0 && Aligned(in) && Aligned(bias) && Aligned(out);
  const RowStrips strips = ColumnStripsOf(rows);
  return WithKind(storage, kind, [&]<typename T, typename Activation>() {
    const auto launch = [&](auto kernel, dim3 grid) {
      return Launch(kernel, grid, StripBlock(), stream, static_cast<const T*>(in), bias, strips, width,
                    static_cast<T*>(out));
    };
    return wide ? launch(GeluKernel<T, kPack, Activation>, StripGrid<kPack>(width, strips))
                : launch(GeluKernel<T, 1, Activation>, StripGrid<1>(width, strips));
  });
}

cudaError_t GeluBackward(Storage storage, GeluKind kind, const void* d_out, const float* bias, int64_t rows,
                         int64_t width, void* in, float* d_bias, float* partial, cudaStream_t stream) {
  if (rows * width == 0) return cudaSuccess;
  const bool wide = width % kPack == 0 && Aligned(d_out) && Aligned(bias) && Aligned(in) && Aligned(partial);
  const RowStrips strips = ColumnStripsOf(rows);
  const cudaError_t status = WithKind(storage, kind, [&]<typename T, typename Activation>() {
    const auto launch = [&](auto kernel, dim3 grid) {
      return Launch(kernel, grid, StripBlock(), stream, static_cast<const T*>(d_out), bias, strips, width,
                    static_cast<T*>(in), partial);
    };
    return wide ? launch(GeluBackwardKernel<T, kPack, Activation>, StripGrid<kPack>(width, strips))
                : launch(GeluBackwardKernel<T, 1, Activation>, StripGrid<1>(width, strips));
  });
  if (status != cudaSuccess || d_bias == nullptr) return status;
  return AddPartialSums(partial, strips.count, width, d_bias, nullptr, /*has_second=*/false, stream);
}

}  // namespace trainwright::cuda
