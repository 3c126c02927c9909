#include "lib/nn/linear/block_matmul.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/add.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <ostream>
#include <string>
#include <tuple>

#include "lib/nn/linear/block_operands.h"
#include "lib/nn/linear/few_rows_product.h"
#include "lib/nn/linear/micro_kernel.h"
#include "tests/nn/reference.h"

namespace trainwright {
namespace {

using test::RandomTensor;

struct Shape {
  int64_t rows, depth, columns;
};

void PrintTo(const Shape& shape, std::ostream* out) {
  *out << shape.rows << 'x' << shape.depth << 'x' << shape.columns;
}

enum class Kind { kFp32, kBf16, kWidened };

/// x [rows, depth] w [columns, depth]^T.
struct Operands {
  static Operands Random(const Shape& shape, Kind kind) {
    const auto type = kind == Kind::kFp32 ? at::kFloat : at::kBFloat16;
    return {.kind = kind,
            .x = RandomTensor({shape.rows, shape.depth}, 1).to(type),
            .w = RandomTensor({shape.columns, shape.depth}, 2).to(type)};
  }
  cpu::BlockProduct Product(const at::Tensor& rows, bool turned, at::Tensor& out, bool accumulate) const {
    return {.m = rows.size(turned ? 1 : 0),
            .n = w.size(0),
            .k = w.size(1),
            .bf16 = kind != Kind::kFp32,
            .a = {.data = rows.const_data_ptr(), .stride = rows.stride(0), .transposed = turned},
            .b = {.data = w.const_data_ptr(), .stride = w.stride(0), .transposed = true},
            .out = out.mutable_data_ptr(),
            .out_stride = out.stride(0),
            .out_bf16 = out.scalar_type() == at::kBFloat16,
            .accumulate = accumulate,
            .widens = kind == Kind::kWidened};
  }
  /// The product by the library's micro-kernels, block of terms by block of terms.
  at::Tensor ByMicroKernels(const at::Tensor& out, bool accumulate = false) const {
    if (kind == Kind::kBf16) return ByPackedRows(out, accumulate);
    const int64_t rows = x.size(0), depth = x.size(1), columns = w.size(0);
    const at::Tensor left = Padded(x), right = Padded(w).t().contiguous();
    at::Tensor total;
    if (accumulate && out.scalar_type() == at::kFloat) total = out;
    for (int64_t part = 0; part < depth; part += cpu::kPartDepth) {
      const int64_t end = std::min(part + cpu::kPartDepth, left.size(1));
      const at::Tensor sums = at::zeros({left.size(0), right.size(1)}, at::kFloat);
      for (int64_t begin = part; begin < end; begin += cpu::kBlockDepth) {
        cpu::Multiply({.rows = left.size(0),
                       .columns = right.size(1),
                       .depth = std::min(cpu::kBlockDepth, end - begin),
                       .left = left.const_data_ptr<float>() + begin,
                       .left_stride = left.stride(0),
                       .right = right.const_data_ptr<float>() + begin * right.stride(0),
                       .right_stride = right.stride(0),
                       .out = sums.mutable_data_ptr<float>(),
                       .out_stride = sums.stride(0),
                       .accumulate = begin > part});
      }
      cpu::ReleaseMicroKernels(/*bf16=*/false);
      const at::Tensor of_part = sums.narrow(0, 0, rows).narrow(1, 0, columns);
      total = total.defined() ? at::add(total, of_part) : of_part;
    }
    if (out.scalar_type() == at::kFloat) return total;
    return (accumulate ? at::add(out.to(at::kFloat), total) : total).to(at::kBFloat16);
  }
  /// Too many rows to be few, and too many columns and terms to be taken where they lie, all zeros: bf16 is
  /// packed for the micro-kernels then.
  at::Tensor ByPackedRows(const at::Tensor& out, bool accumulate) const {
    const int64_t rows = x.size(0), depth = x.size(1), columns = w.size(0);
    const int64_t more_rows = std::max(rows, cpu::kMostFewRows + 1),
                  more_depth = std::max<int64_t>(depth + depth % 2, 66),
                  more_columns = std::max<int64_t>(columns, 65);
    Operands padded = {.kind = kind,
                       .x = at::zeros({more_rows, more_depth}, x.options()),
                       .w = at::zeros({more_columns, more_depth}, w.options())};
    padded.x.narrow(0, 0, rows).narrow(1, 0, depth).copy_(x);
    padded.w.narrow(0, 0, columns).narrow(1, 0, depth).copy_(w);
    at::Tensor all = at::zeros({more_rows, more_columns}, out.options());
    all.narrow(0, 0, rows).narrow(1, 0, columns).copy_(out);
    EXPECT_TRUE(cpu::BlockMatmul(padded.Product(padded.x, false, all, accumulate)));
    return all.narrow(0, 0, rows).narrow(1, 0, columns);
  }
  /// In fp32, with zeros up to the micro-kernels' units.
  static at::Tensor Padded(const at::Tensor& matrix) {
    const at::Tensor padded = at::zeros(
        {cpu::RoundUp(matrix.size(0), cpu::kRowUnit), cpu::RoundUp(matrix.size(1), cpu::kDepthUnit)},
        at::kFloat);
    padded.narrow(0, 0, matrix.size(0)).narrow(1, 0, matrix.size(1)).copy_(matrix);
    return padded;
  }
  at::Tensor AsTheyLie(at::Tensor out, bool accumulate = false) const {
    EXPECT_TRUE(cpu::BlockMatmul(Product(x, false, out, accumulate)));
    return out;
  }
  /// Stored as the transpose.
  at::Tensor Turned(at::Tensor out, bool accumulate = false) const {
    const at::Tensor turned = x.t().contiguous();
    EXPECT_TRUE(cpu::BlockMatmul(Product(turned, true, out, accumulate)));
    return out;
  }

  /// As the gradient of a weight has them: both as [depth, ...], in rows of a wider matrix.
  at::Tensor InColumns(at::Tensor out, bool accumulate = false) const {
    const auto columns_of = [](const at::Tensor& matrix) {
      const at::Tensor wide = at::zeros({matrix.size(1), matrix.size(0) + 6}, matrix.options());
      const at::Tensor columns = wide.narrow(1, 2, matrix.size(0));
      columns.copy_(matrix.t());
      return columns;
    };
    const at::Tensor x_columns = columns_of(x), w_columns = columns_of(w);
    cpu::BlockProduct product = Product(x_columns, true, out, accumulate);
    product.b = {.data = w_columns.const_data_ptr(), .stride = w_columns.stride(0)};
    EXPECT_TRUE(cpu::BlockMatmul(product));
    return out;
  }

  Kind kind;
  at::Tensor x, w;
};

using Case = std::tuple<Shape, Kind>;

class BlockMatmulTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!cpu::HasMicroKernels(std::get<1>(GetParam()) == Kind::kBf16)) GTEST_SKIP() << "no such instructions";
  }
  /// Of a way to compute the product, into fp32 and bf16, in place of what is there and added to it.
  static void ExpectTheBitsOfMicroKernels(at::Tensor (Operands::*compute)(at::Tensor, bool) const) {
    const auto [shape, kind] = GetParam();
    const Operands operands = Operands::Random(shape, kind);
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      const at::Tensor out = RandomTensor({shape.rows, shape.columns}, 3).to(type);
      for (const bool accumulate : {false, true}) {
        const at::Tensor expected = operands.ByMicroKernels(out, accumulate);
        EXPECT_TRUE((operands.*compute)(out.clone(), accumulate).equal(expected));
      }
    }
  }
};

TEST_P(BlockMatmulTest, OperandsAsTheyLieHaveTheBitsOfMicroKernels) {
  ExpectTheBitsOfMicroKernels(&Operands::AsTheyLie);
}

TEST_P(BlockMatmulTest, ATransposedOperandHasTheBitsOfMicroKernels) {
  ExpectTheBitsOfMicroKernels(&Operands::Turned);
}

TEST_P(BlockMatmulTest, WritesNothingBesideTheResult) {
  const auto [shape, kind] = GetParam();
  const Operands operands = Operands::Random(shape, kind);
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor all = at::full({shape.rows + 2, shape.columns + 5}, 7.0f, type);
    const at::Tensor result = all.narrow(0, 1, shape.rows).narrow(1, 2, shape.columns);
    operands.AsTheyLie(result);
    operands.Turned(result);
    result.fill_(7.0f);
    EXPECT_TRUE(all.eq(7.0f).all().item<bool>());
  }
}

// Their depth is a number of tokens.
TEST(BlockMatmulTest, OperandsInColumnsOfAnyDepthHaveTheBitsOfMicroKernels) {
  for (const Kind kind : {Kind::kFp32, Kind::kBf16, Kind::kWidened}) {
    if (!cpu::HasMicroKernels(kind == Kind::kBf16)) GTEST_SKIP() << "no such instructions";
    for (const int64_t depth : {65, 513, 1030}) {
      const Operands operands = Operands::Random({151, depth, 70}, kind);
      const at::Tensor out = RandomTensor({151, 70}, 3);
      for (const bool accumulate : {false, true}) {
        EXPECT_TRUE(
            operands.InColumns(out.clone(), accumulate).equal(operands.ByMicroKernels(out, accumulate)))
            << depth;
      }
    }
  }
}

std::string CaseName(const testing::TestParamInfo<Case>& info) {
  const auto& [shape, kind] = info.param;
  const char* names[] = {"fp32", "bf16", "widened"};
  return std::to_string(shape.rows) + "x" + std::to_string(shape.depth) + "x" +
         std::to_string(shape.columns) + "_" + names[static_cast<int>(kind)];
}

// Tiles of all widths and what is left of them; depths of several parts; as many rows as are few; few columns
// or terms.
INSTANTIATE_TEST_SUITE_P(
    Shapes, BlockMatmulTest,
    testing::Combine(testing::Values(Shape{32, 384, 384}, Shape{17, 96, 1000}, Shape{40, 1026, 61},
                                     Shape{64, 4610, 20}, Shape{65, 34, 259}, Shape{129, 640, 49},
                                     Shape{cpu::kMostFewRows, 130, 50}, Shape{600, 384, 8},
                                     Shape{530, 1030, 61}, Shape{600, 8, 250}, Shape{650, 6, 70},
                                     Shape{550, 1030, 80}, Shape{600, 4610, 96}, Shape{147, 600, 112},
                                     Shape{600, 1030, 16}, Shape{530, 1030, 48}),
                     testing::Values(Kind::kFp32, Kind::kBf16, Kind::kWidened)),
    CaseName);

TEST(BlockMatmulTest, BitsDependOnNoOtherRowsNorOnThreads) {
  if (!cpu::HasMicroKernels(false)) GTEST_SKIP() << "no such instructions";
  Operands operands = Operands::Random({cpu::kMostFewRows + 88, 700, 260}, Kind::kFp32);
  const at::Tensor all = operands.AsTheyLie(at::full({operands.x.size(0), 260}, NAN));
  operands.x = operands.x.narrow(0, 0, 37);
  const int threads = at::get_num_threads();
  for (const int count : {1, 3}) {
    at::set_num_threads(count);
    EXPECT_TRUE(operands.AsTheyLie(at::full({37, 260}, NAN)).equal(all.narrow(0, 0, 37)));
  }
  at::set_num_threads(threads);
}

TEST(BlockMatmulTest, ValuesThatAreNotFiniteReachTheirRowOrColumnAlone) {
  if (!cpu::HasMicroKernels(false)) GTEST_SKIP() << "no such instructions";
  const Operands operands = Operands::Random({33, 200, 90}, Kind::kFp32);
  operands.x[32][199] = std::numeric_limits<float>::infinity();
  operands.w[89][0] = NAN;
  for (const bool turned : {false, true}) {
    const at::Tensor out = at::full({33, 90}, 0.0);
    const at::Tensor finite = (turned ? operands.Turned(out) : operands.AsTheyLie(out)).isfinite();
    EXPECT_EQ(finite.logical_not().sum().item<int64_t>(), 33 + 90 - 1);
  }
}

TEST(BlockMatmulTest, FewRowsLeaveWhatLiesOtherwise) {
  const Operands operands = Operands::Random({32, 384, 384}, Kind::kFp32);
  at::Tensor out = at::full({32, 384}, 5.0f);
  cpu::BlockProduct product = operands.Product(operands.x, false, out, false);
  product.a.transposed = true;
  EXPECT_FALSE(cpu::MultiplyFewRows(product));
  product.a.transposed = product.b.transposed = false;
  EXPECT_FALSE(cpu::MultiplyFewRows(product));
  product.b.transposed = true;
  product.m = cpu::kMostFewRows + 1;
  EXPECT_FALSE(cpu::MultiplyFewRows(product));
  EXPECT_TRUE(out.eq(5.0f).all().item<bool>());
}

}  // namespace
}  // namespace trainwright
