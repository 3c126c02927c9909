#include "lib/bench/claims.h"

#include <gtest/gtest.h>

namespace trainwright {
namespace {

TEST(ClaimsTest, EverySystemOfTheGuidesHasClaims) {
  for (const char* system : {"grit", "refocused", "rft", "lora", "ten"}) {
    EXPECT_GE(ClaimsOf(system).size(), 4u) << system;
  }
  EXPECT_TRUE(ClaimsOf("unknown").empty());
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
