#include "lib/scaling/backward_timeline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>

namespace trainwright {
namespace {

TEST(BackwardTimelineTest, IsTheHandDrawnOneOfThreeSegments) {
  // Head done at 3, the layer at 5, the embeddings at 6. Link: 3 to 4, 5 to 9, 9 to 10.
  const BackwardTimeline timeline = FollowBackward({1, 2, 3},
                                                   {{.elements = 1, .lowest_segment = 2},
                                                    {.elements = 1, .lowest_segment = 1},
                                                    {.elements = 1, .lowest_segment = 0}},
                                                   {1, 4, 1});
  EXPECT_EQ(timeline.backward_s, 6);
  EXPECT_EQ(timeline.link_s, 6);
  EXPECT_EQ(timeline.end_s, 10);
  EXPECT_EQ(timeline.exposed_s(), 4);
  EXPECT_EQ(timeline.hidden_s(), 2);
}

TEST(BackwardTimelineTest, OfNothingToSendIsThePass) {
  EXPECT_EQ(FollowBackward({1, 2}, {}, {}).end_s, 3);
  EXPECT_EQ(FollowBackward({}, {}, {}).end_s, 0);
}

/// A pass and its link in whole ticks.
struct Scene {
  std::vector<int64_t> segment_ticks;
  std::vector<GradientBucket> buckets;
  std::vector<int64_t> bucket_ticks;
};

Scene RandomScene(std::mt19937* random) {
  Scene scene;
  scene.segment_ticks.resize(1 + (*random)() % 10);
  for (int64_t& ticks : scene.segment_ticks) ticks = static_cast<int64_t>((*random)() % 6);
  for (size_t segment = scene.segment_ticks.size(); segment-- > 0;) {
    if (segment > 0 && (*random)() % 3 == 0) continue;  // travels with the next
    for (size_t pieces = 1 + (*random)() % 2; pieces > 0; --pieces) {
      scene.buckets.push_back({.elements = 1, .lowest_segment = segment});
      scene.bucket_ticks.push_back(static_cast<int64_t>(1 + (*random)() % 8));
    }
  }
  return scene;
}

struct Ending {
  int64_t backward = 0, end = 0;
};

/// Two workers, a tick at a time: one computes, the other sends what the first has made.
Ending Simulate(const Scene& scene) {
  Ending ending;
  size_t segments_left = scene.segment_ticks.size(), bucket = 0;
  int64_t computed = 0, sent = 0;
  const auto skip_empty = [&] {
    while (segments_left > 0 && scene.segment_ticks[segments_left - 1] == computed)
      --segments_left, computed = 0;
  };
  skip_empty();
  for (int64_t tick = 0; segments_left > 0 || bucket < scene.buckets.size(); ++tick) {
    const bool ready = bucket < scene.buckets.size() && scene.buckets[bucket].lowest_segment >= segments_left;
    if (segments_left > 0) {
      ++computed;
      skip_empty();
      ending.backward = tick + 1;
    }
    if (ready && ++sent == scene.bucket_ticks[bucket]) ++bucket, sent = 0;
    ending.end = tick + 1;
  }
  return ending;
}

std::vector<double> Seconds(const std::vector<int64_t>& ticks, double tick_s = 1) {
  std::vector<double> seconds;
  for (const int64_t count : ticks) seconds.push_back(tick_s * static_cast<double>(count));
  return seconds;
}

TEST(BackwardTimelineTest, EndsWhenASimulationTickByTickEnds) {
  std::mt19937 random(5);
  for (int round = 0; round < 500; ++round) {
    const Scene scene = RandomScene(&random);
    const Ending ending = Simulate(scene);
    const BackwardTimeline timeline =
        FollowBackward(Seconds(scene.segment_ticks), scene.buckets, Seconds(scene.bucket_ticks));
    ASSERT_EQ(timeline.backward_s, static_cast<double>(ending.backward)) << round;
    ASSERT_EQ(timeline.end_s, static_cast<double>(ending.end)) << round;
  }
}

TEST(BackwardTimelineTest, NeverHidesTheLastBucketNorEndsBeforePassOrLink) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const Scene scene = RandomScene(&random);
    const BackwardTimeline timeline =
        FollowBackward(Seconds(scene.segment_ticks), scene.buckets, Seconds(scene.bucket_ticks));
    EXPECT_GE(timeline.exposed_s(), static_cast<double>(scene.bucket_ticks.back()));
    EXPECT_GE(timeline.end_s, timeline.link_s);
    EXPECT_LE(timeline.end_s, timeline.backward_s + timeline.link_s);
    EXPECT_GE(timeline.hidden_s(), 0);
  }
}

TEST(BackwardTimelineTest, AFasterLinkNeverEndsLater) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    const Scene scene = RandomScene(&random);
    double before_s = INFINITY;
    for (const double tick_s : {2.0, 1.0, 0.25, 0.0}) {
      const double end_s =
          FollowBackward(Seconds(scene.segment_ticks), scene.buckets, Seconds(scene.bucket_ticks, tick_s))
              .end_s;
      EXPECT_LE(end_s, before_s);
      before_s = end_s;
    }
  }
}

}  // namespace
}  // namespace trainwright
