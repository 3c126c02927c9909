// A bias added to rows, and the sums of columns, by their formulas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/nn/cuda/bias_kernels.h"
#include "tests/cuda/kernel_cases.h"

namespace trainwright::cuda {
namespace {

using testing::ElementsAre;
using testing::Pair;

// Two blocks of columns and three strips of rows, none of them full.
constexpr int64_t kRows = 77, kWidth = 264;

class CudaAddBiasTest : public StorageTest {};
TRAINWRIGHT_STORAGE_CASES(CudaAddBiasTest);

TEST_P(CudaAddBiasTest, IsAddedToColumnsOfAWiderMatrixAndToNoOther) {
  const int64_t width = Width(kWidth), stride = width + (wide() ? 16 : 5);
  const StoredMemory before(storage(), Normals(kRows * stride, 1), access());
  const std::vector<double> biases = Normals(width, 2);
  const auto all = SameInEveryOrder([&] {
    StoredMemory x(storage(), before.values(), access());
    const Memory<float> bias = Floats(biases, access());
    EXPECT_EQ(AddBias(storage(), x.data(), bias.data(), kRows, width, stride, nullptr), cudaSuccess);
    return AllValues(x);
  });
  for (int64_t i = 0; i < kRows * stride; ++i) {
    const int64_t column = i % stride;
    if (column >= width) {
      EXPECT_EQ(all[static_cast<size_t>(i)], before[i]) << i;
    } else {
      ExpectClose(all[static_cast<size_t>(i)], before[i] + biases[static_cast<size_t>(column)], storage(),
                  0.1, "sum " + std::to_string(i));
    }
  }
  EXPECT_THAT(cuda_emulation::LaunchCounts(), ElementsAre(Pair("AddBiasKernel", kRuns)));
}

TEST_P(CudaAddBiasTest, OfNoRowsLaunchesNothing) {
  EXPECT_EQ(AddBias(storage(), nullptr, nullptr, 0, 8, 8, nullptr), cudaSuccess);
  EXPECT_TRUE(cuda_emulation::LaunchCounts().empty());
}

class CudaBiasBackwardTest : public StorageTest {};
TRAINWRIGHT_STORAGE_CASES(CudaBiasBackwardTest);

TEST_P(CudaBiasBackwardTest, AddsTheSumsOfTheColumns) {
  const int64_t width = Width(kWidth), stride = width + (wide() ? 16 : 5);
  ASSERT_EQ(ColumnSumStrips(kRows), 3);
  const StoredMemory dy(storage(), Normals(kRows * stride, 1), access());
  const std::vector<double> before = Normals(width, 2);
  const auto all = SameInEveryOrder([&] {
    Memory<float> d_bias = Floats(before, access()), partial(ColumnSumStrips(kRows) * width, access());
    EXPECT_EQ(
        BiasBackward(storage(), dy.data(), kRows, width, stride, d_bias.data(), partial.data(), nullptr),
        cudaSuccess);
    return AllValues(d_bias);
  });
  std::vector<double> exact = before;
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t i = 0; i < width; ++i) exact[static_cast<size_t>(i)] += dy[row * stride + i];
  }
  for (int64_t i = 0; i < width; ++i) {
    ExpectClose(all[static_cast<size_t>(i)], exact[static_cast<size_t>(i)], Storage::kFp32, 8,
                "d bias " + std::to_string(i));
  }
  EXPECT_THAT(cuda_emulation::LaunchCounts(),
              ElementsAre(Pair("AddPartialSumsKernel", kRuns), Pair("ColumnSumsKernel", kRuns)));
}

TEST_P(CudaBiasBackwardTest, OfNoRowsLaunchesNothing) {
  EXPECT_EQ(BiasBackward(storage(), nullptr, 0, 8, 8, nullptr, nullptr, nullptr), cudaSuccess);
  EXPECT_TRUE(cuda_emulation::LaunchCounts().empty());
}

}  // namespace
}  // namespace trainwright::cuda
