#include "lib/nn/reduce.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "lib/nn/cpu/parallel.h"

namespace trainwright {

double SumOfSquares(const at::Tensor& values) {
  constexpr int64_t kBlock = 65536;
  const float* data = values.const_data_ptr<float>();
  const int64_t size = values.numel(), blocks = (size + kBlock - 1) / kBlock;
  std::vector<double> sums(blocks);
  at::parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      sums[block] =
          cpu::BestKernels().sum_of_squares(data, block * kBlock, std::min(size, (block + 1) * kBlock));
    }
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace trainwright
