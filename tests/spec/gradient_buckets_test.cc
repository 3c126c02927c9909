#include "lib/spec/gradient_buckets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace trainwright {
namespace {

TEST(CutIntoBucketsTest, JoinsSegmentsFromTheEndAndCutsLargeOnes) {
  const std::vector<GradientBucket> expected = {{7, 4}, {8, 2}, {4, 1}, {8, 0}, {2, 0}};
  EXPECT_EQ(CutIntoBuckets({10, 4, 4, 4, 7}, 8), expected);
  // What is left of a large segment takes the next one along.
  EXPECT_EQ(CutIntoBuckets({4, 10}, 8), (std::vector<GradientBucket>{{8, 1}, {6, 0}}));
}

TEST(CutIntoBucketsTest, IsOneBucketWhereItIsLargeEnough) {
  EXPECT_EQ(CutIntoBuckets({5, 0, 6, 7}, 18), (std::vector<GradientBucket>{{18, 0}}));
  EXPECT_TRUE(CutIntoBuckets({}, 8).empty());
  EXPECT_TRUE(CutIntoBuckets({0, 0}, 8).empty());
}

TEST(CutIntoBucketsTest, EachElementTravelsOnceInOrderAndNoTwoBucketsCouldHaveBeenOne) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<int64_t> segments(1 + random() % 12);
    for (int64_t& elements : segments) elements = static_cast<int64_t>(random() % 40);
    const auto most = static_cast<int64_t>(1 + random() % 30);
    const std::vector<GradientBucket> buckets = CutIntoBuckets(segments, most);
    // Element by element from the end: the segment that each lies in.
    std::vector<size_t> segment_of;
    for (size_t segment = segments.size(); segment-- > 0;) {
      segment_of.insert(segment_of.end(), static_cast<size_t>(segments[segment]), segment);
    }
    size_t begin = 0;
    for (size_t i = 0; i < buckets.size(); ++i) {
      const auto size = static_cast<size_t>(buckets[i].elements);
      ASSERT_GE(buckets[i].elements, 1);
      ASSERT_LE(buckets[i].elements, most);
      ASSERT_LE(begin + size, segment_of.size());
      EXPECT_EQ(buckets[i].lowest_segment, segment_of[begin + size - 1]);
      const bool cut =
          begin + size < segment_of.size() && segment_of[begin + size] == buckets[i].lowest_segment;
      if (cut) {
        EXPECT_EQ(segment_of[begin], buckets[i].lowest_segment);
        EXPECT_EQ(buckets[i].elements, most);
      } else if (i + 1 < buckets.size()) {
        EXPECT_GT(buckets[i].elements + segments[segment_of[begin + size]], most);
      }
      begin += size;
    }
    EXPECT_EQ(begin, segment_of.size());
  }
}

}  // namespace
}  // namespace trainwright
