#include "lib/scaling/traffic.h"

#include <gtest/gtest.h>

#include <vector>

namespace trainwright {
namespace {

/// Bytes and messages of rank 0 when a ring is walked round by round, each rank with `ranks` parts of `part`.
Traffic WalkedHalf(int64_t part, int64_t ranks) {
  Traffic traffic;
  std::vector<std::vector<int64_t>> parts_seen(static_cast<size_t>(ranks));
  for (int64_t rank = 0; rank < ranks; ++rank) parts_seen[static_cast<size_t>(rank)].push_back(rank);
  const auto all_seen = [&] {
    for (const auto& seen : parts_seen) {
      if (static_cast<int64_t>(seen.size()) < ranks) return false;
    }
    return true;
  };
  while (!all_seen()) {
    const auto before = parts_seen;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      parts_seen[static_cast<size_t>((rank + 1) % ranks)].push_back(before[static_cast<size_t>(rank)].back());
    }
    traffic += {.sent_bytes = part, .messages = 1};
  }
  return traffic;
}

TEST(RingHalfTest, IsWhatAWalkAroundTheRingSends) {
  for (const int64_t ranks : {1, 2, 3, 8}) EXPECT_EQ(RingHalf(100 * ranks, ranks), WalkedHalf(100, ranks));
}

TEST(RingHalfTest, RoundsPartsUp) {
  EXPECT_EQ(RingHalf(10, 4), (Traffic{.sent_bytes = 9, .messages = 3}));  // parts of 3
  EXPECT_EQ(RingHalf(0, 4), (Traffic{.sent_bytes = 0, .messages = 3}));
}

TEST(EqualPartsTest, AreOneForEachOtherRank) {
  EXPECT_EQ(EqualParts(100, 4), (Traffic{.sent_bytes = 300, .messages = 3}));
  EXPECT_EQ(EqualParts(100, 1), Traffic());
}

TEST(RingSumTest, IsTwoHalves) {
  EXPECT_EQ(RingSum(800, 8), (Traffic{.sent_bytes = 1400, .messages = 14}));
  EXPECT_EQ(RingSum(800, 1), Traffic());
}

TEST(RingSumTest, CountsTheGradientsOfLargeModelsOnManyRanks) {
  const int64_t bytes = int64_t{4} * 70'553'706'496;
  EXPECT_EQ(RingSum(bytes, 512).sent_bytes, 2 * 511 * (bytes / 512));
}

TEST(TrafficTest, TakesTheTimeOfItsBytesAndOfEachMessage) {
  const Traffic traffic = {.sent_bytes = 3000, .messages = 4};
  EXPECT_DOUBLE_EQ(traffic.SecondsOver({.bytes_per_s = 1000, .latency_s = 0.25}), 4.0);
}

}  // namespace
}  // namespace trainwright
