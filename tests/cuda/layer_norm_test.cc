// Residual addition with layer normalisation and its backward pass, by their formulas in double.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "lib/nn/cuda/layer_norm_kernels.h"
#include "tests/cuda/kernel_cases.h"

namespace trainwright::cuda {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr float kEpsilon = 1e-5f;
// One, two and four packs of a thread, and more than it holds.
constexpr int64_t kWidths[] = {264, 1100, 2100, 4100};

struct Statistics {
  double mean = 0, rstd = 0;
};

Statistics StatisticsOf(const std::vector<double>& x, int64_t row, int64_t width) {
  const auto value = [&](int64_t i) { return x[static_cast<size_t>(row * width + i)]; };
  Statistics statistics;
  double squares = 0;
  for (int64_t i = 0; i < width; ++i) statistics.mean += value(i) / static_cast<double>(width);
  for (int64_t i = 0; i < width; ++i) squares += std::pow(value(i) - statistics.mean, 2);
  statistics.rstd = 1 / std::sqrt(squares / static_cast<double>(width) + static_cast<double>(kEpsilon));
  return statistics;
}

/// Numbers in memory, or null where there are none.
const float* DataOrNull(const std::optional<Memory<float>>& memory) {
  return memory ? memory->data() : nullptr;
}

class CudaAddLayerNormTest : public StorageTest {
 protected:
  struct Given {
    bool update = true, update_bias = true, bias = true;
  };
  void Check(int64_t width, Given given, double distance) {
    SCOPED_TRACE("width " + std::to_string(width));
    const int64_t rows = 3;
    std::vector<double> residuals = Normals(rows * width, 1);
    for (double& value : residuals) value = static_cast<float>(value + distance);
    const std::vector<double> weights = Normals(width, 2), biases = Normals(width, 3),
                              update_biases = Normals(width, 4);
    const StoredMemory update(storage(), Normals(rows * width, 5), access());
    const auto all = SameInEveryOrder([&] {
      const Memory<float> residual = Floats(residuals, access()), weight = Floats(weights, access());
      std::optional<Memory<float>> bias, update_bias;
      if (given.bias) bias.emplace(Floats(biases, access()));
      if (given.update_bias) update_bias.emplace(Floats(update_biases, access()));
      Memory<float> sum(given.update ? rows * width : 0, access()), mean(rows, access()),
          rstd(rows, access());
      StoredMemory normed(storage(), rows * width, access()), again(storage(), rows * width, access());
      const LayerNormInput norm = {rows, width, weight.data(), DataOrNull(bias)};
      EXPECT_EQ(AddLayerNorm(storage(), norm, residual.data(), given.update ? update.data() : nullptr,
                             DataOrNull(update_bias), kEpsilon, given.update ? sum.data() : nullptr,
                             normed.data(), mean.data(), rstd.data(), nullptr),
                cudaSuccess);
      const float* x = given.update ? sum.data() : residual.data();
      EXPECT_EQ(LayerNormAgain(storage(), norm, x, mean.data(), rstd.data(), again.data(), nullptr),
                cudaSuccess);
      EXPECT_EQ(again.values(), normed.values());
      return AllValues(normed, mean, rstd, sum);
    });
    std::vector<double> x = residuals;
    for (int64_t i = 0; given.update && i < rows * width; ++i) {
      auto& value = x[static_cast<size_t>(i)];
      const double added = given.update_bias ? update_biases[static_cast<size_t>(i % width)] : 0;
      value = static_cast<float>(value + static_cast<double>(static_cast<float>(update[i] + added)));
      EXPECT_EQ(all[static_cast<size_t>(rows * width + 2 * rows + i)], value);
    }
    for (int64_t i = 0; i < rows * width; ++i) {
      const Statistics exact = StatisticsOf(x, i / width, width);
      const auto row = static_cast<size_t>(rows * width + i / width), column = static_cast<size_t>(i % width);
      ExpectClose(all[row], exact.mean, Storage::kFp32, 1 + distance, "mean");
      ExpectClose(all[row + static_cast<size_t>(rows)], exact.rstd, Storage::kFp32, 1, "rstd");
      ExpectClose(all[static_cast<size_t>(i)],
                  (x[static_cast<size_t>(i)] - exact.mean) * exact.rstd * weights[column] +
                      (given.bias ? biases[column] : 0),
                  storage(), 8 + 4 * distance, "normed " + std::to_string(i));
    }
  }
};
TRAINWRIGHT_STORAGE_CASES(CudaAddLayerNormTest);

TEST_P(CudaAddLayerNormTest, AddsAndNormalisesRowsOfEveryWidth) {
  for (const int64_t width : kWidths) Check(Width(width), {}, /*distance=*/0);
}

TEST_P(CudaAddLayerNormTest, WorksWithoutUpdateAndBiases) {
  Check(Width(264), {.update = false, .update_bias = false}, 0);
  Check(Width(264), {.update_bias = false, .bias = false}, 0);
  EXPECT_THAT(cuda_emulation::LaunchCounts(),
              ElementsAre(Pair("AddLayerNormKernel", 2 * kRuns), Pair("LayerNormAgainKernel", 2 * kRuns)));
}

TEST_P(CudaAddLayerNormTest, ARowFarFromZeroKeepsItsVariance) {
  Check(Width(264), {}, /*distance=*/300);
}

TEST_P(CudaAddLayerNormTest, OfNoRowsLaunchesNothing) {
  EXPECT_EQ(AddLayerNorm(storage(), {.width = 8}, nullptr, nullptr, nullptr, kEpsilon, nullptr, nullptr,
                         nullptr, nullptr, nullptr),
            cudaSuccess);
  EXPECT_TRUE(cuda_emulation::LaunchCounts().empty());
}

class CudaLayerNormAgainTest : public StorageTest {};
TRAINWRIGHT_STORAGE_CASES(CudaLayerNormAgainTest);

TEST_P(CudaLayerNormAgainTest, OfNoRowsLaunchesNothing) {
  EXPECT_EQ(LayerNormAgain(storage(), {.width = 8}, nullptr, nullptr, nullptr, nullptr, nullptr),
            cudaSuccess);
  EXPECT_TRUE(cuda_emulation::LaunchCounts().empty());
}

class CudaLayerNormBackwardTest : public StorageTest {
 protected:
  enum class Wanted { kAll, kInputAlone };
  void Check(int64_t width, Wanted wanted) {
    SCOPED_TRACE("width " + std::to_string(width));
    const bool all_wanted = wanted == Wanted::kAll;
    const int64_t rows = 19;  // three strips of rows, the last one short
    ASSERT_EQ(LayerNormBackwardStrips(rows), 3);
    const std::vector<double> x = Normals(rows * width, 6), weights = Normals(width, 7),
                              d_x_before = Normals(rows * width, 8), d_weight_before = Normals(width, 9),
                              d_bias_before = Normals(width, 10);
    const StoredMemory dy(storage(), Normals(rows * width, 11), access());
    std::vector<double> means, rstds;
    for (int64_t row = 0; row < rows; ++row) {
      const Statistics statistics = StatisticsOf(x, row, width);
      means.push_back(static_cast<float>(statistics.mean));
      rstds.push_back(static_cast<float>(statistics.rstd));
    }
    const auto all = SameInEveryOrder([&] {
      const Memory<float> inputs = Floats(x, access()), weight = Floats(weights, access()),
                          mean = Floats(means, access()), rstd = Floats(rstds, access());
      Memory<float> d_x = Floats(d_x_before, access()), d_weight = Floats(d_weight_before, access()),
                    d_bias = Floats(d_bias_before, access()),
                    partial(all_wanted ? LayerNormBackwardStrips(rows) * 2 * width : 0, access());
      StoredMemory d_short(storage(), rows * width, access());
      LayerNormGradients gradients = {.d_x = d_x.data()};
      if (all_wanted) {
        gradients = {d_x.data(), d_short.data(), d_weight.data(), d_bias.data(), partial.data()};
      }
      EXPECT_EQ(LayerNormBackward(storage(), {rows, width, weight.data(), nullptr}, dy.data(), inputs.data(),
                                  mean.data(), rstd.data(), gradients, nullptr),
                cudaSuccess);
      for (int64_t i = 0; all_wanted && i < rows * width; ++i) {
        EXPECT_EQ(d_short[i], Rounded(storage(), d_x[i]));
      }
      return AllValues(d_x, d_weight, d_bias);
    });
    std::vector<double> d_weight = d_weight_before, d_bias = d_bias_before;
    for (int64_t row = 0; row < rows; ++row) {
      const double mean = means[static_cast<size_t>(row)], rstd = rstds[static_cast<size_t>(row)];
      const auto hat = [&](int64_t i) { return (x[static_cast<size_t>(row * width + i)] - mean) * rstd; };
      const auto of_hat = [&](int64_t i) { return dy[row * width + i] * weights[static_cast<size_t>(i)]; };
      double shift = 0, common = 0;
      for (int64_t i = 0; i < width; ++i) {
        shift += of_hat(i) / static_cast<double>(width);
        common += of_hat(i) * hat(i) / static_cast<double>(width);
      }
      for (int64_t i = 0; i < width; ++i) {
        const auto at = static_cast<size_t>(row * width + i);
        ExpectClose(all[at], d_x_before[at] + rstd * (of_hat(i) - shift - hat(i) * common), Storage::kFp32, 8,
                    "d x " + std::to_string(at));
        if (!all_wanted) continue;
        d_weight[static_cast<size_t>(i)] += dy[row * width + i] * hat(i);
        d_bias[static_cast<size_t>(i)] += dy[row * width + i];
      }
    }
    for (int64_t i = 0; i < width; ++i) {
      const auto at = static_cast<size_t>(rows * width + i);
      ExpectClose(all[at], d_weight[static_cast<size_t>(i)], Storage::kFp32, 16,
                  "d weight " + std::to_string(i));
      ExpectClose(all[at + static_cast<size_t>(width)], d_bias[static_cast<size_t>(i)], Storage::kFp32, 16,
                  "d bias " + std::to_string(i));
    }
  }
};
TRAINWRIGHT_STORAGE_CASES(CudaLayerNormBackwardTest);

TEST_P(CudaLayerNormBackwardTest, AddsTheGradientsOfInputWeightAndBiasOfEveryWidth) {
  for (const int64_t width : kWidths) Check(Width(width), Wanted::kAll);
}

TEST_P(CudaLayerNormBackwardTest, OfFrozenWeightsAddsThatOfTheInputAlone) {
  Check(Width(264), Wanted::kInputAlone);
  EXPECT_THAT(cuda_emulation::LaunchCounts(), ElementsAre(Pair("LayerNormBackwardKernel", kRuns)));
}

TEST_P(CudaLayerNormBackwardTest, OfNoRowsLaunchesNothing) {
  EXPECT_EQ(LayerNormBackward(storage(), {.width = 8}, nullptr, nullptr, nullptr, nullptr, {}, nullptr),
            cudaSuccess);
  EXPECT_TRUE(cuda_emulation::LaunchCounts().empty());
}

}  // namespace
}  // namespace trainwright::cuda
