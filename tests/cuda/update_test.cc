// The end of a step: the gradients' norm, what it decides, and the update with moments in bf16.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "lib/nn/update/bf16_moments_cpu.h"
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

}  // namespace
}  // namespace trainwright::cuda
