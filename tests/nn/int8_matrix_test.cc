// Weights in 8 bits against their formula in double.
#include "lib/nn/linear/int8_matrix.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/nn/reference.h"

namespace trainwright {
namespace {

using test::RandomTensor;

const at::Device kCpu(at::kCPU);

at::Tensor Read(const QuantizedMatrix& matrix, const Numerics& numerics = test::kFp32) {
  at::Tensor out = at::empty({matrix.rows(), matrix.depth()}, numerics.storage);
  matrix.DequantizeRows(numerics, 0, out);
  return out;
}

/// The integer that is nearest, of two the even one, by search.
int NearestEven(double value) {
  int best = -127;
  for (int i = -127; i <= 127; ++i) {
    const double before = std::fabs(best - value), now = std::fabs(i - value);
    if (now < before || (now == before && i % 2 == 0)) best = i;
  }
  return best;
}

TEST(Int8MatrixTest, CodesAndScalesAreThoseOfTheFormula) {
  const at::Tensor values = RandomTensor({7, 131}, 1);
  Int8Matrix matrix(7, 131, kCpu);
  matrix.Quantize(values);
  const at::Tensor codes = matrix.parts()[0], scales = matrix.parts()[1], read = Read(matrix);
  for (int64_t n = 0; n < 7; ++n) {
    double largest = 0;
    for (int64_t k = 0; k < 131; ++k) largest = std::max(largest, std::fabs(values[n][k].item<double>()));
    const auto scale = static_cast<double>(static_cast<float>(largest / 127));
    ASSERT_EQ(scales[n].item<float>(), static_cast<float>(scale));
    for (int64_t k = 0; k < 131; ++k) {
      const int code = NearestEven(values[n][k].item<double>() / scale);
      ASSERT_EQ(codes[n][k].item<int>(), code) << n << ", " << k;
      ASSERT_EQ(read[n][k].item<float>(), static_cast<float>(code * scale)) << n << ", " << k;
    }
  }
}

TEST(Int8MatrixTest, TiesGoToTheEvenCode) {
  at::Tensor values = at::zeros({1, 6});
  const float row[] = {127, 0.5f, 1.5f, -0.5f, -2.5f, 126.5f};  // a scale of 1
  for (int64_t k = 0; k < 6; ++k) values[0][k] = row[k];
  Int8Matrix matrix(1, 6, kCpu);
  matrix.Quantize(values);
  const int expected[] = {127, 0, 2, 0, -2, 126};
  for (int64_t k = 0; k < 6; ++k) EXPECT_EQ(matrix.parts()[0][0][k].item<int>(), expected[k]) << k;
}

TEST(Int8MatrixTest, ARowOfZerosStaysAndOneThatIsNotFiniteReadsAsNan) {
  at::Tensor values = RandomTensor({3, 20}, 2);
  values[0].zero_();
  values[1][3] = std::numeric_limits<float>::infinity();
  Int8Matrix matrix(3, 20, kCpu);
  matrix.Quantize(values);
  const at::Tensor read = Read(matrix);
  EXPECT_TRUE(read[0].eq(0).all().item<bool>());
  EXPECT_TRUE(read[1].isnan().all().item<bool>());
  EXPECT_TRUE(read[2].isfinite().all().item<bool>());
}

TEST(Int8MatrixTest, ShortTypesAreTheFp32ValuesRounded) {
  Int8Matrix matrix(5, 1100, kCpu);
  matrix.Quantize(RandomTensor({5, 1100}, 3));
  const at::Tensor exact = Read(matrix);
  EXPECT_TRUE(at::equal(Read(matrix, {Precision::kBf16, at::kBFloat16}), exact.to(at::kBFloat16)));
  EXPECT_TRUE(
      at::equal(Read(matrix, {Precision::kBf16, at::kFloat}), exact.to(at::kBFloat16).to(at::kFloat)));
}

TEST(Int8MatrixTest, TakesAByteAnElementAndFourARow) {
  EXPECT_EQ(Int8Matrix(300, 500, kCpu).bytes(), 300 * 500 + 4 * 300);
}

}  // namespace
}  // namespace trainwright
