// Rounding to fp8 on a GPU, by the definition of the types in double.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lib/nn/cuda/fp8_kernels.h"
#include "tests/cuda/kernel_cases.h"
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

}  // namespace
}  // namespace trainwright::cuda
