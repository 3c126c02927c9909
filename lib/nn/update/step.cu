// The end of a step: the gradients' norm and what it decides, without the host.
#include "lib/nn/cuda/device_code.cuh"
#include "lib/nn/cuda/launch.h"
#include "lib/nn/update/step_decision.h"
#include "lib/spec/reduction_block.h"

namespace trainwright::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kBlockElements = kReductionBlock;

__global__ void __launch_bounds__(kThreads)
    SquaresKernel(const float* __restrict__ values, int64_t size, double* __restrict__ partial) {
  __shared__ double shared[32];
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * kBlockElements;
  const int64_t end = begin + kBlockElements < size ? begin + kBlockElements : size;
  double sum = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
    const double value = values[i];
    sum += value * value;
  }
  sum = CombineBlock(sum, shared, Plus());
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kThreads)
    AddUpKernel(const double* __restrict__ partial, int64_t count, double* out) {
  __shared__ double shared[32];
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += kThreads) sum += partial[i];
  sum = CombineBlock(sum, shared, Plus());
  if (threadIdx.x == 0) *out = sum;
}

__global__ void FinishStepKernel(const double* sum_of_squares, const double* inputs, int terms,
                                 double max_norm, bool scaled, StepState* state, double* term_rows,
                                 StepOutputs* outputs) {
  trainwright::FinishStep(*sum_of_squares, *reinterpret_cast<const StepInputs*>(inputs),
                          inputs + kStepInputFields, terms, max_norm, scaled, state, term_rows, outputs);
}

}  // namespace

int64_t SumOfSquaresBlocks(int64_t size) {
  return (size + kBlockElements - 1) / kBlockElements;
}

cudaError_t SumOfSquares(const float* values, int64_t size, double* partial, double* out,
                         cudaStream_t stream) {
  const int64_t blocks = SumOfSquaresBlocks(size);
  if (blocks > 0) {
    const cudaError_t status =
        Launch(SquaresKernel, static_cast<unsigned>(blocks), kThreads, stream, values, size, partial);
    if (status != cudaSuccess) return status;
  }
  return Launch(AddUpKernel, 1, kThreads, stream, partial, blocks, out);
}

cudaError_t FinishStep(const double* sum_of_squares, const double* inputs, int terms, double max_norm,
                       bool scaled, double* state, double* term_rows, float* outputs, cudaStream_t stream) {
  return Launch(FinishStepKernel, 1, 1, stream, sum_of_squares, inputs, terms, max_norm, scaled,
                reinterpret_cast<StepState*>(state), term_rows, reinterpret_cast<StepOutputs*>(outputs));
}

}  // namespace trainwright::cuda
