#include "lib/bench/claim_runs.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace trainwright {
namespace {

/// Counts the runs that it is asked for.
class CountedRuns {
 public:
  explicit CountedRuns(const std::vector<Claim>& claims) : runs_(WithMetrics(claims), Count()) {}

  const Measurement& Of(const Claim& claim) { return runs_.Of(claim); }
  const std::vector<std::vector<std::string>>& metrics() const { return metrics_; }

 private:
  static std::vector<std::pair<Claim, std::string>> WithMetrics(const std::vector<Claim>& claims) {
    std::vector<std::pair<Claim, std::string>> with_metrics;
    for (const Claim& claim : claims) with_metrics.emplace_back(claim, claim.metric);
    return with_metrics;
  }
  ClaimRuns::Run Count() {
    return [this](const Claim&, const std::vector<std::string>& metrics) {
      metrics_.push_back(metrics);
      Measurement measurement;
      measurement.measured_s = static_cast<double>(metrics_.size());
      return measurement;
    };
  }

  std::vector<std::vector<std::string>> metrics_;
  ClaimRuns runs_;
};

TEST(ClaimRunsTest, ClaimsOfTheSameCommandsAreJudgedByTheSameRuns) {
  const Claim speed = {"rft", "faster", "tokens_per_s", 2, "--a", "--b", false},
              memory = {"rft", "smaller", "max_memory_bytes", 0.6, "--a", "--b", false};
  CountedRuns runs({speed, memory});
  const Measurement& of_speed = runs.Of(speed);
  EXPECT_EQ(&runs.Of(memory), &of_speed);
  ASSERT_EQ(runs.metrics().size(), 1u);
  EXPECT_EQ(runs.metrics()[0], (std::vector<std::string>{"tokens_per_s", "max_memory_bytes"}));
}

TEST(ClaimRunsTest, EachDifferenceOfTheCommandsHasRunsOfItsOwn) {
  const Claim first = {"rft", "", "tokens_per_s", 2, "--a", "--b", false};
  std::vector<Claim> claims(6, first);
  claims[1].before = "--c";
  claims[2].after = "--c";
  claims[3].guide = "--batch 2";
  claims[4].data = ClaimData::kLong;
  claims[5].absolute = true;
  CountedRuns runs(claims);
  std::vector<const Measurement*> asked;
  for (const Claim& claim : claims) asked.push_back(&runs.Of(claim));
  EXPECT_EQ(runs.metrics().size(), claims.size());
  for (size_t i = 0; i < claims.size(); ++i) {
    EXPECT_EQ(asked[i]->measured_s, static_cast<double>(i + 1)) << "moved or mixed up: claim " << i;
  }
}

TEST(ClaimRunsTest, RunsThatFailedAreTriedAgain) {
  const Claim claim = {"rft", "", "tokens_per_s", 2, "--a", "--b", false};
  int tries = 0;
  ClaimRuns runs({{claim, claim.metric}}, [&](const Claim&, const std::vector<std::string>&) {
    if (++tries == 1) throw std::runtime_error("a command that fails");
    return Measurement();
  });
  EXPECT_THROW(runs.Of(claim), std::runtime_error);
  runs.Of(claim);
  EXPECT_EQ(tries, 2);
}

}  // namespace
}  // namespace trainwright
