#include "lib/dist/fault.h"

#include <gtest/gtest.h>

namespace trainwright {
namespace {

TEST(FaultTest, ComesBackFromTheStore) {
  const Fault fault = DecodeFault(EncodeFault({3, "rank 3", "ended with status 6: two\nlines", ""}));
  EXPECT_EQ(fault.rank, 3);
  EXPECT_EQ(fault.who, "rank 3");
  EXPECT_EQ(fault.what, "ended with status 6: two lines");
  EXPECT_EQ(fault.hint, "");
}

TEST(FaultTest, TextOfAnotherVersionIsStillTold) {
  for (const char* text : {"", "gone", "3\nrank 3", "3x\nrank 3\nkilled\n"}) {
    EXPECT_EQ(DecodeFault(text).rank, -1) << text;
    EXPECT_EQ(DecodeFault(text).who, "another rank") << text;
  }
}

TEST(FaultTest, NamesSomeOfManyRanks) {
  EXPECT_EQ(RankNames({3}), "rank 3");
  EXPECT_EQ(RankNames({0, 3}), "ranks 0 and 3");
  EXPECT_EQ(RankNames({0, 3, 5}), "ranks 0, 3 and 5");
  EXPECT_EQ(RankNames({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
}

}  // namespace
}  // namespace trainwright
