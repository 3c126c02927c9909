#include "lib/run/save_interval.h"

#include <gtest/gtest.h>

#include "tests/support/support.h"

namespace trainwright {
namespace {

TEST(SaveInterval, ABareNumberIsSteps) {
  EXPECT_EQ(ParseSaveInterval("200", "--save-every").steps, 200);
  EXPECT_EQ(ParseSaveInterval("200", "--save-every").time_s, 0);
  EXPECT_EQ(ParseSaveInterval("0", "--save-every").steps, 0);
}

TEST(SaveInterval, ANumberWithAUnitIsATime) {
  for (const auto& [text, time_s] :
       {std::pair{"90s", 90.0}, {"10m", 600.0}, {"1.5h", 5400.0}, {"0.25s", 0.25}, {"2h", 7200.0}}) {
    EXPECT_EQ(ParseSaveInterval(text, "--save-every").time_s, time_s) << text;
    EXPECT_EQ(ParseSaveInterval(text, "--save-every").steps, 0) << text;
  }
}

TEST(SaveInterval, TheWordEpochIsEachPassOverTheData) {
  const SaveInterval interval = ParseSaveInterval("epoch", "--save-every");
  EXPECT_TRUE(interval.epochs);
  EXPECT_EQ(interval.steps, 0);
  EXPECT_FALSE(ParseSaveInterval("200", "--save-every").epochs);
}

TEST(SaveInterval, AnythingElseIsAUsageErrorThatNamesTheFlag) {
  for (const char* bad : {"", "m", "-1", "-5m", "0m", "0.0s", "1.5", "10 m", "10min", "5d", "1e3s", "nans",
                          "infs", "10m5s", "99999999999999999999", "0x10", " 7"}) {
    EXPECT_EQ(test::CodeOf([&] { ParseSaveInterval(bad, "--save-every"); }), ErrorCode::kUsage) << bad;
  }
  EXPECT_NE(test::MessageOf([] { ParseSaveInterval("x", "--save-every"); }).find("--save-every"),
            std::string::npos);
}

}  // namespace
}  // namespace trainwright
