// The update of AdamW with moments in bf16.
#include "lib/nn/update/bf16_moments.h"

#include "lib/nn/cuda/kernels.h"
#include "lib/nn/cuda/launch.h"

namespace trainwright::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 2048;

__global__ void __launch_bounds__(kThreads)
    UpdateKernel(float* __restrict__ values, const float* __restrict__ gradients,
                 uint16_t* __restrict__ exp_avg, uint16_t* __restrict__ exp_avg_sq, int64_t first,
                 int64_t count, AdamWHyperparameters of, const float* step, const float* divisor,
                 const float* found_inf, const double* rate) {
  __shared__ AdamWCoefficients shared;
  if (found_inf != nullptr && *found_inf != 0) return;
  if (threadIdx.x == 0) {
    if (rate != nullptr) of.learning_rate *= *rate;
    shared = CoefficientsOf(of, *step, divisor != nullptr ? *divisor : 1.0);
  }
  __syncthreads();
  const AdamWCoefficients c = shared;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count; i += stride) {
    const int64_t place = first + i;
    const uint32_t random =
        RandomBits(RandomBlockKey(c.key, place), static_cast<uint32_t>(place % kRandomBlock));
    UpdateElement(c, random, gradients[i], &values[i], &exp_avg[i], &exp_avg_sq[i]);
  }
}

}  // namespace

cudaError_t AdamWBf16Moments(float* values, const float* gradients, uint16_t* exp_avg, uint16_t* exp_avg_sq,
                             int64_t first, int64_t count, const AdamWHyperparameters& hyperparameters,
                             const float* step, const float* divisor, const float* found_inf,
                             const double* rate, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  const int64_t needed = (count + kThreads - 1) / kThreads;
  const auto blocks = static_cast<unsigned>(needed < kMostBlocks ? needed : kMostBlocks);
  return Launch(UpdateKernel, blocks, kThreads, stream, values, gradients, exp_avg, exp_avg_sq, first, count,
                hyperparameters, step, divisor, found_inf, rate);
}

}  // namespace trainwright::cuda
