#include "lib/train/batch_fit.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "tests/model/families.h"
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

  TrainPlan plan_ = test::TinyPlan();
  const MemoryRequest request_ = {.model = test::TinyModel(), .optimizers = BuiltInOptimizers()};
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
  plan_.exact_world = 0;
  plan_.ranks = 2;
  EXPECT_EQ(Fit({}, BytesOf(6)).batch, std::nullopt);
}

TEST(MemoryToFitTest, LeavesAPartForWhatOnlyARunShowsAndTheSlicesOfTheHead) {
  EXPECT_EQ(MemoryToFit(1000, 50), 850 - 800 / 8);
  EXPECT_EQ(MemoryToFit(1000, 900), 850);
  EXPECT_EQ(MemoryToFit(0, 0), 0);
}

}  // namespace
}  // namespace trainwright
