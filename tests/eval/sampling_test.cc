#include "lib/eval/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "lib/base/rng.h"
#include "lib/eval/repetition.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

uint32_t Choose(const std::vector<float>& logits, const SamplingOptions& options, double uniform = 0) {
  return ChooseToken(logits.data(), static_cast<int64_t>(logits.size()), options, uniform);
}

std::vector<float> RandomLogits(int64_t vocabulary, double spread, uint64_t seed) {
  std::vector<float> logits;
  for (int64_t i = 0; i < vocabulary; ++i) {
    logits.push_back(static_cast<float>(spread * Rng(seed, "logits").Normal(static_cast<uint64_t>(i))));
  }
  return logits;
}

/// The probabilities that are meant, slowly: everything sorted, in double.
std::vector<double> Distribution(const std::vector<float>& logits, const SamplingOptions& options) {
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  if (options.top_k > 0) order.resize(std::min(order.size(), static_cast<size_t>(options.top_k)));
  std::vector<double> weights(logits.size(), 0);
  double total = 0;
  for (const size_t i : order) {
    weights[i] = std::exp((static_cast<double>(logits[i]) - logits[order[0]]) / options.temperature);
    total += weights[i];
  }
  double seen = 0, kept = 0;
  for (const size_t i : order) {
    if (seen >= options.top_p * total) {
      weights[i] = 0;
    } else {
      kept += weights[i];
    }
    seen += weights[i];
  }
  for (double& weight : weights) {
    if (weight >= options.min_p) continue;
    kept -= weight;
    weight = 0;
  }
  for (double& weight : weights) weight /= kept;
  return weights;
}

TEST(ChooseTokenTest, AtTemperature0TakesTheFirstOfTheLargest) {
  EXPECT_EQ(Choose({1, 3, -2, 3}, {}), 1u);
  EXPECT_EQ(Choose({-kInfinity, -5}, {}), 1u);
  EXPECT_EQ(Choose({1, 3, 2}, {.temperature = 1, .top_k = 1}, 0.99), 1u);
}

TEST(ChooseTokenTest, DrawsWithTheProbabilitiesOfASlowSort) {
  constexpr int64_t kDraws = 4000;
  const SamplingOptions cases[] = {{.temperature = 1},
                                   {.temperature = 0.3},
                                   {.temperature = 2, .top_k = 7},
                                   {.temperature = 1, .top_p = 0.9},
                                   {.temperature = 0.7, .top_k = 40, .top_p = 0.8},
                                   {.temperature = 5, .top_k = 1000, .top_p = 0.999},
                                   {.temperature = 1, .top_p = 1e-9},
                                   {.temperature = 1, .min_p = 0.05},
                                   {.temperature = 2, .min_p = 0.7},
                                   {.temperature = 1, .top_p = 0.9, .min_p = 0.01},
                                   {.temperature = 1, .top_p = 0.9, .min_p = 0.4},
                                   {.temperature = 0.7, .top_k = 40, .top_p = 0.95, .min_p = 0.2},
                                   {.temperature = 1, .min_p = 1}};
  for (const double spread : {0.1, 3.0}) {  // flat: the set of top_p holds most of the vocabulary
    for (const int64_t vocabulary : {300, 3000}) {
      const std::vector<float> logits = RandomLogits(vocabulary, spread, 5);
      for (const SamplingOptions& options : cases) {
        const std::vector<double> expected = Distribution(logits, options);
        std::vector<double> observed(logits.size(), 0);
        // Evenly spaced numbers hit each token as often as its probability says, to within one.
        for (int64_t i = 0; i < kDraws; ++i) ++observed[Choose(logits, options, (i + 0.5) / kDraws)];
        for (size_t i = 0; i < logits.size(); ++i) {
          ASSERT_NEAR(observed[i] / kDraws, expected[i], 1.5 / kDraws + 2e-5)
              << "token " << i << ", temperature " << options.temperature << ", top_k " << options.top_k
              << ", top_p " << options.top_p << ", min_p " << options.min_p << ", spread " << spread
              << ", vocabulary " << vocabulary;
        }
      }
    }
  }
}

TEST(ChooseTokenTest, DrawsWithTheProbabilitiesOfTransformers) {
  constexpr int64_t kDraws = 100000;
  const auto cases = nlohmann::json::parse(
      test::ReadFile(std::string(TRAINWRIGHT_SOURCE_DIR) + "/tests/eval/fixtures/sampling.json"));
  ASSERT_GE(cases.size(), 7u);
  for (const nlohmann::json& one : cases) {
    auto logits = one.at("logits").get<std::vector<float>>();
    const SamplingOptions options = {.temperature = one.at("temperature"),
                                     .top_k = one.value("top_k", int64_t{0}),
                                     .top_p = one.value("top_p", 1.0),
                                     .min_p = one.value("min_p", 0.0)};
    PenalizeRepetition(one.at("seen").get<std::vector<uint32_t>>(), one.value("repetition_penalty", 1.0),
                       logits);
    const auto expected = one.at("probabilities").get<std::vector<double>>();
    std::vector<double> observed(expected.size(), 0);
    for (int64_t i = 0; i < kDraws; ++i) ++observed[Choose(logits, options, (i + 0.5) / kDraws)];
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(observed[i] / kDraws, expected[i], 1.5 / kDraws + 2e-6)
          << "token " << i << " of " << one.dump();
      if (expected[i] == 0) {
        EXPECT_EQ(observed[i], 0) << "token " << i << " of " << one.dump();
      }
    }
  }
}

TEST(ChooseTokenTest, TokensOfProbability0AreNeverDrawn) {
  const std::vector<float> logits = {-kInfinity, 0, -kInfinity, 0, -kInfinity};
  for (const double uniform : {0.0, 0.25, 0.5, 0.999999999}) {
    for (const double top_p : {1.0, 0.999}) {
      EXPECT_EQ(Choose(logits, {.temperature = 1, .top_p = top_p}, uniform) % 2, 1u) << uniform;
    }
  }
}

TEST(ChooseTokenTest, LogitsThatAreNotNumbersAreRefused) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::vector<float>& logits :
       {std::vector<float>{0, nan, 1}, {nan, 5}, {-kInfinity, -kInfinity}, {kInfinity, 0}}) {
    for (const double temperature : {0.0, 1.0}) {
      EXPECT_EQ(test::CodeOf([&] { Choose(logits, {.temperature = temperature}, 0.5); }),
                ErrorCode::kNonFinite);
    }
  }
}

TEST(CheckSamplingTest, NamesTheFlagOfAValueOutOfRange) {
  const auto message = [](const SamplingOptions& options) {
    return test::MessageOf([&] { CheckSampling(options); });
  };
  EXPECT_NE(message({.temperature = -1}).find("--temperature"), std::string::npos);
  EXPECT_NE(message({.temperature = std::nan("")}).find("--temperature"), std::string::npos);
  EXPECT_NE(message({.top_k = -1}).find("--top-k"), std::string::npos);
  EXPECT_NE(message({.top_p = 0}).find("--top-p"), std::string::npos);
  EXPECT_NE(message({.top_p = 1.5}).find("--top-p"), std::string::npos);
  EXPECT_NE(message({.min_p = -0.1}).find("--min-p"), std::string::npos);
  EXPECT_NE(message({.min_p = 1.1}).find("--min-p"), std::string::npos);
  EXPECT_NE(message({.repetition_penalty = 0}).find("--repetition-penalty"), std::string::npos);
  EXPECT_NE(message({.repetition_penalty = 1e-40}).find("--repetition-penalty"), std::string::npos);
  EXPECT_NE(message({.repetition_penalty = kInfinity}).find("--repetition-penalty"), std::string::npos);
  CheckSampling({});
}

}  // namespace
}  // namespace trainwright
