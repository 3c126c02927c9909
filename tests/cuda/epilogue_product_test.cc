// The host's implementation of the seam towards cuBLASLt, which stands for that library wherever there is no
// GPU: each epilogue against its formula in double, and that it refuses what the library would.
#include "lib/nn/cuda/epilogue_product.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "tests/cuda/kernel_cases.h"
#include "tests/support/cuda_emulation/host_product.h"

namespace trainwright::cuda {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr int64_t kRows = 24, kColumns = 16, kDepth = 40;

double Tanh(double x) {
  return std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x));
}
double Gelu(double x) {
  return x * (1 + Tanh(x)) / 2;
}
/// By differences: the derivative that the host has is a formula of its own.
double GeluSlope(double x) {
  return (Gelu(x + 1e-5) - Gelu(x - 1e-5)) / 2e-5;
}

class EpilogueProductTest : public StorageTest {
 protected:
  EpilogueProductTest() { cuda_emulation::ResetProductCounts(); }
  /// With a and b in memory as asked.
  EpilogueProduct Product(Epilogue epilogue, bool a_transposed, bool b_transposed, StoredMemory* out) {
    return {.rows = kRows,
            .columns = kColumns,
            .depth = kDepth,
            .operand_type = storage(),
            .out_type = storage(),
            .a = {a_.data(), a_transposed ? kRows : kDepth, a_transposed},
            .b = {b_.data(), b_transposed ? kDepth : kColumns, b_transposed},
            .out = out->data(),
            .out_stride = kColumns,
            .epilogue = epilogue};
  }
  double Exact(const EpilogueProduct& product, int64_t row, int64_t column) const {
    double sum = 0;
    for (int64_t k = 0; k < kDepth; ++k) {
      sum += a_[product.a.transposed ? k * kRows + row : row * kDepth + k] *
             b_[product.b.transposed ? column * kDepth + k : k * kColumns + column];
    }
    return sum;
  }
  template <typename Expected>
  void ExpectEach(const StoredMemory& out, const Expected& expected) const {
    for (int64_t i = 0; i < kRows * kColumns; ++i) {
      ExpectClose(out[i], expected(i / kColumns, i % kColumns), storage(), 8, "element " + std::to_string(i));
    }
  }

  const StoredMemory a_ = {storage(), Normals(kRows*kDepth, 1), access()},
                     b_ = {storage(), Normals(kDepth*kColumns, 2), access()},
                     bias_ = {storage(), Normals(kColumns, 3), access()};
};
TRAINWRIGHT_STORAGE_CASES(EpilogueProductTest);

TEST_P(EpilogueProductTest, EitherOperandMayBeTransposedAndTheBiasIsAdded) {
  for (const bool a_transposed : {false, true}) {
    for (const bool b_transposed : {false, true}) {
      StoredMemory out(storage(), kRows * kColumns, access());
      EpilogueProduct product = Product(Epilogue::kBias, a_transposed, b_transposed, &out);
      product.bias = bias_.data();
      ASSERT_EQ(MultiplyWithEpilogue(product, nullptr, nullptr), ProductStatus::kDone);
      ExpectEach(out,
                 [&](int64_t row, int64_t column) { return Exact(product, row, column) + bias_[column]; });
    }
  }
  EXPECT_THAT(cuda_emulation::ProductCounts(), ElementsAre(Pair("bias", 4)));
}

TEST_P(EpilogueProductTest, AGeluIsThatOfTheSumAndItsInputIsKept) {
  for (const bool biased : {false, true}) {
    StoredMemory out(storage(), kRows * kColumns, access()), pre(storage(), kRows * kColumns, access());
    EpilogueProduct product = Product(Epilogue::kGelu, false, true, &out);
    product.bias = biased ? bias_.data() : nullptr;
    product.pre_activation = pre.data();
    ASSERT_EQ(MultiplyWithEpilogue(product, nullptr, nullptr), ProductStatus::kDone);
    const auto exact = [&](int64_t row, int64_t column) {
      return Exact(product, row, column) + (biased ? bias_[column] : 0);
    };
    ExpectEach(pre, exact);
    ExpectEach(out, [&](int64_t row, int64_t column) { return Gelu(exact(row, column)); });
  }
}

TEST_P(EpilogueProductTest, AGelusGradientIsTimesTheSlopeAtItsInput) {
  StoredMemory out(storage(), kRows * kColumns, access()),
      pre(storage(), Normals(kRows * kColumns, 4), access());
  EpilogueProduct product = Product(Epilogue::kGeluGradient, false, false, &out);
  product.pre_activation = pre.data();
  ASSERT_EQ(MultiplyWithEpilogue(product, nullptr, nullptr), ProductStatus::kDone);
  ExpectEach(out, [&](int64_t row, int64_t column) {
    return Exact(product, row, column) * GeluSlope(pre[row * kColumns + column]);
  });
}

TEST_P(EpilogueProductTest, ABiasGradientIsTheSumOverTheDepthAndTheProductMayBeAdded) {
  for (const bool accumulate : {false, true}) {
    const std::vector<double> before = Normals(kRows * kColumns, 5);
    StoredMemory out(Storage::kFp32, before, access());
    Memory<float> gradient(kRows, access());
    EpilogueProduct product = Product(Epilogue::kBiasGradient, true, false, &out);
    product.out_type = Storage::kFp32;
    product.accumulate = accumulate;
    product.bias_gradient = gradient.data();
    ASSERT_EQ(MultiplyWithEpilogue(product, nullptr, nullptr), ProductStatus::kDone);
    for (int64_t i = 0; i < kRows * kColumns; ++i) {
      const double exact = Exact(product, i / kColumns, i % kColumns);
      EXPECT_NEAR(out[i], exact + (accumulate ? before[static_cast<size_t>(i)] : 0), 1e-4);
    }
    for (int64_t row = 0; row < kRows; ++row) {
      double sum = 0;
      for (int64_t k = 0; k < kDepth; ++k) sum += a_[k * kRows + row];
      EXPECT_NEAR(gradient[row], sum, 1e-4);
    }
  }
}

TEST_P(EpilogueProductTest, RowsOfNoMultipleOfEightElementsAreRefusedAndNothingIsWritten) {
  StoredMemory out(storage(), std::vector<double>(kRows * kColumns, 7), access());
  EpilogueProduct product = Product(Epilogue::kNone, false, false, &out);
  product.columns = kColumns - 1;
  EXPECT_EQ(MultiplyWithEpilogue(product, nullptr, nullptr), ProductStatus::kUnsupported);
  for (int64_t i = 0; i < kRows * kColumns; ++i) EXPECT_EQ(out[i], 7);
  EXPECT_THAT(cuda_emulation::ProductCounts(), ElementsAre(Pair("unsupported", 1)));
}

TEST_P(EpilogueProductTest, AnAlgorithmIsAskedForOnceForAllProductsOfOneKind) {
  StoredMemory out(storage(), kRows * kColumns, access());
  EpilogueProduct product = Product(Epilogue::kBias, false, false, &out);
  product.bias = bias_.data();
  const auto asked = [&] {
    const int64_t before = cuda_emulation::AlgorithmsAskedFor();
    EXPECT_EQ(MultiplyWithEpilogue(product, nullptr, nullptr), ProductStatus::kDone);
    return cuda_emulation::AlgorithmsAskedFor() - before;
  };
  EXPECT_EQ(asked(), 1);
  EXPECT_EQ(asked(), 0);
  product.rows = 16;
  EXPECT_EQ(asked(), 1) << "another shape";
  product.candidate = 1;
  EXPECT_EQ(asked(), 1) << "another of the library's kernels";
  product.epilogue = Epilogue::kNone;
  product.bias = nullptr;
  EXPECT_EQ(asked(), 1) << "another epilogue";
  EXPECT_EQ(asked(), 0);
}

TEST_P(EpilogueProductTest, ThatThereIsNoAlgorithmIsAskedOnceToo) {
  StoredMemory out(storage(), kRows * kColumns, access());
  EpilogueProduct product = Product(Epilogue::kNone, false, false, &out);
  product.candidate = 2;
  for (int time = 0; time < 3; ++time) {
    EXPECT_EQ(MultiplyWithEpilogue(product, nullptr, nullptr), ProductStatus::kUnsupported);
  }
  EXPECT_EQ(cuda_emulation::AlgorithmsAskedFor(), 1);
}

}  // namespace
}  // namespace trainwright::cuda
