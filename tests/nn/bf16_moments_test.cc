#include "lib/nn/update/bf16_moments_cpu.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "lib/base/rng.h"
#include "tests/support/support.h"

namespace trainwright::cpu {
namespace {

struct State {
  std::vector<float> values, gradients;
  std::vector<uint16_t> first, second;
  bool operator==(const State&) const = default;
};

float Widen(uint16_t stored) {
  return std::bit_cast<float>(static_cast<uint32_t>(stored) << 16);
}

/// Random numbers of many magnitudes, some of them zero; second moments are not negative.
State RandomState(size_t size) {
  const Rng rng(test::TestSeed(), "bf16 moments");
  State state;
  for (size_t i = 0; i < size; ++i) {
    const auto normal = [&](uint64_t which) {
      const int exponent = static_cast<int>(rng.Bits(8 * i + 2 * which + 1) % 60) - 50;
      return rng.Bits(8 * i + which) % 17 == 0
                 ? 0.0f
                 : static_cast<float>(std::ldexp(rng.Normal(8 * i + which), exponent));
    };
    state.values.push_back(normal(0));
    state.gradients.push_back(normal(1));
    state.first.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(normal(2)) >> 16));
    state.second.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(std::fabs(normal(3))) >> 16));
  }
  return state;
}

/// By the definition: the two neighbours in bf16, and the upper with the probability of the way to it.
uint16_t RoundedByDefinition(float value, uint32_t random) {
  const auto below = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);  // nearer to zero
  const float lower = Widen(below);
  if (lower == value || !std::isfinite(Widen(static_cast<uint16_t>(below + 1)))) return below;
  const double upper = Widen(static_cast<uint16_t>(below + 1));
  const double share = (static_cast<double>(value) - lower) / (upper - lower);
  return static_cast<double>(random) >= 65536.0 * (1.0 - share) ? static_cast<uint16_t>(below + 1) : below;
}

/// An element after the other, in the order of the formulas, every operation rounded to fp32 by itself.
void UpdateOneByOne(const AdamWCoefficients& c, State* state) {
  for (size_t i = 0; i < state->values.size(); ++i) {
    const uint64_t key = Mix64(c.key + i / 4096);
    const auto low = static_cast<uint32_t>(key), high = static_cast<uint32_t>(key >> 32);
    const auto hash = [](uint32_t x) {
      x = (x ^ x >> 16) * 0x7FEB352Du;
      x = (x ^ x >> 15) * 0x846CA68Bu;
      return x ^ x >> 16;
    };
    const uint32_t random = hash(hash(static_cast<uint32_t>(i % 4096) * 0x9E3779B9u + low) ^ high);
    // volatile: nothing is kept in more bits, nor contracted.
    volatile float g = state->gradients[i] / c.divisor, before = Widen(state->first[i]);
    volatile float difference = g - before, part = c.first * difference, first = before + part;
    volatile float square = g * g, old = c.beta2 * Widen(state->second[i]), fresh = c.second * square;
    volatile float second = old + fresh, root = std::sqrt(second), scaled = root * c.second_scale;
    volatile float denominator = scaled + c.epsilon, ratio = first / denominator, step = c.step_size * ratio;
    volatile float decayed = state->values[i] * c.decay;
    state->values[i] = decayed - step;
    state->first[i] = RoundedByDefinition(first, random & 0xFFFF);
    state->second[i] = RoundedByDefinition(second, random >> 16);
  }
}

AdamWCoefficients Coefficients(double step = 7) {
  return CoefficientsOf({1e-2, 0.9, 0.999, 0.1, 1e-8, 12345}, step, /*divisor=*/3.0);
}

struct Set {
  const char* name;
  Bf16MomentsKernel kernel;
};

std::vector<Set> SetsOfThisProcessor() {
  std::vector<Set> sets = {{"baseline", UpdateBf16MomentsBaseline}};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) sets.push_back({"avx2", UpdateBf16MomentsAvx2});
  if (BestBf16MomentsKernel() == UpdateBf16MomentsAvx512) sets.push_back({"avx512", UpdateBf16MomentsAvx512});
#endif
  return sets;
}

void Update(Bf16MomentsKernel kernel, const AdamWCoefficients& c, State* state, int64_t begin, int64_t end) {
  kernel(c, state->gradients.data() + begin, state->values.data() + begin, state->first.data() + begin,
         state->second.data() + begin, begin, end - begin);
}

TEST(Bf16MomentsTest, EveryInstructionSetHasTheBitsOfOneElementAfterTheOther) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  for (const size_t size : {size_t{1}, size_t{5}, size_t{4096}, size_t{10007}}) {
    State expected = RandomState(size);
    const State start = expected;
    UpdateOneByOne(Coefficients(), &expected);
    for (const Set& set : SetsOfThisProcessor()) {
      State state = start;
      Update(set.kernel, Coefficients(), &state, 0, static_cast<int64_t>(size));
      EXPECT_TRUE(state == expected) << set.name << ", " << size << " elements";
    }
  }
}

TEST(Bf16MomentsTest, HowTheElementsAreCutIntoRangesChangesNoBit) {
  State whole = RandomState(10007);
  State cut = whole;
  const Bf16MomentsKernel kernel = BestBf16MomentsKernel();
  Update(kernel, Coefficients(), &whole, 0, 10007);
  for (const auto& [begin, end] : {std::pair{4097, 10007}, {0, 3}, {3, 4096}, {4096, 4097}}) {
    Update(kernel, Coefficients(), &cut, begin, end);
  }
  EXPECT_TRUE(cut == whole);
}

TEST(RoundStochasticallyTest, TheMeanOverAllRandomNumbersIsTheValue) {
  const Rng rng(test::TestSeed(), "values");
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  for (uint64_t i = 0; i < 20; ++i) {
    const auto value = static_cast<float>(std::ldexp(rng.Normal(i), static_cast<int>(i) * 4 - 40));
    double sum = 0;
    for (uint32_t random = 0; random < 65536; ++random) sum += Widen(RoundStochastically(value, random));
    EXPECT_EQ(sum / 65536, static_cast<double>(value)) << value;
  }
}

TEST(RoundStochasticallyTest, WhatBf16HoldsStaysAndNothingFiniteBecomesInfinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float value : {0.0f, -0.0f, 1.0f, -2.5f, 0x1p-130f, Widen(0x7F7F), kInfinity, -kInfinity}) {
    for (const uint32_t random : {0u, 1u, 65535u}) {
      EXPECT_EQ(std::bit_cast<uint32_t>(Widen(RoundStochastically(value, random))),
                std::bit_cast<uint32_t>(value));
    }
  }
  const float largest = std::numeric_limits<float>::max();
  EXPECT_EQ(Widen(RoundStochastically(largest, 65535)), Widen(0x7F7F));
  EXPECT_EQ(Widen(RoundStochastically(-largest, 65535)), -Widen(0x7F7F));
  EXPECT_TRUE(std::isnan(Widen(RoundStochastically(std::bit_cast<float>(0x7F800001u), 65535))));
}

// A biased or correlated hash would show as another mean or another spread.
TEST(Bf16MomentsTest, TheStoredMomentsOfManyElementsHaveTheMeanAndSpreadOfIndependentRoundings) {
  constexpr size_t kElements = 200000;
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  // Between 1 and 1 + 2^-7, a quarter and three quarters of the way.
  const float first = 1.0f + 0x1p-9f, second = 1.0f + 3 * 0x1p-9f;
  for (const double step : {1.0, 2.0, 1000.0}) {
    AdamWCoefficients c = CoefficientsOf({0, 0, 0, 0, 1e-8, test::TestSeed()}, step, 1.0);
    c.first = 1, c.second = 1, c.beta2 = 0;  // the new moments are the gradient and its square
    const auto share = [&](float gradient, bool of_second) {
      State state;
      state.values.assign(kElements, 0.0f);
      state.gradients.assign(kElements, gradient);
      state.first.assign(kElements, 0), state.second.assign(kElements, 0);
      Update(BestBf16MomentsKernel(), c, &state, 0, kElements);
      double up = 0, pairs = 0;
      const std::vector<uint16_t>& moments = of_second ? state.second : state.first;
      for (size_t i = 0; i < kElements; ++i) {
        up += moments[i] != 0x3F80;
        pairs += i > 0 && moments[i] != 0x3F80 && moments[i - 1] != 0x3F80;
      }
      return std::pair(up / kElements, pairs / kElements);
    };
    // Five standard deviations of a mean of independent choices.
    const auto [first_up, first_pairs] = share(first, false);
    const auto [second_up, second_pairs] = share(std::sqrt(second), true);
    const auto margin = [](double p) { return 5 * std::sqrt(p * (1 - p) / kElements); };
    EXPECT_NEAR(first_up, 0.25, margin(0.25));
    EXPECT_NEAR(second_up, 0.75, margin(0.75) + 1e-4);  // the root is rounded
    EXPECT_NEAR(first_pairs, 0.0625, 2 * margin(0.0625));
    EXPECT_NEAR(second_pairs, 0.5625, 2 * margin(0.5625) + 2e-4);
  }
}

}  // namespace
}  // namespace trainwright::cpu
