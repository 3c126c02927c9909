// The update of AdamW with moments in 8 bits: a block of threads for a block of elements.
#include "lib/nn/update/adamw_8bit.h"

#include "lib/nn/cuda/device_code.cuh"
#include "lib/nn/cuda/kernels.h"
#include "lib/nn/cuda/launch.h"

namespace trainwright::cuda {
namespace {

constexpr int kThreads = static_cast<int>(kMomentBlock);
static_assert(kMapSize == kMomentBlock, "each thread brings a value of each map");

__global__ void __launch_bounds__(kThreads)
    AdamW8BitKernel(float* __restrict__ values, const float* __restrict__ gradients, Moments8Bit exp_avg,
                    Moments8Bit exp_avg_sq, int64_t count, AdamWHyperparameters of, const float* step,
                    const float* divisor, const float* found_inf, const double* rate) {
  __shared__ AdamWCoefficients coefficients;
  __shared__ float first_map[kMapSize], second_map[kMapSize], combined[32];
  if (found_inf != nullptr && *found_inf != 0) return;
  if (threadIdx.x == 0) {
    if (rate != nullptr) of.learning_rate *= *rate;
    coefficients = CoefficientsOf(of, *step, divisor != nullptr ? *divisor : 1.0);
  }
  first_map[threadIdx.x] = exp_avg.map[threadIdx.x];
  second_map[threadIdx.x] = exp_avg_sq.map[threadIdx.x];
  __syncthreads();
  const AdamWCoefficients c = coefficients;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  float first = 0, second = 0;
  if (i < count) {
    first = first_map[exp_avg.codes[i]] * exp_avg.largest[blockIdx.x];
    second = second_map[exp_avg_sq.codes[i]] * exp_avg_sq.largest[blockIdx.x];
    UpdateElement(c, gradients[i], &values[i], &first, &second);
  }
  const float largest_first = CombineBlock(fabsf(first), combined, Max()),
              largest_second = CombineBlock(fabsf(second), combined, Max());
  if (i < count) {
    exp_avg.codes[i] = EncodeMoment(first_map, first, largest_first);
    exp_avg_sq.codes[i] = EncodeMoment(second_map, second, largest_second);
  }
  if (threadIdx.x == 0) {
    exp_avg.largest[blockIdx.x] = largest_first;
    exp_avg_sq.largest[blockIdx.x] = largest_second;
  }
}

}  // namespace

cudaError_t AdamW8Bit(float* values, const float* gradients, const Moments8Bit& exp_avg,
                      const Moments8Bit& exp_avg_sq, int64_t count,
                      const AdamWHyperparameters& hyperparameters, const float* step, const float* divisor,
                      const float* found_inf, const double* rate, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  const auto blocks = static_cast<unsigned>(MomentBlocks(count));
  return Launch(AdamW8BitKernel, blocks, kThreads, stream, values, gradients, exp_avg, exp_avg_sq, count,
                hyperparameters, step, divisor, found_inf, rate);
}

}  // namespace trainwright::cuda
