// The Gaussian error linear unit and its backward pass, by their formulas in double.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "lib/nn/cuda/bias_kernels.h"
#include "lib/nn/cuda/gelu_kernels.h"
#include "tests/cuda/kernel_cases.h"

namespace trainwright::cuda {
namespace {

using testing::ElementsAre;
using testing::Pair;

// Two blocks of columns and three strips of rows, none of them full.
constexpr int64_t kRows = 77, kWidth = 264;
constexpr GeluKind kKinds[] = {GeluKind::kErf, GeluKind::kTanh};

struct ValueAndSlope {
  double value, slope;
};

ValueAndSlope Formula(GeluKind kind, double x) {
  if (kind == GeluKind::kErf) {
    const double share = 0.5 * std::erfc(-x / std::numbers::sqrt2);
    return {x * share, share + x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi)};
  }
  const double root = std::sqrt(2 / std::numbers::pi), t = std::tanh(root * (x + 0.044715 * x * x * x));
  return {x * (1 + t) / 2, (1 + t) / 2 + x * (1 - t * t) * root * (1 + 3 * 0.044715 * x * x) / 2};
}

/// What the kernels add to their inputs; none where there is no bias.
double BiasOf(const std::vector<double>& biases, int64_t column) {
  return biases.empty() ? 0 : biases[static_cast<size_t>(column)];
}

class CudaGeluTest : public StorageTest {
 protected:
  void Check(GeluKind kind, const std::vector<double>& biases, int64_t width) {
    std::vector<double> inputs = Normals(kRows * width, 1);
    for (double& input : inputs) input *= 3;
    const StoredMemory in(storage(), inputs, access());
    const auto all = SameInEveryOrder([&] {
      const Memory<float> bias = Floats(biases, access());
      StoredMemory out(storage(), kRows * width, access());
      EXPECT_EQ(Gelu(storage(), kind, in.data(), biases.empty() ? nullptr : bias.data(), kRows, width,
                     out.data(), nullptr),
                cudaSuccess);
      return AllValues(out);
    });
    for (int64_t i = 0; i < kRows * width; ++i) {
      ExpectClose(all[static_cast<size_t>(i)], Formula(kind, in[i] + BiasOf(biases, i % width)).value,
                  storage(), 1, "gelu " + std::to_string(i));
    }
  }
};
TRAINWRIGHT_STORAGE_CASES(CudaGeluTest);

TEST_P(CudaGeluTest, IsThatOfTheInputWithItsBias) {
  for (const GeluKind kind : kKinds) {
    Check(kind, Normals(Width(kWidth), 2), Width(kWidth));
    Check(kind, {}, Width(kWidth));
  }
  EXPECT_THAT(cuda_emulation::LaunchCounts(), ElementsAre(Pair("GeluKernel", 4 * kRuns)));
}

TEST_P(CudaGeluTest, HugeValuesPassOrVanish) {
  for (const GeluKind kind : kKinds) {
    const StoredMemory in(storage(), std::vector<double>{30000, -30000, 12, -15, NAN, 0, 1, 2}, access());
    StoredMemory out(storage(), 8, access());
    EXPECT_EQ(Gelu(storage(), kind, in.data(), nullptr, 1, 8, out.data(), nullptr), cudaSuccess);
    EXPECT_EQ(out[0], in[0]);
    EXPECT_NEAR(out[1], 0, 1e-30);
    EXPECT_EQ(out[2], 12);
    EXPECT_NEAR(out[3], 0, 1e-7);
    EXPECT_TRUE(std::isnan(out[4]));
    EXPECT_EQ(out[5], 0);
  }
}

TEST_P(CudaGeluTest, OfNoRowsLaunchesNothing) {
  EXPECT_EQ(Gelu(storage(), GeluKind::kErf, nullptr, nullptr, 0, 8, nullptr, nullptr), cudaSuccess);
  EXPECT_TRUE(cuda_emulation::LaunchCounts().empty());
}

class CudaGeluBackwardTest : public StorageTest {};
TRAINWRIGHT_STORAGE_CASES(CudaGeluBackwardTest);

TEST_P(CudaGeluBackwardTest, GivesTheGradientsOfInputAndBias) {
  const int64_t width = Width(kWidth);
  std::vector<double> inputs = Normals(kRows * width, 1);
  for (double& input : inputs) input *= 3;
  const StoredMemory before(storage(), inputs, access()),
      d_out(storage(), Normals(kRows * width, 2), access());
  const std::vector<double> biases = Normals(width, 3), d_bias_before = Normals(width, 4);
  for (const GeluKind kind : kKinds) {
    const auto all = SameInEveryOrder([&] {
      StoredMemory in(storage(), before.values(), access()), alone(storage(), before.values(), access());
      const Memory<float> bias = Floats(biases, access());
      Memory<float> d_bias = Floats(d_bias_before, access()), summed = Floats(d_bias_before, access()),
                    partial(ColumnSumStrips(kRows) * width, access());
      EXPECT_EQ(GeluBackward(storage(), kind, d_out.data(), bias.data(), kRows, width, in.data(),
                             d_bias.data(), partial.data(), nullptr),
                cudaSuccess);
      EXPECT_EQ(GeluBackward(storage(), kind, d_out.data(), bias.data(), kRows, width, alone.data(), nullptr,
                             nullptr, nullptr),
                cudaSuccess);
      EXPECT_EQ(alone.values(), in.values());
      BiasBackward(storage(), in.data(), kRows, width, width, summed.data(), partial.data(), nullptr);
      EXPECT_EQ(summed.values(), d_bias.values()) << "the bits of the bias's own gradient";
      return AllValues(in, d_bias);
    });
    std::vector<double> d_bias = d_bias_before;
    for (int64_t i = 0; i < kRows * width; ++i) {
      const auto column = static_cast<size_t>(i % width);
      ExpectClose(all[static_cast<size_t>(i)], d_out[i] * Formula(kind, before[i] + biases[column]).slope,
                  storage(), 4, "gradient " + std::to_string(i));
      d_bias[column] += all[static_cast<size_t>(i)];
    }
    for (int64_t i = 0; i < width; ++i) {
      ExpectClose(all[static_cast<size_t>(kRows * width + i)], d_bias[static_cast<size_t>(i)], Storage::kFp32,
                  8, "d bias " + std::to_string(i));
    }
  }
}

TEST_P(CudaGeluBackwardTest, OfNoRowsLaunchesNothing) {
  EXPECT_EQ(
      GeluBackward(storage(), GeluKind::kErf, nullptr, nullptr, 0, 8, nullptr, nullptr, nullptr, nullptr),
      cudaSuccess);
  EXPECT_TRUE(cuda_emulation::LaunchCounts().empty());
}

}  // namespace
}  // namespace trainwright::cuda
