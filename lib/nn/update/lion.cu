// The update of Lion.
#include "lib/nn/update/lion.h"

#include "lib/nn/cuda/device_code.cuh"
#include "lib/nn/cuda/kernels.h"
#include "lib/nn/cuda/launch.h"

namespace trainwright::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    LionKernel(float* __restrict__ values, const float* __restrict__ gradients, float* __restrict__ exp_avg,
               int64_t count, LionHyperparameters of, const float* divisor, const float* found_inf,
               const double* rate) {
  if (found_inf != nullptr && *found_inf != 0) return;
  if (rate != nullptr) of.learning_rate *= *rate;
  const LionCoefficients c = CoefficientsOf(of, divisor != nullptr ? *divisor : 1.0);
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count; i += stride) {
    UpdateElement(c, gradients[i], &values[i], &exp_avg[i]);
  }
}

}  // namespace

cudaError_t Lion(float* values, const float* gradients, float* exp_avg, int64_t count,
                 const LionHyperparameters& hyperparameters, const float* divisor, const float* found_inf,
                 const double* rate, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  return Launch(LionKernel, BlocksFor(count, kThreads), kThreads, stream, values, gradients, exp_avg, count,
                hyperparameters, divisor, found_inf, rate);
}

}  // namespace trainwright::cuda
