// The rows that the head computes and their labels: a stable selection in two passes over the labels, so that
// the host need not look at them.
#include "lib/nn/cuda/device_code.cuh"
#include "lib/nn/cuda/launch.h"

namespace trainwright::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kOfThread = 4;  // rows, one after the other
constexpr int64_t kOfBlock = kThreads * kOfThread;

/// Of the thread's rows those that have a label.
__device__ inline int32_t CountOwn(const int32_t* labels, int64_t rows, int64_t first) {
  int32_t count = 0;
  for (int64_t row = first; row < first + kOfThread && row < rows; ++row) count += labels[row] >= 0 ? 1 : 0;
  return count;
}

__device__ inline int64_t FirstOfThread() {
  return static_cast<int64_t>(blockIdx.x) * kOfBlock + static_cast<int64_t>(threadIdx.x) * kOfThread;
}

__global__ void __launch_bounds__(kThreads)
    CountHeadRowsKernel(const int32_t* __restrict__ labels, int64_t rows, int32_t* __restrict__ counts) {
  __shared__ int32_t shared[32];
  const int32_t count = CombineBlock(CountOwn(labels, rows, FirstOfThread()), shared, Plus());
  if (threadIdx.x == 0) counts[blockIdx.x] = count;
}

/// \param counts of each block's rows
/// \param selected how many rows are to be taken
__global__ void __launch_bounds__(kThreads)
    HeadRowsKernel(const int32_t* __restrict__ labels, int64_t rows, const int32_t* __restrict__ counts,
                   int64_t selected, int64_t* __restrict__ row_numbers, int64_t* __restrict__ row_labels) {
  __shared__ int32_t shared[32], sums[kThreads];
  int32_t before = 0, all = 0;
  for (unsigned block = threadIdx.x; block < gridDim.x; block += kThreads) {
    all += counts[block];
    if (block < blockIdx.x) before += counts[block];
  }
  all = CombineBlock(all, shared, Plus());
  before = CombineBlock(before, shared, Plus());
  const unsigned thread = threadIdx.x;
  const int64_t first = FirstOfThread();
  const int32_t own = CountOwn(labels, rows, first);
  sums[thread] = own;
  __syncthreads();
  for (unsigned step = 1; step < kThreads; step *= 2) {
    const int32_t earlier = thread >= step ? sums[thread - step] : 0;
    __syncthreads();
    sums[thread] += earlier;
    __syncthreads();
  }
  const int64_t others = selected > all ? selected - all : 0;  // rows without a label that are taken
  int64_t labelled = before + sums[thread] - own;              // before the row
  for (int64_t row = first; row < first + kOfThread && row < rows; ++row) {
    const int32_t label = labels[row];
    const int64_t unlabelled = row - labelled;
    const int64_t place = labelled + (unlabelled < others ? unlabelled : others);
    if ((label >= 0 || unlabelled < others) && place < selected) {
      row_numbers[place] = row;
      row_labels[place] = label;
    }
    labelled += label >= 0 ? 1 : 0;
  }
}

}  // namespace

int64_t HeadRowsBlocks(int64_t rows) {
  return (rows + kOfBlock - 1) / kOfBlock;
}

cudaError_t HeadRows(const int32_t* labels, int64_t rows, int64_t selected, int32_t* counts,
                     int64_t* row_numbers, int64_t* row_labels, cudaStream_t stream) {
  if (selected == 0) return cudaSuccess;
  const auto blocks = static_cast<unsigned>(HeadRowsBlocks(rows));
  const cudaError_t status = Launch(CountHeadRowsKernel, blocks, kThreads, stream, labels, rows, counts);
  if (status != cudaSuccess) return status;
  return Launch(HeadRowsKernel, blocks, kThreads, stream, labels, rows, counts, selected, row_numbers,
                row_labels);
}

}  // namespace trainwright::cuda
