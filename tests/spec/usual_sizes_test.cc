#include "lib/spec/usual_sizes.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace trainwright {
namespace {

TEST(UsualSizesTest, AMicroBatchHasAsManyWholeSamplesAsTheUsualTokensAndAtLeastOne) {
  for (const bool gpu : {false, true}) {
    for (const int64_t sample_tokens : {1, 7, 256, 1000, 2048, 2049, 16384, 100000}) {
      int64_t samples = 1;
      while ((samples + 1) * sample_tokens <= UsualMicroBatchTokens(gpu)) ++samples;
      EXPECT_EQ(UsualBatch(sample_tokens, gpu), samples) << sample_tokens;
    }
  }
}

TEST(UsualSizesTest, AStepOfMeasuredMicroBatchesHasTheFewestThatMakeSixteenSamplesOverAllRanks) {
  for (int64_t batch = 1; batch <= 40; ++batch) {
    for (int64_t ranks = 1; ranks <= 20; ++ranks) {
      int64_t samples = batch * ranks, accum = 1;
      for (; samples < 16; samples += batch * ranks) ++accum;
      EXPECT_EQ(AccumOfMeasuredBatch(batch, ranks), accum) << batch << " on " << ranks << " ranks";
    }
  }
}

}  // namespace
}  // namespace trainwright
