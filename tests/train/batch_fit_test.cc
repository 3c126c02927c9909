#include "lib/train/batch_fit.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "tests/model/families.h"
#include "tests/support/on_ranks.h"
#include "tests/train/tiny_training.h"

namespace trainwright {
namespace {

class BatchFitTest : public testing::Test {
 protected:
  BatchFitTest() {
    plan_.batch = 24;
    plan_.accum = 1;
    plan_.sequence_tokens = 64;
  }
  int64_t BytesOf(int64_t samples) const {
    return TrainingMemory(test::Families(), request_, EqualSamples(samples, plan_.sequence_tokens))
        .of_model();
  }
  TrainSettings Fit(const TrainSettings& asked, int64_t memory_bytes) const {
    ChoiceLog log(/*quiet=*/true);
    return FitBatch(asked, test::Families(), request_, plan_, memory_bytes, &log);
  }
  /// \param memory_bytes of each rank
  std::vector<TrainSettings> FitRanks(const std::vector<int64_t>& memory_bytes) {
    plan_.ranks = request_.ranks = static_cast<int64_t>(memory_bytes.size());
    return test::OnRanks(plan_.ranks, [&](World* world) {
      return Fit({}, LeastOfRanks(world, memory_bytes[static_cast<size_t>(world->rank())]));
    });
  }

  TrainPlan plan_ = test::TinyPlan();
  MemoryRequest request_ = {.model = test::TinyModel(), .optimizers = BuiltInOptimizers()};
};

TEST_F(BatchFitTest, HalvesItUntilItFitsAndKeepsTheSamplesOfAStep) {
  const TrainSettings fitted = Fit({}, BytesOf(6));
  EXPECT_EQ(fitted.batch, 6);
  EXPECT_EQ(fitted.accum, 4);
}

TEST_F(BatchFitTest, OfANumberThatCannotBeDividedAStepGetsALittleMore) {
  plan_.batch = 13;
  const TrainSettings fitted = Fit({}, BytesOf(6));
  EXPECT_EQ(fitted.batch, 5);
  EXPECT_EQ(fitted.accum, 3);
}

TEST_F(BatchFitTest, LeavesWhatFitsOrWhatNothingWouldMend) {
  for (const int64_t memory_bytes : {BytesOf(24), BytesOf(1) - 1, int64_t{0}}) {
    EXPECT_EQ(Fit({}, memory_bytes).batch, std::nullopt) << memory_bytes;
  }
}

TEST_F(BatchFitTest, LeavesWhatSomebodyChose) {
  TrainSettings asked;
  asked.batch = 24;
  EXPECT_EQ(Fit(asked, BytesOf(6)).batch, 24);
  asked = {};
  asked.accum = 2;
  EXPECT_EQ(Fit(asked, BytesOf(6)).batch, std::nullopt);
  asked = {};
  asked.max_tokens_per_batch = 100;
  EXPECT_EQ(Fit(asked, BytesOf(6)).batch, std::nullopt);
  asked = {};
  asked.find_batch = true;
  EXPECT_EQ(Fit(asked, BytesOf(6)).batch, std::nullopt);
  plan_.exact_world = 2;
  EXPECT_EQ(Fit({}, BytesOf(6)).batch, std::nullopt);
}

TEST_F(BatchFitTest, RanksTakeWhatFitsTheOneWithTheLeastMemory) {
  request_.ranks = 3;
  const int64_t least_bytes = BytesOf(6);
  for (const TrainSettings& fitted : FitRanks({BytesOf(24), least_bytes, BytesOf(12)})) {
    EXPECT_EQ(fitted.batch, 6);
    EXPECT_EQ(fitted.accum, 4);
  }
}

TEST_F(BatchFitTest, RanksLeaveWhatOneDoesNotKnowOrWhatNothingWouldMendOnOne) {
  request_.ranks = 2;
  for (const int64_t other_bytes : {int64_t{0}, BytesOf(1) - 1}) {
    for (const TrainSettings& fitted : FitRanks({BytesOf(6), other_bytes})) {
      EXPECT_EQ(fitted.batch, std::nullopt) << other_bytes;
      EXPECT_EQ(fitted.accum, std::nullopt) << other_bytes;
    }
  }
}

/// A rank that gives the gradients of its one micro-batch away keeps them once it has several.
TEST_F(BatchFitTest, RanksCountTheGradientsThatTheyKeepForTheirOtherMicroBatches) {
  plan_.zero = 2;
  plan_.zero_accumulation = ZeroAccumulation::kKeep;
  plan_.sequence_tokens = 16;
  plan_.ranks = request_.ranks = 8;
  request_.model.num_layers = 8;
  request_.model.hidden_size = 256;
  request_.model.intermediate_size = 1024;
  request_.model.head_dim = request_.model.hidden_size / request_.model.num_heads;
  request_.sharding = Sharding::kGradients;
  request_.exchange.bucket_bytes = 1 << 18;
  request_.gives_gradients_away = false;
  const int64_t memory_bytes = BytesOf(6);
  request_.gives_gradients_away = plan_.gives_gradients_away();
  ASSERT_GT(BytesOf(24), memory_bytes);
  ASSERT_LE(BytesOf(12), memory_bytes) << "12 samples fit where gradients are given away";
  for (const TrainSettings& fitted : FitRanks(std::vector<int64_t>(8, memory_bytes))) {
    EXPECT_EQ(fitted.batch, 6);
  }
}

TEST(MemoryToFitTest, LeavesAPartForWhatOnlyARunShowsAndTheSlicesOfTheHead) {
  EXPECT_EQ(MemoryToFit(1000, 50), 850 - 800 / 8);
  EXPECT_EQ(MemoryToFit(1000, 900), 850);
  EXPECT_EQ(MemoryToFit(0, 0), 0);
}

}  // namespace
}  // namespace trainwright
