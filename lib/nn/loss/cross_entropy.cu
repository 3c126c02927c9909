// Softmax cross-entropy: a block takes a row, reads it once for the largest logit and the sum, once more to
// write the gradient. \source Milakov and Gimelshein 2018, arXiv:1805.02867 (maximum and sum in one pass)
#include "lib/nn/cuda/device_code.cuh"
#include "lib/nn/cuda/launch.h"

namespace trainwright::cuda {
namespace {

constexpr int kThreads = 512;

template <typename T, int N>
__global__ void __launch_bounds__(kThreads)
    CrossEntropyKernel(T* logits, const int64_t* __restrict__ targets, int64_t vocabulary, int64_t padded,
                       LossTerms terms, float scale, const double* __restrict__ loss_scale, bool gradients,
                       double* __restrict__ losses_n3) {
  __shared__ float shared[32];
  T* row = logits + static_cast<int64_t>(blockIdx.x) * padded;
  const int64_t target = targets[blockIdx.x];
  if (target < 0) {  // of all threads of the block
    if (threadIdx.x < 3) losses_n3[3 * static_cast<int64_t>(blockIdx.x) + threadIdx.x] = 0;
    for (int64_t i = threadIdx.x; gradients && i < padded; i += kThreads) row[i] = FromFloat<T>(0);
    return;
  }
  float largest = -INFINITY, total = 0, sum = 0;
  for (int64_t i = static_cast<int64_t>(threadIdx.x) * N; i < vocabulary; i += kThreads * N) {
    float x[N];
    LoadPack<N>(row + i, x);
#pragma unroll
    for (int k = 1; k < N; ++k) {
      if (i + k >= vocabulary) x[k] = -INFINITY;  // a pad, which nothing shows
    }
    float larger = largest;
#pragma unroll
    for (int k = 0; k < N; ++k) larger = fmaxf(larger, x[k]);
    if (larger > largest) {
      total *= expf(largest - larger);  // the first time 0 * e^-inf = 0
      largest = larger;
    }
#pragma unroll
    for (int k = 0; k < N; ++k) {
      if (x[k] != -INFINITY) total += expf(x[k] - largest);  // -inf - -inf is no number
      if (k == 0 || i + k < vocabulary) sum += x[k];
    }
  }
  const float row_largest = CombineBlock(largest, shared, Max());
  // A thread without a logit, or with none above -inf, has 0 to add, or NaN.
  const float share = largest == -INFINITY ? total : total * expf(largest - row_largest);
  const float row_total = CombineBlock(share, shared, Plus());
  const float at_label = ToFloat(row[target]);
  const double log_z = log(static_cast<double>(row_total)) + row_largest;
  float mean = 0;
  if (terms.label_smoothing != 0) mean = CombineBlock(sum, shared, Plus()) / static_cast<float>(vocabulary);
  if (threadIdx.x == 0) {
    double* losses = losses_n3 + 3 * static_cast<int64_t>(blockIdx.x);
    losses[0] = log_z - at_label;
    losses[1] = static_cast<double>(terms.label_smoothing) * (static_cast<double>(at_label) - mean);
    losses[2] = terms.z_loss * log_z * log_z;
  }
  if (!gradients) return;
  __syncthreads();  // all threads have read the label's logit
  if (loss_scale != nullptr) scale = static_cast<float>(scale * *loss_scale);
  const float factor = scale * static_cast<float>(1.0 + 2.0 * terms.z_loss * log_z) / row_total;
  const float shared_part = scale * terms.label_smoothing / static_cast<float>(vocabulary);
  const float of_label = scale * (1.0f - terms.label_smoothing);
  for (int64_t i = static_cast<int64_t>(threadIdx.x) * N; i < padded; i += kThreads * N) {
    float x[N];
    LoadPack<N>(row + i, x);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      x[k] = expf(x[k] - row_largest) * factor - shared_part;
      if (i + k == target) x[k] -= of_label;
      if (i + k >= vocabulary) x[k] = 0;
    }
    StorePack<N>(x, row + i);
  }
}

}  // namespace

cudaError_t CrossEntropy(Storage storage, void* logits, const int64_t* targets, int64_t rows,
                         int64_t vocabulary, int64_t padded, LossTerms terms, float scale,
                         const double* loss_scale, bool gradients, double* losses_n3, cudaStream_t stream) {
  constexpr int kPack = 8;
  if (rows == 0) return cudaSuccess;
  return WithStorage(storage, [&]<typename T>() {
    const auto launch = [&](auto kernel) {
      return Launch(kernel, static_cast<unsigned>(rows), kThreads, stream, static_cast<T*>(logits), targets,
                    vocabulary, padded, terms, scale, loss_scale, gradients, losses_n3);
    };
    const bool wide = padded % kPack == 0 && Aligned(logits);
    return wide ? launch(CrossEntropyKernel<T, kPack>) : launch(CrossEntropyKernel<T, 1>);
  });
}

}  // namespace trainwright::cuda
