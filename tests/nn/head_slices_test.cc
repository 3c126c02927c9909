#include "lib/nn/loss/head_slices.h"

#include <gtest/gtest.h>

namespace trainwright {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

TEST(HeadSlicesTest, WithoutAChoiceASliceIsOfThirtyTwoMillionLogits) {
  EXPECT_EQ(HeadSliceRows(0, 50257, 65536), 667);
  EXPECT_EQ(HeadSliceRows(0, 128256, 100), 261);
  EXPECT_EQ(HeadSliceRows(0, 5, 9000), 4096);
  EXPECT_EQ(HeadSliceRows(0, int64_t{1} << 24, 9000), 64);
}

TEST(HeadSlicesTest, AnEighthOfWhatIsFreeHoldsTheLogits) {
  EXPECT_EQ(HeadSliceLogits(8 * kGiB, 50304, 65536, 2), (kGiB / 2) / 50304 * 50304);
  EXPECT_EQ(HeadSliceLogits(8 * kGiB, 50304, 65536, 4), (kGiB / 4) / 50304 * 50304);
}

TEST(HeadSlicesTest, AMicroBatchThatFitsIsOneSlice) {
  const int64_t logits = HeadSliceLogits(72 * kGiB, 50304, 65536, 2);
  EXPECT_EQ(logits, int64_t{50304} * 65536);
  EXPECT_EQ(HeadSliceRows(logits, 50304, 65536), 65536);
  EXPECT_EQ(HeadSliceRows(logits, 50304, 65001), 65001);
  EXPECT_EQ(HeadSliceRows(logits, 50304, 0), 1);
}

TEST(HeadSlicesTest, WithLittleOrUnknownMemoryASliceIsNoSmallerThanWithoutAChoice) {
  for (const int64_t free_bytes : {int64_t{0}, int64_t{1}, kGiB / 8}) {
    EXPECT_EQ(HeadSliceLogits(free_bytes, 50304, 65536, 2), kHeadSliceLogits);
  }
  EXPECT_EQ(HeadSliceLogits(72 * kGiB, 128, 64, 2), kHeadSliceLogits);
}

TEST(HeadSlicesTest, SlicesAreAsFewAsTheLogitsAllowAndOfAboutOneSize) {
  for (const int64_t vocabulary : {128, 50304, 128256}) {
    for (const int64_t logits : {int64_t{1} << 25, int64_t{1} << 28, int64_t{3} << 29}) {
      for (const int64_t rows : {1, 127, 128, 4097, 16384, 65536, 1000003}) {
        SCOPED_TRACE(std::to_string(vocabulary) + ", " + std::to_string(logits) + ", " +
                     std::to_string(rows));
        const int64_t size = HeadSliceRows(logits, vocabulary, rows), slices = (rows + size - 1) / size;
        EXPECT_LE(size * vocabulary, logits);
        if (slices == 1) continue;
        EXPECT_EQ(size % 128, 0);
        EXPECT_LT((slices - 1) * (logits / vocabulary / 128 * 128), rows);  // one less would not hold them
        EXPECT_LE(slices * size - rows, slices * 128);  // the last lacks no more than what rounding adds
      }
    }
  }
}

TEST(HeadSlicesTest, AVocabularyIsPaddedToTheNextMultiple) {
  EXPECT_EQ(PaddedVocabulary(50257, 128), 50304);
  EXPECT_EQ(PaddedVocabulary(128256, 128), 128256);
  EXPECT_EQ(PaddedVocabulary(50257, 1), 50257);
}

}  // namespace
}  // namespace trainwright
