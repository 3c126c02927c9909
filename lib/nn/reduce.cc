#include "lib/nn/reduce.h"

#include <algorithm>

#include "lib/base/error.h"
#include "lib/nn/cpu/parallel.h"
#include "lib/nn/ops.h"

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

void SumSquaresOfBlocks(const std::vector<at::Tensor>& parts, at::Tensor& sums) {
  const auto count = static_cast<int64_t>(parts.size());
  TRAINWRIGHT_CHECK(sums.numel() == count);
  if (!sums.is_cpu()) {
    for (int64_t i = 0; i < count; ++i) {
      at::Tensor sum = sums.narrow(0, i, 1);
      ops::SumOfSquares(parts[static_cast<size_t>(i)], sum);
    }
    return;
  }
  auto* out = sums.mutable_data_ptr<double>();
  at::parallel_for(0, count, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const at::Tensor& part = parts[static_cast<size_t>(i)];
      TRAINWRIGHT_CHECK(part.numel() <= kBlock);
      out[i] = cpu::BestKernels().sum_of_squares(part.const_data_ptr<float>(), 0, part.numel());
    }
  });
}

double SumOfSquares(const at::Tensor& values) {
  SquareSum sum;
  sum.Add(values);
  return sum.total();
}

}  // namespace trainwright
