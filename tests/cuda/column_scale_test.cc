// Columns that were scaled, backwards, by their formula.
#include "lib/nn/cuda/column_scale_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cuda/kernel_cases.h"

namespace trainwright::cuda {
namespace {

using testing::ElementsAre;
using testing::Pair;

// Two blocks of columns and three strips of rows, none of them full.
constexpr int64_t kRows = 77, kWidth = 264;

class CudaScaleColumnsBackwardTest : public StorageTest {};
TRAINWRIGHT_STORAGE_CASES(CudaScaleColumnsBackwardTest);

/// Norms of many sizes.
std::vector<double> Norms(int64_t width) {
  std::vector<double> norms = Normals(width, 5);
  for (double& norm : norms) norm = static_cast<float>(std::fabs(norm) + 0.25);
  return norms;
}

TEST_P(CudaScaleColumnsBackwardTest, AddsTheSumsOfProductsAndScalesTheGradientOfColumnsAlone) {
  const int64_t width = Width(kWidth), y_stride = width + (wide() ? 16 : 5),
                dy_stride = width + (wide() ? 8 : 2);
  ASSERT_EQ(ScaleColumnsStrips(kRows), 3);
  const StoredMemory dy(storage(), Normals(kRows * dy_stride, 1), access()),
      before(storage(), Normals(kRows * y_stride, 2), access());
  const std::vector<double> scales = Normals(width, 3), magnitudes = Normals(width, 4), norms = Norms(width);
  const Memory<float> scale = Floats(scales, access()), norm = Floats(norms, access());
  const auto all = SameInEveryOrder([&] {
    StoredMemory y(storage(), before.values(), access());
    Memory<float> d_magnitude = Floats(magnitudes, access()),
                  partial(ScaleColumnsStrips(kRows) * width, access());
    EXPECT_EQ(ScaleColumnsBackward(storage(), {scale.data(), norm.data(), kRows, width}, dy.data(), dy_stride,
                                   y.data(), y_stride, d_magnitude.data(), partial.data(), nullptr),
              cudaSuccess);
    return AllValues(d_magnitude, y);
  });
  for (int64_t i = 0; i < width; ++i) {
    double sum = 0;
    for (int64_t row = 0; row < kRows; ++row) sum += dy[row * dy_stride + i] * before[row * y_stride + i];
    const auto at = static_cast<size_t>(i);
    ExpectClose(all[at], magnitudes[at] + sum / norms[at], Storage::kFp32, 8 / norms[at],
                "d magnitude " + std::to_string(i));
  }
  for (int64_t i = 0; i < kRows * y_stride; ++i) {
    const int64_t row = i / y_stride, column = i % y_stride;
    const double value = all[static_cast<size_t>(width + i)];
    if (column >= width) {
      EXPECT_EQ(value, before[i]) << i;
    } else {
      ExpectClose(value, scales[static_cast<size_t>(column)] * dy[row * dy_stride + column], storage(), 0.1,
                  "gradient " + std::to_string(i));
    }
  }
  EXPECT_THAT(cuda_emulation::LaunchCounts(),
              ElementsAre(Pair("AddPartialSumsKernel", kRuns), Pair("ScaleColumnsBackwardKernel", kRuns)));
}

TEST_P(CudaScaleColumnsBackwardTest, OfNoRowsLaunchesNothing) {
  EXPECT_EQ(ScaleColumnsBackward(storage(), {nullptr, nullptr, 0, 8}, nullptr, 8, nullptr, 8, nullptr,
                                 nullptr, nullptr),
            cudaSuccess);
  EXPECT_TRUE(cuda_emulation::LaunchCounts().empty());
}

}  // namespace
}  // namespace trainwright::cuda
