#include "lib/bench/claims.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/bench/claims_ten_guide.h"
#include "lib/bench/comparison.h"
#include "lib/bench/system_claims.h"

namespace trainwright {
namespace {

TEST(ClaimsTest, EverySystemOfTheGuidesHasClaims) {
  for (const char* system : {"grit", "refocused", "rft", "lora", "ten"}) {
    EXPECT_GE(ClaimsOf(system).size(), 4u) << system;
  }
  EXPECT_TRUE(ClaimsOf("unknown").empty());
}

TEST(ClaimsTest, EveryGuidesContradictionsAreCitedAndAboutClaimsOfItsOwn) {
  for (const SystemClaims& system :
       {GritClaims(), RefocusedClaims(), RftClaims(), LoraClaims(), TenClaims()}) {
    const std::string name = system.claims.front().line;
    EXPECT_FALSE(system.contradictions.empty()) << name;
    for (const Contradiction& contradiction : system.contradictions) {
      const bool is_about_one =
          std::any_of(system.claims.begin(), system.claims.end(), [&](const Claim& claim) {
            return std::string(claim.text).find(contradiction.about) != std::string::npos;
          });
      EXPECT_TRUE(is_about_one) << name << ": " << contradiction.about;
    }
  }
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
      const bool gains = HigherIsBetter(claim.metric) != claim.cost;
      EXPECT_EQ(claim.ratio > 1, gains) << system << ": " << claim.text;
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

TEST(ClaimsTest, EachClaimOfRefocusedAndRftIsMeasuredByWhatItIsAboutAtTheSizeOfItsGuide) {
  const auto quantities = [](const std::string& system) {
    std::vector<std::string> metrics;
    for (const Claim& claim : ClaimsOf(system)) {
      metrics.push_back(claim.metric);
      EXPECT_NE(std::string(claim.guide), "") << claim.text;
    }
    return metrics;
  };
  EXPECT_EQ(
      quantities("refocused"),
      (std::vector<std::string>{"max_memory_bytes", "tokens_per_s", "model_flops_per_s", "mean:data_wait_s",
                                "run_tokens_per_s", "mean:stall_s", "p99:step_time_s"}));
  EXPECT_EQ(quantities("rft"),
            (std::vector<std::string>{"tokens_per_s", "max_memory_bytes", "tokens_per_s", "max_memory_bytes",
                                      "mean:data_wait_s", "tokens_per_s", "tokens_per_s", "tokens_per_s"}));
  EXPECT_TRUE(NamesSizes("refocused") && NamesSizes("rft"));
  EXPECT_FALSE(NamesSizes("grit") || NamesSizes("ten"));
}

TEST(ClaimsTest, EveryLineThatClaimsSomethingOfASystemHasARowOfItsOwn) {
  const auto lines_of = [](const std::string& system) {
    std::set<std::string> lines;
    for (const Claim& claim : ClaimsOf(system)) lines.insert(claim.line);
    return lines;
  };
  using Lines = std::set<std::string>;
  EXPECT_EQ(lines_of("grit"), (Lines{"A39", "A40", "A41", "A42"}));
  EXPECT_EQ(lines_of("refocused"), (Lines{"B6", "B21", "B32"}));
  EXPECT_EQ(lines_of("rft"), (Lines{"C2", "C4", "C5", "C7", "C12", "C19"}));
  EXPECT_EQ(lines_of("lora"), (Lines{"D1", "D3", "D4", "D6", "D7", "D8", "D9", "D13", "D14", "D15", "D16",
                                     "D17", "D18", "D19", "D20", "D21", "D23"}));
  // What is no ratio of two runs, E10, E16 and E31, is in the table of its guide.
  EXPECT_EQ(lines_of("ten"), (Lines{"E1", "E2", "E6", "E14", "E15", "E30"}));
}

/// The quantity and the flags of the guide that a claim of the LoRA trainer is measured by.
std::pair<std::string, std::string> MeasuredOfLora(const std::string& text) {
  for (const Claim& claim : ClaimsOf("lora")) {
    if (std::string(claim.text).starts_with(text)) return {claim.metric, claim.guide};
  }
  ADD_FAILURE() << text;
  return {};
}

TEST(ClaimsTest, ClaimsOfLoraAreMeasuredAtTheSizeOfItsGuide) {
  EXPECT_TRUE(NamesSizes("lora"));
  for (const Claim& claim : ClaimsOf("lora")) {
    EXPECT_NE(std::string(claim.guide).find("--model tinyllama-1.1b "), std::string::npos) << claim.text;
    EXPECT_EQ(claim.data, ClaimData::kExamples) << claim.text;
  }
  for (const char* of_whole_runs : {"evaluation", "fewer evaluations", "all together"}) {
    EXPECT_NE(MeasuredOfLora(of_whole_runs).second.find(" --steps 84"), std::string::npos) << of_whole_runs;
  }
}

TEST(ClaimsTest, AShareOfTheTimeIsMeasuredByThatShare) {
  EXPECT_EQ(MeasuredOfLora("evaluation: 25 -> 10 % of the time").first, "share:eval_time_s");
  EXPECT_EQ(MeasuredOfLora("cleanup: 2 -> 0.5 % of the time").first, "share:cleanup_s");
}

TEST(ClaimsTest, PeakMemoryIsTheDevicesWhereThereIsAGpu) {
  Claim claim = {"rft", "", "max_memory_bytes", 0.6, "", "", false};
  EXPECT_EQ(DecisiveMetric(claim, false), "max_memory_bytes");
  EXPECT_EQ(DecisiveMetric(claim, true), "final:max_device_memory_bytes");
  claim.metric = "tokens_per_s";
  EXPECT_EQ(DecisiveMetric(claim, true), "tokens_per_s");
}

TEST(ClaimsTest, FlagsThatAToolLacksAreNamed) {
  const Claim claim = {
      "grit", "", "tokens_per_s", 2, "--workers 0 --mixed off", "--workers 4 --compile graph", false};
  const std::string help = "  --workers N\n      Threads.\n  --mixed-precision P\n  --compiler-cache\n";
  EXPECT_EQ(AbsentFlags(claim, help), (std::vector<std::string>{"--mixed", "--compile"}));
  EXPECT_TRUE(AbsentFlags(claim, help + "--mixed X, --compile=graph").empty());
}

TEST(ClaimsTest, WhatNeedsAGpuIsNotTestableWithoutOneWhateverTheToolsHave) {
  Claim claim = {"ten", "", "tokens_per_s", 2, "--tf32 off", "--tf32 on", true};
  EXPECT_EQ(WhyUnmeasured(claim, "--seq N", false).note, "needs a GPU");
  EXPECT_EQ(WhyUnmeasured(claim, "--seq N", false).verdict, "not testable here");
  EXPECT_EQ(WhyUnmeasured(claim, "--seq N", true).note, "feature absent: --tf32");
  EXPECT_EQ(WhyUnmeasured(claim, "--tf32 X", true).verdict, "");
  claim.needs_gpu = false;
  EXPECT_EQ(WhyUnmeasured(claim, "--seq N", false).verdict, "not met");
}

TEST(ClaimsTest, AnIntervalThatHoldsWhatIsClaimedDecidesNothing) {
  EXPECT_EQ(VerdictOfClaim(true, 2.0, 2.2, 2.0), "met");
  EXPECT_EQ(VerdictOfClaim(true, 1.9, 2.2, 2.0), "undecided");
  EXPECT_EQ(VerdictOfClaim(true, 1.9, 1.99, 2.0), "not met");
  EXPECT_EQ(VerdictOfClaim(false, 0.4, 0.5, 0.5), "met");
  EXPECT_EQ(VerdictOfClaim(false, 0.4, 0.6, 0.5), "undecided");
  EXPECT_EQ(VerdictOfClaim(false, 0.51, 0.6, 0.5), "not met");
  EXPECT_EQ(StatusOfClaims({"met", "met"}), 0);
  EXPECT_EQ(StatusOfClaims({"met", "undecided", "not met"}), 1);
  EXPECT_EQ(StatusOfClaims({"met", "undecided"}), 7);
  EXPECT_EQ(StatusOfClaims({"not testable here", "met"}), 7);
}

TEST(ClaimsTest, EveryLineOfTheGuideOfTenIsInItsTable) {
  std::set<std::string> told;
  for (const GuideLine& line : TenGuide(/*has_profile=*/false)) {
    EXPECT_FALSE(line.text.empty() || line.here.empty()) << line.line;
    told.insert(line.line);
  }
  for (int number = 1; number <= 34; ++number) {
    EXPECT_EQ(told.count("E" + std::to_string(number)), 1u) << number;
  }
  EXPECT_EQ(told.size(), 34u);
}

}  // namespace
}  // namespace trainwright
