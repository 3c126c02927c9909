#include "lib/scaling/world_estimates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/scaling/world_report.h"

namespace trainwright {
namespace {

using testing::HasSubstr;

constexpr int64_t kElements = 64 * kReductionBlock;

WorldRequest Request() {
  return {.worlds = {2, 8},
          .link = {.bytes_per_s = 1e9, .latency_s = 1e-6},
          .plan = {.accum = 1,
                   .bucket_bytes = kElements,  // a quarter of the elements
                   .segment_elements = {kElements / 4, kElements / 2, kElements / 4}},
          .passes = {.batch = 2, .sequence_tokens = 100},
          .costs = {.passes_s = {.forward = 1, .backward = {0, 1, 0.5}}, .update_s = 0.5},
          .batch_tokens = 200,
          .samples = "every sample has 100 tokens",
          .computing = "A rank computes.",
          .device = "a device",
          .memory_bytes = 18 * kElements,
          .memory_of = [](const PassesChoice&) {
            return MemoryParts{
                .parameters = 4 * kElements, .gradients = 4 * kElements, .optimizer = 8 * kElements};
          }};
}

TEST(EstimateWorldsTest, TellsEachWayOfShardingOfEachWorld) {
  const WorldEstimates estimates = EstimateWorlds(Request());
  ASSERT_EQ(estimates.worlds.size(), 2u);
  const WorldEstimate& eight = estimates.worlds[1];
  EXPECT_EQ(eight.ranks, 8);
  ASSERT_EQ(eight.rows.size(), 3u);
  EXPECT_EQ(eight.rows[1].memory.parts.optimizer, kElements);
  EXPECT_EQ(eight.rows[0].step.gradients.sent_bytes, 2 * 7 * 4 * (kElements / 8));
  EXPECT_DOUBLE_EQ(eight.rows[0].tokens_per_s, 2 * 100 * 8 / eight.rows[0].step.step_s);
  EXPECT_TRUE(estimates.fits());
}

TEST(EstimateWorldsTest, WithAccumulationTellsBothFormsOfTheSecondStage) {
  WorldRequest request = Request();
  request.plan.accum = 2;
  request.plan.sharding = Sharding::kGradients;
  const WorldEstimate eight = EstimateWorlds(request).worlds[1];
  ASSERT_EQ(eight.rows.size(), 4u);
  EXPECT_EQ(eight.asked, 2u);
  EXPECT_EQ(eight.rows[3].step.gradients.sent_bytes, 2 * eight.rows[2].step.gradients.sent_bytes);
  EXPECT_LT(eight.rows[3].memory.parts.gradients, eight.rows[2].memory.parts.gradients);
  request.plan.accumulation = ZeroAccumulation::kReduce;
  EXPECT_EQ(EstimateWorlds(request).worlds[1].asked, 3u);
}

TEST(EstimateWorldsTest, DoesNotFitWhereOneOfItsWorldsDoesNot) {
  WorldRequest request = Request();
  request.plan.sharding = Sharding::kOptimizer;
  request.memory_bytes = 12 * kElements;  // 8 + 8 / W bytes an element, and the buckets
  const WorldEstimates estimates = EstimateWorlds(request);
  EXPECT_NE(estimates.worlds[0].fit.verdict, FitVerdict::kFits);
  EXPECT_FALSE(estimates.fits());
}

TEST(WorldReportTest, PrintsARowAStageTheReasonAndEveryAssumption) {
  WorldRequest request = Request();
  request.memory_bytes = 1000;
  const WorldEstimates estimates = EstimateWorlds(request);
  const std::string text = FormatWorlds(request, estimates);
  EXPECT_THAT(text, HasSubstr("zero 2"));
  EXPECT_THAT(text, HasSubstr("ddp *"));
  EXPECT_THAT(text, HasSubstr("tensor or pipeline parallelism"));
  EXPECT_THAT(text, HasSubstr("optimizer's moments"));
  EXPECT_THAT(text, HasSubstr("1.0 us"));
  std::string words = text;  // of one line
  for (size_t at = 0; (at = words.find("\n  ", at)) != std::string::npos;) words.replace(at, 3, " ");
  for (const std::string& assumption : estimates.assumptions) EXPECT_THAT(words, HasSubstr(assumption));
}

TEST(WorldReportTest, TellsTheTimeThatMessagesTakeWhateverTheBandwidth) {
  WorldRequest request = Request();
  request.worlds = {2};
  request.link.latency_s = 0.002;
  // Of two ranks a sum is two messages: four buckets of gradients, and the small ones.
  constexpr double kMessages = 2 * (4 + kSmallExchanges);
  for (const double bytes_per_s : {1e6, 1e12}) {
    request.link.bytes_per_s = bytes_per_s;
    const WorldEstimates estimates = EstimateWorlds(request);
    const nlohmann::ordered_json json = EncodeWorlds(request, estimates);
    EXPECT_DOUBLE_EQ(json.at("worlds").at(0).at("sharding").at(0).at("latency_time_s"), kMessages * 0.002);
    EXPECT_THAT(FormatWorlds(request, estimates), HasSubstr(" 36.0 ms "));
  }
}

TEST(WorldReportTest, EncodesWhatIsNotKnownAsNull) {
  WorldRequest request = Request();
  request.costs.passes_s = request.costs.passes_s.ScaledTo(0);
  request.memory_bytes = 0;
  const nlohmann::ordered_json json = EncodeWorlds(request, EstimateWorlds(request));
  const nlohmann::ordered_json& row = json.at("worlds").at(0).at("sharding").at(0);
  EXPECT_TRUE(row.at("step_time_s").is_null());
  EXPECT_TRUE(row.at("fits").is_null());
  EXPECT_EQ(row.at("gradients").at("sent_bytes"), 4 * kElements);
  EXPECT_EQ(json.at("worlds").at(0).at("verdict"), "not known");
  EXPECT_EQ(json.at("fits"), true);
}

}  // namespace
}  // namespace trainwright
