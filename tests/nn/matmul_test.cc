#include "lib/nn/linear/matmul.h"

#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/mm.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "lib/nn/linear/block_matmul.h"
#include "tests/nn/reference.h"

namespace trainwright {
namespace {

using test::RandomTensor;

struct Shape {
  int64_t m, k, n;
};

void PrintTo(const Shape& shape, std::ostream* out) {
  *out << shape.m << 'x' << shape.k << 'x' << shape.n;
}

enum class Layout { kPlain, kTransposed };
void PrintTo(Layout layout, std::ostream* out) {
  *out << (layout == Layout::kPlain ? "plain" : "transposed");
}

/// A matrix of normal numbers in the wanted layout, inside a larger one so that rows are not contiguous.
at::Tensor Operand(int64_t rows, int64_t columns, Layout layout, at::ScalarType dtype, uint64_t stream) {
  if (layout == Layout::kTransposed) return Operand(columns, rows, Layout::kPlain, dtype, stream).t();
  return RandomTensor({rows, columns + 6}, stream).to(dtype).narrow(1, 2, columns);
}

at::Tensor Exact(const at::Tensor& a, const at::Tensor& b) {
  return at::mm(a.to(at::kDouble), b.to(at::kDouble));
}

using Case = std::tuple<Shape, Layout, Layout, at::ScalarType>;
class MatmulTest : public testing::TestWithParam<Case> {};

TEST_P(MatmulTest, EqualsTheProductInDoublePrecision) {
  const auto [shape, a_layout, b_layout, dtype] = GetParam();
  const at::Tensor a = Operand(shape.m, shape.k, a_layout, dtype, 1),
                   b = Operand(shape.k, shape.n, b_layout, dtype, 2);
  at::Tensor out = at::full({shape.m, shape.n}, NAN, dtype);
  Matmul(a, b, out);
  EXPECT_LT(test::RelativeDifference(out, Exact(a, b)), dtype == at::kFloat ? 1e-6 : 3e-3);
}

TEST_P(MatmulTest, AddsIntoFp32WithoutRoundingTheProduct) {
  const auto [shape, a_layout, b_layout, dtype] = GetParam();
  const at::Tensor a = Operand(shape.m, shape.k, a_layout, dtype, 1),
                   b = Operand(shape.k, shape.n, b_layout, dtype, 2);
  const at::Tensor before = RandomTensor({shape.m, shape.n}, 3);
  at::Tensor out = before.clone();
  Matmul(a, b, out, /*accumulate=*/true);
  EXPECT_LT(test::RelativeDifference(out, Exact(a, b).add(before)), 1e-6);
}

TEST_P(MatmulTest, WidenedOperandsGiveTheBitsOfFp32) {
  const auto [shape, a_layout, b_layout, dtype] = GetParam();
  if (dtype != at::kBFloat16) return;
  const at::Tensor a = Operand(shape.m, shape.k, a_layout, dtype, 1),
                   b = Operand(shape.k, shape.n, b_layout, dtype, 2);
  const auto multiply = [&](const at::Tensor& left, const at::Tensor& right, at::Tensor& out) {
    const auto view = [](const at::Tensor& tensor, Layout layout) {
      const bool transposed = layout == Layout::kTransposed;
      return cpu::MatrixView{tensor.const_data_ptr(), tensor.stride(transposed ? 1 : 0), transposed};
    };
    const bool bf16 = left.scalar_type() == at::kBFloat16;
    return cpu::BlockMatmul({.m = shape.m,
                             .n = shape.n,
                             .k = shape.k,
                             .bf16 = bf16,
                             .a = view(left, a_layout),
                             .b = view(right, b_layout),
                             .out = out.mutable_data_ptr(),
                             .out_stride = shape.n,
                             .widens = bf16});
  };
  at::Tensor widened = at::full({shape.m, shape.n}, NAN), fp32 = widened.clone();
  const bool in_blocks = multiply(a, b, widened);
  const auto wide = [](const at::Tensor& tensor, Layout layout) {
    return layout == Layout::kPlain ? tensor.to(at::kFloat).contiguous()
                                    : tensor.t().to(at::kFloat).contiguous().t();
  };
  EXPECT_EQ(multiply(wide(a, a_layout), wide(b, b_layout), fp32), in_blocks);
  if (in_blocks) {
    EXPECT_TRUE(widened.equal(fp32));
  }
}

std::string CaseName(const testing::TestParamInfo<Case>& info) {
  const auto& [shape, a_layout, b_layout, dtype] = info.param;
  const auto name = [](Layout layout) { return layout == Layout::kPlain ? "_plain" : "_transposed"; };
  return std::to_string(shape.m) + "x" + std::to_string(shape.k) + "x" + std::to_string(shape.n) +
         name(a_layout) + name(b_layout) + (dtype == at::kFloat ? "_fp32" : "_bf16");
}

INSTANTIATE_TEST_SUITE_P(Shapes, MatmulTest,
                         testing::Combine(testing::Values(Shape{64, 64, 64}, Shape{1, 300, 1000},
                                                          Shape{130, 514, 66}, Shape{77, 100, 51},
                                                          Shape{8, 1030, 70}, Shape{200, 34, 129},
                                                          Shape{3, 2, 5}, Shape{65, 33, 127},
                                                          Shape{20, 5000, 65}, Shape{9, 1030, 4200}),
                                          testing::Values(Layout::kPlain, Layout::kTransposed),
                                          testing::Values(Layout::kPlain, Layout::kTransposed),
                                          testing::Values(at::kFloat, at::kBFloat16)),
                         CaseName);

TEST(MatmulTest, BitsDoNotDependOnThreads) {
  const at::Tensor a = RandomTensor({300, 700}, 1), b = RandomTensor({700, 260}, 2);
  at::Tensor one = at::full({300, 260}, NAN), three = at::full({300, 260}, NAN);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  Matmul(a, b, one);
  at::set_num_threads(3);
  Matmul(a, b, three);
  at::set_num_threads(threads);
  EXPECT_TRUE(one.equal(three));
}

TEST(MatmulTest, NonFiniteInputsReachTheResult) {
  const at::Tensor a = RandomTensor({70, 200}, 1), b = RandomTensor({200, 90}, 2);
  a[3][150].fill_(INFINITY);
  at::Tensor out = at::full({70, 90}, 0.0);
  Matmul(a, b, out);
  EXPECT_EQ(out.isfinite().logical_not().sum().item<int64_t>(), 90);
}

}  // namespace
}  // namespace trainwright
