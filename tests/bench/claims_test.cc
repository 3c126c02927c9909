#include "lib/bench/claims.h"

#include <gtest/gtest.h>

#include <string>

#include "lib/bench/comparison.h"

namespace trainwright {
namespace {

TEST(ClaimsTest, EverySystemOfTheGuidesHasClaims) {
  for (const char* system : {"grit", "refocused", "rft", "lora", "ten"}) {
    EXPECT_GE(ClaimsOf(system).size(), 4u) << system;
  }
  EXPECT_TRUE(ClaimsOf("unknown").empty());
}

TEST(ClaimsTest, EachClaimOfGritIsMeasuredByWhatItIsAbout) {
  const std::vector<Claim> claims = ClaimsOf("grit");
  ASSERT_EQ(claims.size(), 4u);
  const char* quantities[] = {"mean:data_wait_s", "forward_s", "max_memory_bytes", "run_tokens_per_s"};
  for (size_t i = 0; i < claims.size(); ++i) {
    EXPECT_STREQ(claims[i].metric, quantities[i]) << claims[i].text;
    EXPECT_EQ(claims[i].data, ClaimData::kContrastive) << claims[i].text;
  }
}

TEST(ClaimsTest, WhereLessIsBetterTheClaimedRatioIsBelowOne) {
  for (const char* system : {"grit", "refocused", "rft", "lora", "ten"}) {
    for (const Claim& claim : ClaimsOf(system)) {
      EXPECT_EQ(claim.ratio > 1, HigherIsBetter(claim.metric)) << system << ": " << claim.text;
    }
  }
}

TEST(ClaimsTest, ScansOfTenAreComparedOnTheSameTokens) {
  int scans = 0;
  for (const Claim& claim : ClaimsOf("ten")) {
    EXPECT_EQ(claim.absolute, std::string(claim.before).empty()) << claim.text;
    const std::string flags = std::string(claim.before) + " " + claim.after;
    if (claim.absolute || flags.find("--ten-scan") == std::string::npos) continue;
    for (const char* flag : {"--seq", "--batch", "--accum", "--model", "--data"}) {
      EXPECT_EQ(flags.find(flag), std::string::npos) << claim.text;
    }
    ++scans;
  }
  EXPECT_EQ(scans, 3);
}

TEST(ClaimsTest, FlagsThatAToolLacksAreNamed) {
  const Claim claim = {
      "grit", "", "tokens_per_s", 2, "--workers 0 --mixed off", "--workers 4 --compile graph", false};
  const std::string help = "  --workers N\n      Threads.\n  --mixed-precision P\n  --compiler-cache\n";
  EXPECT_EQ(AbsentFlags(claim, help), (std::vector<std::string>{"--mixed", "--compile"}));
  EXPECT_TRUE(AbsentFlags(claim, help + "--mixed X, --compile=graph").empty());
}

}  // namespace
}  // namespace trainwright
