// Rounding to fp8 on a GPU, by the definition of the types in double.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lib/nn/cuda/epilogue_product.h"
#include "lib/nn/cuda/fp8_kernels.h"
#include "tests/cuda/kernel_cases.h"
#include "tests/support/cuda_emulation/host_product.h"
#include "tests/support/fp8_reference.h"

namespace trainwright::cuda {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr Fp8Format kFormats[] = {Fp8Format::kE4m3, Fp8Format::kE5m2};
constexpr int64_t kRows = 141, kPadding = 8;

StoredMatrix MatrixOf(Storage storage, const StoredMemory& memory, int64_t rows, int64_t columns) {
  return {storage, memory.data(), rows, columns, columns + kPadding};
}

class CudaFp8ScaleOfTest : public StorageTest {
 protected:
  /// Of a matrix that lies between others' columns, which are larger.
  std::vector<double> ScaleOf(const std::vector<double>& values, int64_t columns, Fp8Format format) {
    std::vector<double> with_others;
    for (int64_t i = 0; i < kRows; ++i) {
      for (int64_t c = 0; c < columns + kPadding; ++c) {
        with_others.push_back(c < columns ? values[static_cast<size_t>(i * columns + c)] : 1e4);
      }
    }
    const StoredMemory x(storage(), with_others, access());
    return SameInEveryOrder([&] {
      Memory<uint32_t> partial(kFp8Partials, Access::kWide);
      Memory<float> scale(2, Access::kWide);
      EXPECT_EQ(
          Fp8ScaleOf(MatrixOf(storage(), x, kRows, columns), format, partial.data(), scale.data(), nullptr),
          cudaSuccess);
      return AllValues(scale);
    });
  }
};
TRAINWRIGHT_STORAGE_CASES(CudaFp8ScaleOfTest);

TEST_P(CudaFp8ScaleOfTest, IsOfTheLargestMagnitudeOfTheMatrixAlone) {
  const int64_t columns = Width(64);
  std::vector<double> values = Normals(kRows * columns, 1);
  double largest = 0;
  for (double& value : values) {
    value = Rounded(storage(), static_cast<float>(value));
    largest = std::max(largest, std::fabs(value));
  }
  for (const Fp8Format format : kFormats) {
    const float most = format == Fp8Format::kE4m3 ? 448.0f : 57344.0f,
                factor = most / static_cast<float>(largest);
    EXPECT_THAT(ScaleOf(values, columns, format), ElementsAre(1 / factor, factor));
  }
  values[static_cast<size_t>(kRows * columns - 1)] = -20;
  EXPECT_THAT(ScaleOf(values, columns, Fp8Format::kE4m3), ElementsAre(1 / (448.0f / 20), 448.0f / 20));
  EXPECT_THAT(cuda_emulation::LaunchCounts(),
              ElementsAre(Pair("Fp8ScaleKernel", 3 * kRuns), Pair("LargestKernel", 3 * kRuns)));
}

TEST_P(CudaFp8ScaleOfTest, OfZerosIsOneAndOfWhatIsNotFiniteNan) {
  const int64_t columns = Width(64);
  std::vector<double> values(static_cast<size_t>(kRows * columns), 0.0);
  EXPECT_THAT(ScaleOf(values, columns, Fp8Format::kE5m2), ElementsAre(1, 1));
  for (const double not_finite : {-HUGE_VAL, std::nan("")}) {
    values[77] = not_finite;
    for (const double scale : ScaleOf(values, columns, Fp8Format::kE5m2)) EXPECT_TRUE(std::isnan(scale));
  }
}

class CudaFp8EncodeTest : public StorageTest {};
TRAINWRIGHT_STORAGE_CASES(CudaFp8EncodeTest);

TEST_P(CudaFp8EncodeTest, LinesAreRowsOrColumnsOfTheNearestCodesFilledUpWithZeros) {
  const int64_t columns = Width(72), stride = columns + kPadding;
  std::vector<double> values = Normals(kRows * stride, 2);
  values[5] = 1e3;  // which saturates
  values[6] = 0;
  values[7] = std::nan("");
  const StoredMemory x(storage(), values, access());
  const Memory<float> scale({1 / 26.3f, 26.3f}, Access::kWide);
  for (const Fp8Format format : kFormats) {
    for (const bool by_columns : {false, true}) {
      const int64_t lines = by_columns ? columns : kRows, depth = by_columns ? kRows : columns,
                    code_stride = (depth + 15) / 16 * 16;
      const std::vector<double> codes = SameInEveryOrder([&] {
        Memory<uint8_t> out(lines * code_stride, Access::kWide);
        EXPECT_EQ(Fp8Encode(MatrixOf(storage(), x, kRows, columns), format, scale.data(), by_columns,
                            out.data(), code_stride, nullptr),
                  cudaSuccess);
        return AllValues(out);
      });
      for (int64_t i = 0; i < lines * code_stride; ++i) {
        const int64_t line = i / code_stride, k = i % code_stride;
        const int64_t at = by_columns ? k * stride + line : line * stride + k;
        const int expected = k < depth ? test::Fp8Code(format, static_cast<float>(x[at]) * 26.3f) : 0;
        ASSERT_EQ(static_cast<int>(codes[static_cast<size_t>(i)]) & 0x7F, expected & 0x7F)
            << line << " " << k;
        if (k < depth && !std::isnan(x[at])) {
          ASSERT_EQ(codes[static_cast<size_t>(i)], expected) << line << " " << k;
        }
      }
    }
  }
}

TEST_P(CudaFp8EncodeTest, OfNothingLaunchesNothing) {
  EXPECT_EQ(
      Fp8Encode({storage(), nullptr, 0, 16, 16}, Fp8Format::kE4m3, nullptr, false, nullptr, 16, nullptr),
      cudaSuccess);
  EXPECT_TRUE(cuda_emulation::LaunchCounts().empty());
}

/// The host's implementation of the seam, of codes.
class Fp8ProductTest : public testing::Test {
 protected:
  static constexpr int64_t kProductRows = 5, kColumns = 32, kDepth = 48;
  Fp8ProductTest() : a_(kProductRows * kDepth, Access::kWide), b_(kColumns * kDepth, Access::kWide) {
    cuda_emulation::ResetProductCounts();
    for (int64_t i = 0; i < a_.size(); ++i) a_[i] = static_cast<uint8_t>(i * 11 % 0x70);
    for (int64_t i = 0; i < b_.size(); ++i) b_[i] = static_cast<uint8_t>(0x80 + i * 7 % 0x60);
  }
  EpilogueProduct Product(Memory<float>* out) {
    return {.rows = kProductRows,
            .columns = kColumns,
            .depth = kDepth,
            .a = {a_.data(), kDepth, false},
            .b = {b_.data(), kDepth, true},
            .out = out->data(),
            .out_stride = kColumns,
            .fp8 = Fp8Operands{Fp8Format::kE5m2, Fp8Format::kE4m3, a_scale_.data(), b_scale_.data()}};
  }
  Memory<uint8_t> a_, b_;
  const Memory<float> a_scale_ = {std::vector<float>{0.25f}, Access::kWide},
                      b_scale_ = {std::vector<float>{3.0f}, Access::kWide};
};

TEST_F(Fp8ProductTest, IsTheScaledSumOfTheCodesValuesAndMayBeAdded) {
  for (const bool accumulate : {false, true}) {
    Memory<float> out(std::vector<float>(kProductRows * kColumns, 2), Access::kWide);
    EpilogueProduct product = Product(&out);
    product.accumulate = accumulate;
    ASSERT_EQ(MultiplyWithEpilogue(product, nullptr, nullptr), ProductStatus::kDone);
    for (int64_t i = 0; i < out.size(); ++i) {
      double sum = 0, terms = 0;
      for (int64_t k = 0; k < kDepth; ++k) {
        const double term = test::Fp8Value(Fp8Format::kE5m2, a_[i / kColumns * kDepth + k]) *
                            test::Fp8Value(Fp8Format::kE4m3, b_[i % kColumns * kDepth + k]) * 0.75;
        sum += term;
        terms += std::fabs(term);
      }
      EXPECT_NEAR(out[i], sum + (accumulate ? 2 : 0), 1e-6 * terms + 1e-6) << i;
    }
  }
  EXPECT_THAT(cuda_emulation::ProductCounts(), ElementsAre(Pair("fp8", 2)));
}

TEST_F(Fp8ProductTest, LayoutsThatTheLibraryHasNoKernelsForAreRefused) {
  Memory<float> out(kProductRows * kColumns, Access::kWide);
  const auto status = [&](auto change) {
    EpilogueProduct product = Product(&out);
    change(&product);
    return MultiplyWithEpilogue(product, nullptr, nullptr);
  };
  EXPECT_EQ(status([](EpilogueProduct* p) { p->a.transposed = true; }), ProductStatus::kUnsupported);
  EXPECT_EQ(status([](EpilogueProduct* p) { p->b.transposed = false; }), ProductStatus::kUnsupported);
  EXPECT_EQ(status([](EpilogueProduct* p) { p->depth = 40; }), ProductStatus::kUnsupported);
  EXPECT_EQ(status([](EpilogueProduct* p) { p->columns = 24; }), ProductStatus::kUnsupported);
}

}  // namespace
}  // namespace trainwright::cuda
