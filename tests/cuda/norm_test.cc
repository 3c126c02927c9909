// Residual addition with normalisation and its backward pass, by their formulas in double.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/cuda/kernel_cases.h"

namespace trainwright::cuda {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr float kEpsilon = 1e-5f;

double ReciprocalRms(const std::vector<double>& x, int64_t row, int64_t width) {
  double squares = 0;
  for (int64_t i = 0; i < width; ++i) {
    const double value = x[static_cast<size_t>(row * width + i)];
    squares += value * value;
  }
  return 1 / std::sqrt(squares / static_cast<double>(width) + static_cast<double>(kEpsilon));
}

class CudaAddNormTest : public StorageTest {
 protected:
  /// Of one, two and four packs of a thread, and of more than it holds.
  void CheckWidths(bool with_update) {
    for (const int64_t width : {264, 1100, 2100, 4100}) Check(Width(width), with_update);
    EXPECT_THAT(cuda_emulation::LaunchCounts(), ElementsAre(Pair("AddNormKernel", 4 * kRuns)));
  }

 private:
  void Check(int64_t width, bool with_update) {
    SCOPED_TRACE("width " + std::to_string(width));
    const int64_t rows = 3;
    const std::vector<double> residuals = Normals(rows * width, 1), weights = Normals(width, 2);
    const StoredMemory update(storage(), Normals(rows * width, 3), access());
    const auto all = SameInEveryOrder([&] {
      const Memory<float> residual = Floats(residuals, access()), weight = Floats(weights, access());
      Memory<float> sum(with_update ? rows * width : 0, access()), rstd(rows, access());
      StoredMemory normed(storage(), rows * width, access());
      EXPECT_EQ(
          AddNorm(storage(), residual.data(), with_update ? update.data() : nullptr, weight.data(), kEpsilon,
                  rows, width, with_update ? sum.data() : nullptr, normed.data(), rstd.data(), nullptr),
          cudaSuccess);
      return AllValues(normed, rstd, sum);
    });
    std::vector<double> x = residuals;
    for (int64_t i = 0; with_update && i < rows * width; ++i) {
      auto& value = x[static_cast<size_t>(i)];
      value = static_cast<float>(value + update[i]);
      EXPECT_EQ(all[static_cast<size_t>(rows * width + rows + i)], value);
    }
    for (int64_t i = 0; i < rows * width; ++i) {
      const double rstd = ReciprocalRms(x, i / width, width);
      ExpectClose(all[static_cast<size_t>(rows * width + i / width)], rstd, Storage::kFp32, 1, "rstd");
      ExpectClose(all[static_cast<size_t>(i)],
                  x[static_cast<size_t>(i)] * rstd * weights[static_cast<size_t>(i % width)], storage(), 4,
                  "normed " + std::to_string(i));
    }
  }
};
TRAINWRIGHT_STORAGE_CASES(CudaAddNormTest);

TEST_P(CudaAddNormTest, AddsAndNormalises) {
  CheckWidths(true);
}

TEST_P(CudaAddNormTest, NormalisesTheResidualWithoutAnUpdate) {
  CheckWidths(false);
}

TEST_P(CudaAddNormTest, OfNoRowsLaunchesNothing) {
  EXPECT_EQ(AddNorm(storage(), nullptr, nullptr, nullptr, kEpsilon, 0, 8, nullptr, nullptr, nullptr, nullptr),
            cudaSuccess);
  EXPECT_TRUE(cuda_emulation::LaunchCounts().empty());
}

class CudaNormAgainTest : public StorageTest {};
TRAINWRIGHT_STORAGE_CASES(CudaNormAgainTest);

TEST_P(CudaNormAgainTest, GivesTheBitsOfTheFirstTime) {
  const int64_t rows = 4, width = Width(520);
  const std::vector<double> x_values = Normals(rows * width, 4), weights = Normals(width, 5);
  const auto all = SameInEveryOrder([&] {
    const Memory<float> x = Floats(x_values, access()), weight = Floats(weights, access());
    StoredMemory first(storage(), rows * width, access()), again(storage(), rows * width, access());
    Memory<float> rstd(rows, access());
    AddNorm(storage(), x.data(), nullptr, weight.data(), kEpsilon, rows, width, nullptr, first.data(),
            rstd.data(), nullptr);
    EXPECT_EQ(NormAgain(storage(), x.data(), rstd.data(), weight.data(), rows, width, again.data(), nullptr),
              cudaSuccess);
    EXPECT_EQ(first.values(), again.values());
    return AllValues(again);
  });
  for (int64_t i = 0; i < rows * width; ++i) {
    ExpectClose(all[static_cast<size_t>(i)],
                x_values[static_cast<size_t>(i)] * ReciprocalRms(x_values, i / width, width) *
                    weights[static_cast<size_t>(i % width)],
                storage(), 4, "normed " + std::to_string(i));
  }
}

TEST_P(CudaNormAgainTest, OfNoRowsLaunchesNothing) {
  EXPECT_EQ(NormAgain(storage(), nullptr, nullptr, nullptr, 0, 8, nullptr, nullptr), cudaSuccess);
  EXPECT_TRUE(cuda_emulation::LaunchCounts().empty());
}

class CudaNormBackwardTest : public StorageTest {
 protected:
  void Check(int64_t width, bool with_short);
};
TRAINWRIGHT_STORAGE_CASES(CudaNormBackwardTest);

void CudaNormBackwardTest::Check(int64_t width, bool with_short) {
  SCOPED_TRACE("width " + std::to_string(width));
  const int64_t rows = 19;  // three strips of rows, the last one short
  ASSERT_EQ(NormBackwardBlocks(rows), 3);
  const std::vector<double> x = Normals(rows * width, 6), weights = Normals(width, 7);
  const std::vector<double> d_x_before = Normals(rows * width, 8), d_weight_before = Normals(width, 9);
  const StoredMemory dy(storage(), Normals(rows * width, 10), access());
  std::vector<double> rstds;
  for (int64_t row = 0; row < rows; ++row) {
    rstds.push_back(static_cast<float>(ReciprocalRms(x, row, width)));
  }
  const auto all = SameInEveryOrder([&] {
    const Memory<float> inputs = Floats(x, access()), weight = Floats(weights, access());
    const Memory<float> rstd = Floats(rstds, access());
    Memory<float> d_x = Floats(d_x_before, access()), d_weight = Floats(d_weight_before, access());
    Memory<float> partial(NormBackwardBlocks(rows) * width, access());
    StoredMemory d_short(storage(), with_short ? rows * width : 0, access());
    EXPECT_EQ(
        NormBackward(storage(), dy.data(), inputs.data(), rstd.data(), weight.data(), rows, width, d_x.data(),
                     with_short ? d_short.data() : nullptr, d_weight.data(), partial.data(), nullptr),
        cudaSuccess);
    for (int64_t i = 0; with_short && i < rows * width; ++i) {
      EXPECT_EQ(d_short[i], Rounded(storage(), d_x[i]));
    }
    return AllValues(d_x, d_weight);
  });
  std::vector<double> d_weight = d_weight_before;
  for (int64_t row = 0; row < rows; ++row) {
    const double rstd = rstds[static_cast<size_t>(row)];
    const auto hat = [&](int64_t i) { return x[static_cast<size_t>(row * width + i)] * rstd; };
    const auto of_hat = [&](int64_t i) { return dy[row * width + i] * weights[static_cast<size_t>(i)]; };
    double mean = 0;
    for (int64_t i = 0; i < width; ++i) mean += of_hat(i) * hat(i) / static_cast<double>(width);
    for (int64_t i = 0; i < width; ++i) {
      const auto at = static_cast<size_t>(row * width + i);
      ExpectClose(all[at], d_x_before[at] + rstd * (of_hat(i) - hat(i) * mean), Storage::kFp32, 8,
                  "d x " + std::to_string(at));
      d_weight[static_cast<size_t>(i)] += dy[row * width + i] * hat(i);
    }
  }
  for (int64_t i = 0; i < width; ++i) {
    ExpectClose(all[static_cast<size_t>(rows * width + i)], d_weight[static_cast<size_t>(i)], Storage::kFp32,
                16, "d weight " + std::to_string(i));
  }
}

TEST_P(CudaNormBackwardTest, AddsTheGradientsOfInputAndWeight) {
  Check(Width(264), /*with_short=*/false);
  EXPECT_THAT(cuda_emulation::LaunchCounts(),
              ElementsAre(Pair("AddPartialSumsKernel", kRuns), Pair("NormBackwardKernel", kRuns)));
}

TEST_P(CudaNormBackwardTest, RoundsTheNewGradientForRowsOfEveryWidth) {
  for (const int64_t width : {264, 1100, 2100, 4100}) Check(Width(width), /*with_short=*/true);
}

TEST_P(CudaNormBackwardTest, OfNoRowsLaunchesNothing) {
  EXPECT_EQ(NormBackward(storage(), nullptr, nullptr, nullptr, nullptr, 0, 8, nullptr, nullptr, nullptr,
                         nullptr, nullptr),
            cudaSuccess);
  EXPECT_TRUE(cuda_emulation::LaunchCounts().empty());
}

}  // namespace
}  // namespace trainwright::cuda
