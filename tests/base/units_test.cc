#include "lib/base/units.h"

#include <gtest/gtest.h>

#include "tests/support/support.h"

namespace trainwright {
namespace {

TEST(ParseBytesTest, UnderstandsBinaryAndDecimalUnits) {
  EXPECT_EQ(ParseBytes("4096", "--x"), 4096u);
  EXPECT_EQ(ParseBytes("64KiB", "--x"), 65536u);
  EXPECT_EQ(ParseBytes("1.5 GiB", "--x"), 1610612736u);
  EXPECT_EQ(ParseBytes("10MB", "--x"), 10000000u);
}

TEST(ParseBytesTest, AnythingElseIsAUsageErrorThatNamesTheFlag) {
  for (const char* bad : {"", "MiB", "-1", "5 apples", "1e30", "nan", "0x10"}) {
    EXPECT_EQ(test::CodeOf([&] { ParseBytes(bad, "--shard-size"); }), ErrorCode::kUsage) << bad;
  }
  EXPECT_NE(test::MessageOf([] { ParseBytes("x", "--shard-size"); }).find("--shard-size"), std::string::npos);
}

TEST(FormatTest, QuantitiesReadAsPeopleWriteThem) {
  EXPECT_EQ(FormatBytes(1536), "1.50 KiB");
  EXPECT_EQ(FormatBytes(12), "12 B");
  EXPECT_EQ(FormatCount(1234567), "1.23 M");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatGrouped(1234567), "1,234,567");
  EXPECT_EQ(FormatGrouped(999), "999");
  EXPECT_EQ(FormatNumberOf(1, "chunk"), "1 chunk");
  EXPECT_EQ(FormatNumberOf(1234, "chunk"), "1,234 chunks");
  EXPECT_EQ(FormatDuration(65.2), "1 m 05 s");
  EXPECT_EQ(FormatDuration(3725), "1 h 02 m");
  EXPECT_EQ(FormatDuration(1.234), "1.23 s");
  EXPECT_EQ(FormatFixed(1.2345, 2), "1.23");
}

}  // namespace
}  // namespace trainwright
