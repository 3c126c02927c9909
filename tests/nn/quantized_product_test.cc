// Products with quantised weights against the dequantised weights in double.
#include "lib/nn/linear/quantized_product.h"

#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "lib/nn/linear/matmul.h"
#include "lib/nn/linear/nf4.h"
#include "lib/nn/linear/thin_product.h"
#include "tests/nn/reference.h"

namespace trainwright {
namespace {

using test::RandomTensor;

constexpr WeightFormat kFormats[] = {WeightFormat::kNf4, WeightFormat::kInt8};
const Numerics kBf16{Precision::kBf16, at::kBFloat16};

std::unique_ptr<QuantizedMatrix> Matrix(WeightFormat format, int64_t rows, int64_t depth,
                                        uint64_t stream = 0) {
  auto matrix = NewQuantizedMatrix(format, rows, depth, at::Device(at::kCPU));
  matrix->Quantize(RandomTensor({rows, depth}, stream));
  return matrix;
}

at::Tensor Read(const QuantizedMatrix& matrix, int64_t first, int64_t rows,
                const Numerics& numerics = test::kFp32) {
  at::Tensor out = at::empty({rows, matrix.depth()}, numerics.storage);
  matrix.DequantizeRows(numerics, first, out);
  return out;
}
at::Tensor Read(const QuantizedMatrix& matrix) {
  return Read(matrix, 0, matrix.rows());
}

at::Tensor Product(const QuantizedMatrix& matrix, const at::Tensor& a,
                   const Numerics& numerics = test::kFp32) {
  at::Tensor out = at::full({a.size(0), matrix.rows()}, -1, numerics.storage);
  MultiplyQuantized(numerics, {&matrix}, a, out);
  return out;
}

/// Whether each element is within `tolerance` of the product in double, relative to the sum of magnitudes.
testing::AssertionResult IsProduct(const at::Tensor& out, const at::Tensor& a, const at::Tensor& weights,
                                   double tolerance) {
  const at::Tensor a_exact = a.to(at::kDouble), w_exact = weights.to(at::kDouble);
  const at::Tensor exact = a_exact.matmul(w_exact.t()), scale = a_exact.abs().matmul(w_exact.abs().t());
  const double worst = out.to(at::kDouble).sub(exact).abs().div(scale).max().item<double>();
  if (worst <= tolerance) return testing::AssertionSuccess();
  return testing::AssertionFailure() << worst << " of the sum of magnitudes, more than " << tolerance;
}

/// A variant of the kernels.
using Kernel = void (*)(const QuantizedMatrix& matrix, const cpu::ThinRows& rows, int64_t begin, int64_t end);

template <auto kInt8, auto kNf4>
void Run(const QuantizedMatrix& matrix, const cpu::ThinRows& rows, int64_t begin, int64_t end) {
  const std::vector<at::Tensor> parts = matrix.parts();
  if (parts.size() == 2) {
    return kInt8({rows, parts[0].const_data_ptr<int8_t>(), parts[1].const_data_ptr<float>()}, begin, end);
  }
  kNf4({rows, parts[0].const_data_ptr<uint8_t>(), parts[1].const_data_ptr<uint8_t>(),
        parts[2].const_data_ptr<float>(), *parts[3].const_data_ptr<float>()},
       begin, end);
}

constexpr Kernel kKernels[] = {Run<cpu::ComputeInt8Product, cpu::ComputeNf4Product>,
                               Run<cpu::ComputeInt8ProductForAvx2, cpu::ComputeNf4ProductForAvx2>,
                               Run<cpu::ComputeInt8ProductByElement, cpu::ComputeNf4ProductByElement>};

cpu::ThinRows RowsOf(const at::Tensor& a, at::Tensor& out) {
  return {a.size(0), a.size(1), a.const_data_ptr<float>(), out.mutable_data_ptr<float>(), out.stride(0)};
}

TEST(QuantizedThinProductTest, EveryInstructionSetGivesTheProductInDoublePrecision) {
  for (const WeightFormat format : kFormats) {
    for (const int64_t depth : {1, 15, 64, 67, 128, 320}) {
      if (format == WeightFormat::kNf4 && depth % 64 != 0) continue;
      const auto matrix = Matrix(format, 21, depth);
      for (const int64_t rows : {1, 2, 3, 5, 8, 16}) {
        const at::Tensor a = RandomTensor({rows, depth}, 1);
        for (const Kernel kernel : kKernels) {
          at::Tensor out = at::empty({rows, 21});
          kernel(*matrix, RowsOf(a, out), 0, 21);
          EXPECT_TRUE(IsProduct(out, a, Read(*matrix), 1e-6))
              << WeightFormatName(format) << ", depth " << depth << ", " << rows << " rows";
        }
      }
    }
  }
}

TEST(QuantizedThinProductTest, ARowsBitsDependNeitherOnOtherRowsNorOnTheRange) {
  for (const WeightFormat format : kFormats) {
    const auto matrix = Matrix(format, 37, 192);
    const at::Tensor a = RandomTensor({cpu::kMostThinRows, 192}, 1);
    for (const Kernel kernel : kKernels) {
      at::Tensor together = at::empty({cpu::kMostThinRows, 37});
      kernel(*matrix, RowsOf(a, together), 0, 37);
      for (int64_t row = 0; row < cpu::kMostThinRows; ++row) {
        at::Tensor alone = at::empty({1, 37});
        for (int64_t n = 0; n < 37; ++n) kernel(*matrix, RowsOf(a.narrow(0, row, 1), alone), n, n + 1);
        ASSERT_TRUE(at::equal(alone[0], together[row])) << WeightFormatName(format) << ", row " << row;
      }
    }
  }
}

TEST(QuantizedThinProductTest, Nf4HasTheBitsOfTheDequantisedWeights) {
  const auto matrix = Matrix(WeightFormat::kNf4, 50, 256);
  for (const int64_t rows : {1, 7, 16}) {
    const at::Tensor a = RandomTensor({rows, 256}, 1);
    at::Tensor expected = at::empty({rows, 50});
    Matmul(a, Read(*matrix).t(), expected);
    EXPECT_TRUE(at::equal(Product(*matrix, a), expected)) << rows;
  }
}

TEST(QuantizedProductTest, IsTheProductInDoublePrecisionOfAnyNumberOfRows) {
  for (const WeightFormat format : kFormats) {
    for (const int64_t depth : {50, 192}) {
      const auto matrix = Matrix(format, 83, depth);
      for (const int64_t rows : {1, 16, 17, 32, 33, 200}) {
        const at::Tensor a = RandomTensor({rows, depth}, 1);
        EXPECT_TRUE(IsProduct(Product(*matrix, a), a, Read(*matrix), 1e-6))
            << WeightFormatName(format) << ", depth " << depth << ", " << rows << " rows";
      }
    }
  }
}

TEST(QuantizedProductTest, InBf16EachResultIsRoundedOnce) {
  // A weight in bf16 is off by 2^-9 of itself at most, and a result by 2^-9 of itself.
  for (const WeightFormat format : kFormats) {
    const auto matrix = Matrix(format, 83, 192);
    for (const int64_t rows : {3, 40}) {
      const at::Tensor a = RandomTensor({rows, 192}, 1).to(at::kBFloat16);
      EXPECT_TRUE(IsProduct(Product(*matrix, a, kBf16), a, Read(*matrix), 0x1p-8))
          << WeightFormatName(format) << ", " << rows << " rows";
    }
  }
}

TEST(QuantizedProductTest, PartsOfALargeMatrixGiveTheBitsOfTheWhole) {
  // More than two parts are dequantised apart.
  constexpr int64_t kColumns = 2200, kDepth = 2048;
  for (const WeightFormat format : kFormats) {
    const auto matrix = Matrix(format, kColumns, kDepth);
    const at::Tensor a = RandomTensor({40, kDepth}, 1);
    at::Tensor expected = at::empty({40, kColumns});
    Matmul(a, Read(*matrix).t(), expected);
    EXPECT_TRUE(at::equal(Product(*matrix, a), expected)) << WeightFormatName(format);
  }
}

TEST(QuantizedProductTest, MatricesOneBelowTheOtherAreOne) {
  for (const WeightFormat format : kFormats) {
    const auto first = Matrix(format, 30, 70, 1), second = Matrix(format, 5, 70, 2);
    const at::Tensor whole = at::cat({Read(*first), Read(*second)});
    for (const int64_t rows : {2, 50}) {
      const at::Tensor a = RandomTensor({rows, 70}, 3);
      at::Tensor out = at::empty({rows, 35});
      MultiplyQuantized(test::kFp32, {first.get(), second.get()}, a, out);
      EXPECT_TRUE(IsProduct(out, a, whole, 1e-6)) << WeightFormatName(format) << ", " << rows << " rows";
    }
  }
}

TEST(QuantizedProductTest, ThreadsChangeNoBit) {
  const int threads = at::get_num_threads();
  for (const WeightFormat format : kFormats) {
    for (const int64_t depth : {200, 1024}) {
      const auto matrix = Matrix(format, 300, depth);
      for (const int64_t rows : {1, 9, 40}) {
        const at::Tensor a = RandomTensor({rows, depth}, 1);
        at::set_num_threads(1);
        const at::Tensor one = Product(*matrix, a);
        at::set_num_threads(3);
        EXPECT_TRUE(at::equal(Product(*matrix, a), one)) << WeightFormatName(format) << ", " << rows;
        at::set_num_threads(threads);
      }
    }
  }
}

TEST(QuantizedMatrixTest, RowsAreThoseOfTheWhole) {
  for (const WeightFormat format : kFormats) {
    for (const int64_t depth : {7, 50, 64}) {  // rows of NF4 that begin inside a block of codes, or a byte
      const auto matrix = Matrix(format, 23, depth);
      const at::Tensor whole = Read(*matrix);
      for (const int64_t first : {0, 1, 5, 22}) {
        EXPECT_TRUE(at::equal(Read(*matrix, first, 23 - first), whole.slice(0, first)));
        EXPECT_TRUE(at::equal(Read(*matrix, first, 1), whole.slice(0, first, first + 1)));
      }
    }
  }
}

TEST(QuantizedProductTest, ThreadsChangeNoBitOfSmallMatrices) {
  constexpr int64_t kDepth = 32;  // of which NF4 has no kernel for few rows
  const int before = at::get_num_threads();
  for (const int64_t columns : {32, 64, 128}) {
    const auto matrix = Matrix(WeightFormat::kNf4, columns, kDepth);
    for (const int64_t rows : {17, 20, 33, 100}) {
      const at::Tensor a = RandomTensor({rows, kDepth}, 3);
      at::Tensor one = at::empty({rows, columns}, at::kFloat), several = at::empty_like(one);
      at::set_num_threads(1);
      MultiplyQuantized(test::kFp32, {matrix.get()}, a, one);
      for (const int threads : {2, 3, 4}) {
        at::set_num_threads(threads);
        MultiplyQuantized(test::kFp32, {matrix.get()}, a, several);
        EXPECT_TRUE(at::equal(several, one)) << rows << " x " << columns << ", threads " << threads;
      }
    }
  }
  at::set_num_threads(before);
}

}  // namespace
}  // namespace trainwright
