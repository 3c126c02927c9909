#include "lib/spec/range_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "lib/spec/gradient_buckets.h"
#include "lib/spec/reduction_block.h"

namespace trainwright {
namespace {

constexpr int64_t kStride = 16;  ///< what all of these tests' numbers are multiples of

/// Elements of each owner, counted one after another.
std::vector<int64_t> Counted(const std::vector<ElementRange>& ranges, int64_t ranks) {
  std::vector<int64_t> counts(static_cast<size_t>(ranks));
  for (const ElementRange& range : ranges) {
    for (int64_t element = range.begin; element < range.end; element += kStride) {
      counts[static_cast<size_t>(element / kReductionBlock % ranks)] += kStride;
    }
  }
  return counts;
}

ElementRange Drawn(std::mt19937* random) {
  const auto draw = [&](int64_t most) { return static_cast<int64_t>((*random)()) % most * kStride; };
  const int64_t begin = draw(4 * kReductionBlock / kStride);
  return {.begin = begin, .end = begin + kStride + draw(12 * kReductionBlock / kStride)};
}

TEST(PlanRangesTest, CountsTheElementsOfEachOwner) {
  std::mt19937 random(5);
  for (const int64_t ranks : {1, 2, 3, 8, 64}) {
    const std::vector<ElementRange> ranges = {Drawn(&random), Drawn(&random)};
    const RangePlan plan = PlanRanges(ranges, ranks);
    EXPECT_EQ(plan.counts, Counted(ranges, ranks)) << ranks;
    EXPECT_EQ(plan.most, *std::max_element(plan.counts.begin(), plan.counts.end()));
  }
}

TEST(SizeOfRangeTest, IsThatOfThePlan) {
  std::mt19937 random(7);
  for (const int64_t ranks : {1, 2, 3, 4, 8, 64}) {
    for (int round = 0; round < 300; ++round) {
      const ElementRange range = Drawn(&random);
      EXPECT_EQ(SizeOfRange(range, ranks), PlanRanges({range}, ranks).size())
          << ranks << " ranks, from " << range.begin << " to " << range.end;
    }
  }
}

TEST(PlanInPartsTest, EachPartHasSoManyElementsAndAllAreThereOnceInTheirOrder) {
  std::mt19937 random(9);
  for (int round = 0; round < 20; ++round) {
    const ElementRange first = Drawn(&random);
    ElementRange second = Drawn(&random);
    second.begin += first.end;
    second.end += first.end;
    const int64_t most = 3 * kReductionBlock;
    const std::vector<RangePlan> plans = PlanInParts({first, second}, most, 4);
    int64_t next = first.begin;
    for (size_t i = 0; i < plans.size(); ++i) {
      if (i + 1 < plans.size()) {
        EXPECT_EQ(plans[i].elements(), most);
      }
      for (const RangePlan::Piece& piece : plans[i].pieces) {
        if (next == first.end) next = second.begin;
        EXPECT_EQ(piece.begin, next);
        next += piece.size;
      }
    }
    EXPECT_EQ(next, second.end);
  }
  EXPECT_TRUE(PlanInParts({}, 100, 2).empty());
}

TEST(WholeRoundsTest, AreBlocksOfEachRankThatFitAndAtLeastOne) {
  constexpr int64_t kUsual = (int64_t{25} << 20) / 4;  // 100 blocks
  EXPECT_EQ(WholeRounds(kUsual, 8), 96 * kReductionBlock);
  EXPECT_EQ(WholeRounds(kUsual, 64), 64 * kReductionBlock);
  EXPECT_EQ(WholeRounds(kUsual, 512), 512 * kReductionBlock);
  EXPECT_EQ(WholeRounds(1, 2), 2 * kReductionBlock);
}

TEST(BucketElementsTest, AreWholeRoundsWhereOwnersAddThemUp) {
  EXPECT_EQ(BucketElements(1000, 4, /*by_owners=*/false), 250);
  EXPECT_EQ(BucketElements(1000, 4, /*by_owners=*/true), 4 * kReductionBlock);
  EXPECT_EQ(BucketElements(1000, 1, /*by_owners=*/true), 250) << "a run alone exchanges nothing";
  EXPECT_EQ(BucketElements(2, 1, /*by_owners=*/false), 1);
}

TEST(RangesOfTest, LieFromTheEndOn) {
  const std::vector<ElementRange> ranges = RangesOf(CutIntoBuckets({4, 10}, 8), 14);
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[0].begin, 6);
  EXPECT_EQ(ranges[0].end, 14);
  EXPECT_EQ(ranges[1].begin, 0);
  EXPECT_EQ(ranges[1].end, 6);
}

}  // namespace
}  // namespace trainwright
