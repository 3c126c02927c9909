// The end of a step: the gradients' norm, what it decides, and the updates of optimizers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "lib/nn/update/adamw_8bit_cpu.h"
#include "lib/nn/update/bf16_moments_cpu.h"
#include "lib/nn/update/lion_cpu.h"
#include "lib/nn/update/step_decision.h"
#include "lib/spec/reduction_block.h"
#include "tests/cuda/kernel_cases.h"

namespace trainwright::cuda {
namespace {

using testing::ElementsAre;
using testing::Pair;

double Squares(const std::vector<double>& values, Access access) {
  return SameInEveryOrder([&] {
    const Memory<float> in = Floats(values, access);
    const auto size = static_cast<int64_t>(values.size());
    Memory<double> partial(SumOfSquaresBlocks(size), Access::kWide), out(1, Access::kWide);
    EXPECT_EQ(SumOfSquares(in.data(), size, partial.data(), out.data(), nullptr), cudaSuccess);
    return out.values();
  })[0];
}

TEST(CudaSumOfSquaresTest, AddsUpInDouble) {
  for (const int64_t size : {int64_t{1}, int64_t{1000}, 2 * kReductionBlock + 3}) {
    const std::vector<double> values = Normals(size, 1);
    double exact = 0;
    for (const double value : values) exact += value * value;
    for (const Access access : {Access::kWide, Access::kNarrow}) {
      EXPECT_NEAR(Squares(values, access), exact, 1e-12 * exact);
    }
  }
}

TEST(CudaSumOfSquaresTest, OfNothingIsZeroInOneLaunch) {
  cuda_emulation::ResetLaunchCounts();
  Memory<double> out(1, Access::kWide);
  EXPECT_EQ(SumOfSquares(nullptr, 0, nullptr, out.data(), nullptr), cudaSuccess);
  EXPECT_EQ(out[0], 0);
  EXPECT_THAT(cuda_emulation::LaunchCounts(), ElementsAre(Pair("AddUpKernel", 1)));
}

/// State, rows of terms and outputs after a step from a state with loss scale 1024.
std::vector<double> FinishedStep(double sum_of_squares, bool scaled) {
  const Memory<double> sum(std::vector<double>{sum_of_squares}, Access::kWide);
  const Memory<double> inputs(std::vector<double>{7, 0.25, 4, 0}, Access::kWide);
  StepState state{};
  state.loss_scale = 1024;
  state.updates = 6;
  Memory<double> device_state(kStepStateFields, Access::kWide);
  std::memcpy(device_state.data(), &state, sizeof(state));
  Memory<double> rows(std::vector<double>{10, 3, 0, 0, 0, 0}, Access::kWide);
  Memory<float> outputs(kStepOutputFields, Access::kWide);
  EXPECT_EQ(FinishStep(sum.data(), inputs.data(), 2, 1.0, scaled, device_state.data(), rows.data(),
                       outputs.data(), nullptr),
            cudaSuccess);
  return AllValues(device_state, rows, outputs);
}

TEST(CudaFinishStepTest, ClipsTheGradientsOfAGoodStep) {
  const std::vector<double> all = FinishedStep(4.0 * 1024 * 1024, true);  // a norm of 2
  StepState state;
  std::memcpy(&state, all.data(), sizeof(state));
  EXPECT_EQ(state.grad_norm, 2);
  EXPECT_EQ(state.updates, 7);
  EXPECT_EQ(state.skipped, 0);
  EXPECT_EQ(state.good_steps, 1);
  const std::vector<double> rest(all.begin() + kStepStateFields, all.end());
  EXPECT_THAT(rest, ElementsAre(0, 0, 10, 3, 4, 0, static_cast<float>(1024 * 2.000001), 0, 7));
}

TEST(CudaFinishStepTest, SkipsAStepThatIsNotFinite) {
  const std::vector<double> all = FinishedStep(std::numeric_limits<double>::infinity(), true);
  StepState state;
  std::memcpy(&state, all.data(), sizeof(state));
  EXPECT_EQ(state.skipped, 1);
  EXPECT_EQ(state.updates, 6);
  EXPECT_EQ(state.loss_scale, 512);
  EXPECT_EQ(all[all.size() - 2], 1);
}

TEST(CudaFinishStepTest, NamesTheStepThatIsBeyondHelp) {
  const std::vector<double> all = FinishedStep(std::numeric_limits<double>::quiet_NaN(), false);
  StepState state;
  std::memcpy(&state, all.data(), sizeof(state));
  EXPECT_EQ(state.bad_step, 7);
  EXPECT_EQ(state.bad_loss_nats, 2.5);
}

struct Moments {
  std::vector<float> values, gradients;
  std::vector<uint16_t> exp_avg, exp_avg_sq;
};

constexpr AdamWHyperparameters kHyperparameters = {
    .learning_rate = 1e-2, .beta1 = 0.9, .beta2 = 0.95, .weight_decay = 0.1, .epsilon = 1e-8, .key = 12345};

Moments RandomMoments(int64_t count) {
  Moments moments;
  const std::vector<double> values = Normals(count, 2), gradients = Normals(count, 3);
  for (const double first : Normals(count, 4)) {
    moments.exp_avg.push_back(__float2bfloat16_rn(static_cast<float>(first)).bits);
    moments.exp_avg_sq.push_back(__float2bfloat16_rn(static_cast<float>(first * first)).bits);
  }
  moments.values.assign(values.begin(), values.end());
  moments.gradients.assign(gradients.begin(), gradients.end());
  return moments;
}

/// Values, then both moments.
std::vector<double> Updated(const Moments& from, int64_t first, const float* divisor, const float* found_inf,
                            Access access, const double* rate = nullptr) {
  return SameInEveryOrder([&] {
    Memory<float> values(from.values, access);
    const Memory<float> gradients(from.gradients, access), step(std::vector<float>{3.0f}, access);
    Memory<uint16_t> exp_avg(from.exp_avg, access), exp_avg_sq(from.exp_avg_sq, access);
    EXPECT_EQ(
        AdamWBf16Moments(values.data(), gradients.data(), exp_avg.data(), exp_avg_sq.data(), first,
                         values.size(), kHyperparameters, step.data(), divisor, found_inf, rate, nullptr),
        cudaSuccess);
    return AllValues(values, exp_avg, exp_avg_sq);
  });
}

TEST(CudaAdamWBf16MomentsTest, HasTheBitsOfTheCpu) {
  constexpr int64_t kCount = 1001,
                    kFirst = kRandomBlock - 300;  // over the border of two blocks of random bits
  const Moments before = RandomMoments(kCount);
  const float divisor = 4;
  Moments after = before;
  cpu::UpdateBf16MomentsBaseline(CoefficientsOf(kHyperparameters, 3, 4), after.gradients.data(),
                                 after.values.data(), after.exp_avg.data(), after.exp_avg_sq.data(), kFirst,
                                 kCount);
  std::vector<double> exact(after.values.begin(), after.values.end());
  exact.insert(exact.end(), after.exp_avg.begin(), after.exp_avg.end());
  exact.insert(exact.end(), after.exp_avg_sq.begin(), after.exp_avg_sq.end());
  for (const Access access : {Access::kWide, Access::kNarrow}) {
    EXPECT_EQ(Updated(before, kFirst, &divisor, nullptr, access), exact);
  }
}

TEST(CudaAdamWBf16MomentsTest, MovesTheWeightsAsAdamWDoes) {
  const Moments before = RandomMoments(64);
  const std::vector<double> after = Updated(before, 0, nullptr, nullptr, Access::kWide);
  for (size_t i = 0; i < 64; ++i) {
    const double g = static_cast<double>(before.gradients[i]);
    const double m = 0.9 * static_cast<double>(__bfloat162float({before.exp_avg[i]})) + 0.1 * g;
    const double v = 0.95 * static_cast<double>(__bfloat162float({before.exp_avg_sq[i]})) + 0.05 * g * g;
    const double step = m / (1 - std::pow(0.9, 3)) / (std::sqrt(v / (1 - std::pow(0.95, 3))) + 1e-8);
    EXPECT_NEAR(after[i], static_cast<double>(before.values[i]) * (1 - 1e-2 * 0.1) - 1e-2 * step, 1e-6);
  }
}

TEST(CudaAdamWBf16MomentsTest, MultipliesTheLearningRate) {
  const Moments before = RandomMoments(64);
  const double rate = 0.5;
  const std::vector<double> after = Updated(before, 0, nullptr, nullptr, Access::kWide, &rate);
  const std::vector<double> whole = Updated(before, 0, nullptr, nullptr, Access::kWide);
  for (size_t i = 0; i < 64; ++i) {
    const auto start = static_cast<double>(before.values[i]);
    EXPECT_NEAR(after[i] - start, 0.5 * (whole[i] - start), 1e-6);
  }
}

TEST(CudaAdamWBf16MomentsTest, ChangesNothingAfterABadStep) {
  const Moments before = RandomMoments(300);
  const float found_inf = 1;
  const std::vector<double> after = Updated(before, 0, nullptr, &found_inf, Access::kWide);
  EXPECT_TRUE(std::equal(before.values.begin(), before.values.end(), after.begin()));
  EXPECT_TRUE(std::equal(before.exp_avg.begin(), before.exp_avg.end(), after.begin() + 300));
}

TEST(CudaAdamWBf16MomentsTest, OfNothingLaunchesNothing) {
  cuda_emulation::ResetLaunchCounts();
  EXPECT_EQ(AdamWBf16Moments(nullptr, nullptr, nullptr, nullptr, 0, 0, kHyperparameters, nullptr, nullptr,
                             nullptr, nullptr, nullptr),
            cudaSuccess);
  EXPECT_TRUE(cuda_emulation::LaunchCounts().empty());
}

constexpr LionHyperparameters kLion = {
    .learning_rate = 1e-2, .beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1};

/// Values, then the momentum.
std::vector<double> LionUpdated(int64_t count, const float* divisor, const float* found_inf, Access access,
                                const double* rate = nullptr) {
  const std::vector<double> values = Normals(count, 5), gradients = Normals(count, 6),
                            momentum = Normals(count, 7);
  return SameInEveryOrder([&] {
    Memory<float> own = Floats(values, access), exp_avg = Floats(momentum, access);
    const Memory<float> gradient = Floats(gradients, access);
    EXPECT_EQ(
        Lion(own.data(), gradient.data(), exp_avg.data(), count, kLion, divisor, found_inf, rate, nullptr),
        cudaSuccess);
    return AllValues(own, exp_avg);
  });
}

TEST(CudaLionTest, HasTheBitsOfTheCpu) {
  constexpr int64_t kCount = 1001;
  const float divisor = 4;
  const auto floats = [](uint64_t which) {
    const std::vector<double> normals = Normals(kCount, which);
    return std::vector<float>(normals.begin(), normals.end());
  };
  std::vector<float> values = floats(5), momentum = floats(7);
  const std::vector<float> gradients = floats(6);
  cpu::UpdateLion(CoefficientsOf(kLion, 4), gradients.data(), values.data(), momentum.data(), kCount);
  std::vector<double> exact(values.begin(), values.end());
  exact.insert(exact.end(), momentum.begin(), momentum.end());
  for (const Access access : {Access::kWide, Access::kNarrow}) {
    EXPECT_EQ(LionUpdated(kCount, &divisor, nullptr, access), exact);
  }
}

TEST(CudaLionTest, MovesEveryWeightByTheLearningRateAlongTheSign) {
  const std::vector<double> values = Normals(64, 5), gradients = Normals(64, 6), momentum = Normals(64, 7);
  const double rate = 0.5;
  const std::vector<double> after = LionUpdated(64, nullptr, nullptr, Access::kWide, &rate);
  for (size_t i = 0; i < 64; ++i) {
    const double direction = 0.9 * momentum[i] + 0.1 * gradients[i];
    EXPECT_NEAR(after[i], values[i] * (1 - 5e-3 * 0.1) - std::copysign(5e-3, direction), 1e-6);
    EXPECT_NEAR(after[64 + i], 0.99 * momentum[i] + 0.01 * gradients[i], 1e-6);
  }
}

TEST(CudaLionTest, ChangesNothingAfterABadStep) {
  const float found_inf = 1;
  const std::vector<double> values = Normals(300, 5),
                            after = LionUpdated(300, nullptr, &found_inf, Access::kWide);
  for (size_t i = 0; i < 300; ++i) EXPECT_EQ(after[i], static_cast<float>(values[i]));
}

TEST(CudaLionTest, OfNothingLaunchesNothing) {
  cuda_emulation::ResetLaunchCounts();
  EXPECT_EQ(Lion(nullptr, nullptr, nullptr, 0, kLion, nullptr, nullptr, nullptr, nullptr), cudaSuccess);
  EXPECT_TRUE(cuda_emulation::LaunchCounts().empty());
}

struct Quantized {
  std::vector<float> values, gradients, first_map, second_map;
  std::vector<uint8_t> first, second;
  std::vector<float> first_largest, second_largest;
};

/// Codes of linear maps.
Quantized RandomQuantized(int64_t count) {
  Quantized quantized;
  const std::vector<double> values = Normals(count, 8), gradients = Normals(count, 9);
  quantized.values.assign(values.begin(), values.end());
  quantized.gradients.assign(gradients.begin(), gradients.end());
  for (int i = 0; i < kMapSize; ++i) {
    quantized.first_map.push_back(static_cast<float>(2 * i - 255) / 255);
    quantized.second_map.push_back(static_cast<float>(i) / 255);
  }
  for (int64_t i = 0; i < count; ++i) {
    quantized.first.push_back(static_cast<uint8_t>(37 * i));
    quantized.second.push_back(static_cast<uint8_t>(53 * i + 1));
    if (i % kMomentBlock != 0) continue;
    quantized.first_largest.push_back(0.5f + static_cast<float>(i) / 1024);
    quantized.second_largest.push_back(2.0f + static_cast<float>(i) / 512);
  }
  return quantized;
}

/// Values, codes and scales.
std::vector<double> Updated(const Quantized& from, const float* divisor, const float* found_inf,
                            const double* rate = nullptr) {
  return SameInEveryOrder([&] {
    Memory<float> values(from.values, Access::kWide), first_largest(from.first_largest, Access::kWide),
        second_largest(from.second_largest, Access::kWide);
    const Memory<float> gradients(from.gradients, Access::kWide),
        step(std::vector<float>{3.0f}, Access::kWide), first_map(from.first_map, Access::kWide),
        second_map(from.second_map, Access::kWide);
    Memory<uint8_t> first(from.first, Access::kWide), second(from.second, Access::kWide);
    EXPECT_EQ(
        AdamW8Bit(values.data(), gradients.data(), {first.data(), first_largest.data(), first_map.data()},
                  {second.data(), second_largest.data(), second_map.data()}, values.size(), kHyperparameters,
                  step.data(), divisor, found_inf, rate, nullptr),
        cudaSuccess);
    return AllValues(values, first, first_largest, second, second_largest);
  });
}

TEST(CudaAdamW8BitTest, HasTheBitsOfTheCpu) {
  for (const int64_t count : {kMomentBlock, 3 * kMomentBlock + 100}) {
    const Quantized before = RandomQuantized(count);
    const float divisor = 4;
    const double rate = 0.5;
    AdamWHyperparameters half = kHyperparameters;
    half.learning_rate *= rate;
    Quantized after = before;
    cpu::UpdateAdamW8Bit(CoefficientsOf(half, 3, 4), after.gradients.data(), after.values.data(),
                         {after.first.data(), after.first_largest.data(), after.first_map.data()},
                         {after.second.data(), after.second_largest.data(), after.second_map.data()}, count);
    std::vector<double> exact;
    const auto add = [&](const auto& numbers) { exact.insert(exact.end(), numbers.begin(), numbers.end()); };
    add(after.values);
    add(after.first);
    add(after.first_largest);
    add(after.second);
    add(after.second_largest);
    EXPECT_EQ(Updated(before, &divisor, nullptr, &rate), exact);
  }
}

TEST(CudaAdamW8BitTest, StoresTheNearestOfTheValuesOfItsMap) {
  const Quantized before = RandomQuantized(kMomentBlock);
  const std::vector<double> after = Updated(before, nullptr, nullptr);
  const size_t codes = kMomentBlock;
  for (size_t i = 0; i < codes; ++i) {
    const double was = static_cast<double>(before.first_map[before.first[i]]) * before.first_largest[0];
    const double moment = 0.9 * was + 0.1 * static_cast<double>(before.gradients[i]);
    const double largest = after[2 * codes],
                 stored =
                     static_cast<double>(before.first_map[static_cast<size_t>(after[codes + i])]) * largest;
    EXPECT_LE(std::fabs(stored - moment), largest / 255 + 1e-6);
  }
}

TEST(CudaAdamW8BitTest, ChangesNothingAfterABadStep) {
  const Quantized before = RandomQuantized(300);
  const float found_inf = 1;
  const std::vector<double> after = Updated(before, nullptr, &found_inf);
  EXPECT_TRUE(std::equal(before.values.begin(), before.values.end(), after.begin()));
  EXPECT_TRUE(std::equal(before.first.begin(), before.first.end(), after.begin() + 300));
}

TEST(CudaAdamW8BitTest, OfNothingLaunchesNothing) {
  cuda_emulation::ResetLaunchCounts();
  const Moments8Bit none{};
  EXPECT_EQ(AdamW8Bit(nullptr, nullptr, none, none, 0, kHyperparameters, nullptr, nullptr, nullptr, nullptr,
                      nullptr),
            cudaSuccess);
  EXPECT_TRUE(cuda_emulation::LaunchCounts().empty());
}

}  // namespace
}  // namespace trainwright::cuda
