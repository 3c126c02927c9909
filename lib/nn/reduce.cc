#include "lib/nn/reduce.h"

#include <algorithm>

#include "lib/nn/cpu/parallel.h"

namespace trainwright {
namespace {

constexpr int64_t kBlock = kReductionBlock;

}  // namespace

void SquareSum::Add(const at::Tensor& values) {
  const float* data = values.const_data_ptr<float>();
  const float* const end = data + values.numel();
  if (!begun_.empty()) {
    const int64_t missing = kBlock - static_cast<int64_t>(begun_.size());
    const float* const taken = data + std::min<int64_t>(missing, end - data);
    begun_.insert(begun_.end(), data, taken);
    data = taken;
    if (static_cast<int64_t>(begun_.size()) < kBlock) return;
    full_blocks_ += cpu::BestKernels().sum_of_squares(begun_.data(), 0, kBlock);
    begun_.clear();
  }
  std::vector<double> sums(static_cast<size_t>((end - data) / kBlock));
  at::parallel_for(0, static_cast<int64_t>(sums.size()), 1, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      sums[block] = cpu::BestKernels().sum_of_squares(data, block * kBlock, (block + 1) * kBlock);
    }
  });
  for (const double sum : sums) full_blocks_ += sum;
  begun_.assign(data + static_cast<int64_t>(sums.size()) * kBlock, end);
}

double SquareSum::total() const {
  if (begun_.empty()) return full_blocks_;
  return full_blocks_ +
         cpu::BestKernels().sum_of_squares(begun_.data(), 0, static_cast<int64_t>(begun_.size()));
}

double SumOfSquares(const at::Tensor& values) {
  SquareSum sum;
  sum.Add(values);
  return sum.total();
}

}  // namespace trainwright
