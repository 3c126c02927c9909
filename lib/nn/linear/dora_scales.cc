#include "lib/nn/linear/dora_scales.h"

#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/profile_scope.h"
#include "lib/nn/cpu/parallel.h"
#include "lib/nn/linear/matmul.h"
#include "lib/nn/ops.h"

namespace trainwright {
namespace {

/// Of W + s B A at once.
constexpr int64_t kMostElements = int64_t{1} << 23;

constexpr double kLeastNorm = std::numeric_limits<float>::min();

int64_t RowsAtOnce(const Parameter& weight) {
  return std::clamp<int64_t>(kMostElements / weight.shape[1], 1, weight.shape[0]);
}

at::Tensor Part(const at::Tensor& memory, int64_t rows, int64_t columns) {
  return memory.narrow(0, 0, rows * columns).view({rows, columns});
}

/// Adds the sums of the columns of a b. Each product is rounded to fp32 before it is added: it is stored, so
/// that no processor makes one operation of the two.
template <typename T>
void AddColumnProducts(const at::Tensor& a_no, const at::Tensor& b_no, float* sums_o) {
  constexpr int64_t kRows = 1024;  // of which the blocks of sums are cut
  const int64_t rows = a_no.size(0), width = a_no.size(1), a_stride = a_no.stride(0),
                b_stride = b_no.stride(0);
  const T *a = a_no.const_data_ptr<T>(), *b = b_no.const_data_ptr<T>();
  const auto add_rows = [&](float* sums, int64_t begin, int64_t end) {
    std::vector<float> products(static_cast<size_t>(width));
    for (int64_t row = begin; row < end; ++row) {
      const T *of_a = a + row * a_stride, *of_b = b + row * b_stride;
      for (int64_t i = 0; i < width; ++i) {
        products[static_cast<size_t>(i)] = static_cast<float>(of_a[i]) * static_cast<float>(of_b[i]);
      }
      cpu::BestKernels().column_sums(cpu::Codec::kFp32, products.data(), width, width, sums, 0, 1);
    }
  };
  const auto add = [&](const float* sums) {
    for (int64_t i = 0; i < width; ++i) sums_o[i] += sums[i];
  };
  for (int64_t first = 0; first < rows; first += kRows) {
    cpu::SumOverRowBlocks(
        std::min(kRows, rows - first), width,
        [&](float* sums, int64_t begin, int64_t end) { add_rows(sums, first + begin, first + end); }, add);
  }
}

}  // namespace

DoraScales::DoraScales(const FlatParameters& parameters, std::vector<DoraMatrix> matrices, double scaling)
    : matrices_(std::move(matrices)), scaling_(scaling) {
  int64_t outputs = 0, rows = 0, of_a = 0, of_b = 0;
  for (const DoraMatrix& matrix : matrices_) {
    const Parameter& weight = parameters.all()[matrix.weight];
    const int64_t rank = parameters.all()[matrix.a].shape[0], at_once = RowsAtOnce(weight);
    outputs += weight.shape[0];
    rows = std::max(rows, at_once * weight.shape[1]);
    of_a = std::max(of_a, rank * weight.shape[1]);
    of_b = std::max(of_b, at_once * rank);
  }
  const at::TensorOptions options = parameters.values().options().dtype(at::kFloat);
  values_ = at::zeros({2 * outputs}, options);
  rows_ = at::empty({rows}, options);
  a_ = at::empty({of_a}, options);
  b_ = at::empty({of_b}, options);
  int64_t place = 0;
  for (const DoraMatrix& matrix : matrices_) {
    const int64_t size = parameters.all()[matrix.weight].shape[0];
    norms_.push_back(values_.narrow(0, place, size));
    scales_.push_back(values_.narrow(0, outputs + place, size));
    place += size;
  }
}

void DoraScales::Refresh(FlatParameters& parameters) {
  const ProfileScope scope("dora_scales", ProfilePart::kOther);
  for (size_t i = 0; i < matrices_.size(); ++i) {
    const DoraMatrix& matrix = matrices_[i];
    const Parameter& weight = parameters.all()[matrix.weight];
    const int64_t outputs = weight.shape[0], inputs = weight.shape[1],
                  rank = parameters.all()[matrix.a].shape[0], at_once = RowsAtOnce(weight);
    const at::Tensor weights = parameters.ComputeMatrix(matrix.weight, outputs, inputs);
    at::Tensor a = Part(a_, rank, inputs);
    a.copy_(parameters.ComputeMatrix(matrix.a, rank, inputs));
    const at::Tensor all_b = parameters.ComputeMatrix(matrix.b, outputs, rank);
    for (int64_t row = 0; row < outputs; row += at_once) {
      const int64_t rows = std::min(at_once, outputs - row);
      at::Tensor b = Part(b_, rows, rank), sum = Part(rows_, rows, inputs);
      b.copy_(all_b.narrow(0, row, rows)).mul_(scaling_);
      sum.copy_(weights.narrow(0, row, rows));
      Matmul(b, a, sum, /*accumulate=*/true);
      at::Tensor norms = norms_[i].narrow(0, row, rows);
      at::linalg_vector_norm_out(norms, sum, 2, at::IntArrayRef({1}));
    }
    norms_[i].clamp_min_(kLeastNorm);
    at::div_out(scales_[i], parameters.all()[matrix.magnitude].value, norms_[i]);
    scales_[i].masked_fill_(norms_[i].le(kLeastNorm), 0);
  }
}

void DoraScales::StartMagnitudes(FlatParameters* parameters) const {
  for (size_t i = 0; i < matrices_.size(); ++i) parameters->Assign(matrices_[i].magnitude, norms_[i]);
}

int64_t DoraScales::bytes() const {
  return static_cast<int64_t>(values_.nbytes() + rows_.nbytes() + a_.nbytes() + b_.nbytes());
}

void ScaleColumns(const at::Tensor& scale_o, at::Tensor& y_no) {
  constexpr int64_t kRows = 256;  // of which torch makes an fp32 copy on a CPU
  if (!y_no.is_cpu() || y_no.scalar_type() == at::kFloat) {
    y_no.mul_(scale_o);
    return;
  }
  for (int64_t row = 0; row < y_no.size(0); row += kRows) {
    y_no.narrow(0, row, std::min(kRows, y_no.size(0) - row)).mul_(scale_o);
  }
}

void ScaleColumnsBackward(const at::Tensor& scale_o, const at::Tensor& norm_o, const at::Tensor& dy_no,
                          at::Tensor& y_no, at::Tensor& d_m_o) {
  if (!y_no.is_cpu()) return ops::ScaleColumnsBackward(scale_o, norm_o, dy_no, y_no, d_m_o);
  TRAINWRIGHT_CHECK(dy_no.scalar_type() == y_no.scalar_type() && dy_no.stride(1) == 1 && y_no.stride(1) == 1);
  at::Tensor sums_o = at::zeros_like(d_m_o);
  auto* sums = sums_o.mutable_data_ptr<float>();
  if (y_no.scalar_type() == at::kFloat) {
    AddColumnProducts<float>(y_no, dy_no, sums);
  } else {
    AddColumnProducts<at::BFloat16>(y_no, dy_no, sums);
  }
  d_m_o.add_(sums_o.div_(norm_o));
  y_no.copy_(dy_no);
  ScaleColumns(scale_o, y_no);
}

}  // namespace trainwright
