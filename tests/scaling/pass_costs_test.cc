#include "lib/scaling/pass_costs.h"

#include <gtest/gtest.h>

#include "tests/spec/two_layers.h"

namespace trainwright {
namespace {

/// Forward: 2 * 6 * 2 * 576 = 13824 and 13 * 4 * 4 * 2 * 2 = 832 in the layers, 2 * 5 * 8 * 10 = 800 in the
/// head.
const TokenCounts kCounts = {.tokens = 6, .labels = 5, .attention_pairs = 13};
constexpr double kLayers = 13824 + 832, kHead = 800;

PassCosts Count(ActivationCheckpointing checkpointing, const FineTuning& tuning, size_t segments) {
  return CountPassFlops(test::TwoLayers(), tuning, checkpointing, kCounts, segments);
}

TEST(CountPassFlopsTest, AreTheHandComputedOnesOfEachSegment) {
  const PassCosts costs = Count(ActivationCheckpointing::kNo, {}, 4);
  EXPECT_DOUBLE_EQ(costs.forward, kLayers + kHead);
  ASSERT_EQ(costs.backward.size(), 4u);
  EXPECT_DOUBLE_EQ(costs.backward[0], 0);  // embeddings
  EXPECT_DOUBLE_EQ(costs.backward[1], kLayers);
  EXPECT_DOUBLE_EQ(costs.backward[2], kLayers);
  EXPECT_DOUBLE_EQ(costs.backward[3], 2 * kHead);
  EXPECT_DOUBLE_EQ(costs.total(), TrainingFlops(test::TwoLayers(), kCounts));
}

TEST(CountPassFlopsTest, FullRecomputationRepeatsAllLayersButTheLast) {
  const PassCosts kept = Count(ActivationCheckpointing::kNo, {}, 4),
                  again = Count(ActivationCheckpointing::kFull, {}, 4);
  EXPECT_DOUBLE_EQ(again.total() - kept.total(), kLayers / 2);
  EXPECT_EQ(again.forward, kept.forward);
}

TEST(CountPassFlopsTest, AdaptersAreDoneAtTheEndOfThePass) {
  const FineTuning tuning = {.lora = LoraOptions{.rank = 2, .alpha = 4}};
  const PassCosts costs = Count(ActivationCheckpointing::kNo, tuning, 1);
  EXPECT_DOUBLE_EQ(costs.forward, kLayers + kHead);
  EXPECT_DOUBLE_EQ(costs.total(), CountStepFlops(test::TwoLayers(), tuning).Of(kCounts));
}

TEST(PassCostsTest, AreScaledInProportion) {
  const PassCosts scaled = Count(ActivationCheckpointing::kFull, {}, 4).ScaledTo(3);
  EXPECT_DOUBLE_EQ(scaled.total(), 3);
  EXPECT_DOUBLE_EQ(scaled.backward[1], scaled.backward[2]);
  EXPECT_EQ(PassCosts().ScaledTo(3).total(), 0);
}

}  // namespace
}  // namespace trainwright
