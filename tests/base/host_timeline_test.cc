#include "lib/base/host_timeline.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "lib/base/profile_scope.h"

namespace trainwright {
namespace {

/// The clock of the tests, which stands still unless a test moves it.
int64_t now_ns = 0;
int64_t Now() noexcept {
  return now_ns;
}

HostTotals TotalsOf(const HostTimeline& timeline, const std::string& name) {
  for (const HostTotals& totals : timeline.totals()) {
    if (totals.name == name) return totals;
  }
  return {};
}

class HostTimelineTest : public testing::Test {
 protected:
  HostTimelineTest() { now_ns = 1000; }
  int64_t SelfOf(ProfilePart part) const { return timeline_.self_ns()[static_cast<size_t>(part)]; }
  int64_t SumOfParts() const {
    return std::accumulate(timeline_.self_ns().begin(), timeline_.self_ns().end(), int64_t{0});
  }

  HostTimeline timeline_{&Now};
};

TEST_F(HostTimelineTest, CountsNestedPiecesOnceAndAddsUpToTheOutermost) {
  const ProfiledThread thread(&timeline_);
  {
    const ProfileScope step("step", ProfilePart::kOther);
    now_ns += 5;
    {
      const ProfileScope head("head", ProfilePart::kHead);
      now_ns += 20;
      {
        const ProfileScope product("matmul", ProfilePart::kGemm, 600);
        now_ns += 300;
      }
      now_ns += 1;
      const ProfileScope product("matmul", ProfilePart::kGemm, 400);
      now_ns += 100;
    }
    now_ns += 7;
  }
  EXPECT_EQ(SelfOf(ProfilePart::kGemm), 400);
  EXPECT_EQ(SelfOf(ProfilePart::kHead), 21);
  EXPECT_EQ(SelfOf(ProfilePart::kOther), 12);
  EXPECT_EQ(timeline_.outermost_ns(), 433);
  EXPECT_EQ(SumOfParts(), 433);
  EXPECT_EQ(timeline_.start_ns(), 1000);
  EXPECT_EQ(timeline_.end_ns(), 1433);
  EXPECT_EQ(TotalsOf(timeline_, "matmul").calls, 2);
  EXPECT_EQ(TotalsOf(timeline_, "matmul").operations, 1000);
  EXPECT_EQ(TotalsOf(timeline_, "head").self_ns, 21);
  EXPECT_EQ(TotalsOf(timeline_, "head").total_ns, 421);
}

TEST_F(HostTimelineTest, KeepsEventsInTheOrderInWhichTheyBeganOuterOnesFirst) {
  const ProfiledThread thread(&timeline_);
  {
    const ProfileScope outer("outer", ProfilePart::kOther);
    now_ns += 2;
    const ProfileScope inner("inner", ProfilePart::kNorm);
    now_ns += 3;
  }
  ASSERT_EQ(timeline_.events().size(), 2u);
  const HostEvent &outer = timeline_.events()[0], &inner = timeline_.events()[1];
  EXPECT_STREQ(outer.name, "outer");
  EXPECT_EQ(outer.depth, 0);
  EXPECT_EQ(outer.start_ns, 1000);
  EXPECT_EQ(outer.end_ns, 1005);
  EXPECT_STREQ(inner.name, "inner");
  EXPECT_EQ(inner.depth, 1);
  EXPECT_EQ(inner.start_ns, 1002);
  EXPECT_EQ(inner.end_ns, 1005);
}

TEST_F(HostTimelineTest, WhatIsInsideAnOpaquePieceIsItsTime) {
  const ProfiledThread thread(&timeline_);
  {
    const OpaqueProfileScope evaluation("evaluate", ProfilePart::kEvaluation);
    now_ns += 1;
    {
      const ProfileScope product("matmul", ProfilePart::kGemm);
      now_ns += 50;
      const ProfileScope norm("norm", ProfilePart::kNorm);
      now_ns += 4;
    }
    now_ns += 2;
  }
  {
    const ProfileScope after("matmul", ProfilePart::kGemm);
    now_ns += 10;
  }
  EXPECT_EQ(SelfOf(ProfilePart::kEvaluation), 57);
  EXPECT_EQ(SelfOf(ProfilePart::kGemm), 10);
  EXPECT_EQ(SelfOf(ProfilePart::kNorm), 0);
  EXPECT_EQ(SumOfParts(), timeline_.outermost_ns());
}

TEST_F(HostTimelineTest, OperationsThatAreToldAtTheEndCountOnceWhateverIsInsideThePiece) {
  const ProfiledThread thread(&timeline_);
  {
    OpaqueProfileScope fused("fused", ProfilePart::kGemm);
    {
      const ProfileScope inner("matmul", ProfilePart::kGemm, 600);
      now_ns += 3;
    }
    fused.Count(600);
  }
  {
    const OpaqueProfileScope evaluation("evaluate", ProfilePart::kEvaluation);
    OpaqueProfileScope fused("fused", ProfilePart::kGemm);
    fused.Count(500);
  }
  EXPECT_EQ(TotalsOf(timeline_, "fused").operations, 600);
  EXPECT_EQ(TotalsOf(timeline_, "fused").calls, 1);
  EXPECT_EQ(TotalsOf(timeline_, "matmul").operations, 0);
  EXPECT_EQ(TotalsOf(timeline_, "evaluate").operations, 0);
  EXPECT_EQ(timeline_.events()[0].operations, 600);
}

TEST_F(HostTimelineTest, BeyondItsBoundSumsGoOnWithoutEvents) {
  HostTimeline bounded(&Now, /*most_events=*/3);
  const ProfiledThread thread(&bounded);
  for (int i = 0; i < 10; ++i) {
    const ProfileScope scope("norm", ProfilePart::kNorm);
    now_ns += 4;
  }
  EXPECT_EQ(bounded.events().size(), 3u);
  EXPECT_EQ(bounded.events_left_out(), 7);
  EXPECT_EQ(bounded.outermost_ns(), 40);
  EXPECT_EQ(TotalsOf(bounded, "norm").calls, 10);
  EXPECT_EQ(bounded.end_ns(), now_ns);
}

TEST_F(HostTimelineTest, AScopeReportsToTheTimelineThatItBeganIn) {
  HostTimeline other(&Now);
  {
    const ProfiledThread thread(&timeline_);
    const ProfileScope outer("outer", ProfilePart::kOther);
    now_ns += 3;
    const ProfiledThread nested(&other);
    const ProfileScope inner("inner", ProfilePart::kNorm);
    now_ns += 2;
  }
  EXPECT_EQ(thread_timeline, nullptr);
  const ProfileScope ignored("ignored", ProfilePart::kGemm);
  EXPECT_EQ(timeline_.outermost_ns(), 5);
  EXPECT_EQ(other.outermost_ns(), 2);
}

}  // namespace
}  // namespace trainwright
