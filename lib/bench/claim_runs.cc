#include "lib/bench/claim_runs.h"

#include <algorithm>
#include <string_view>

namespace trainwright {
namespace {

bool HaveTheSameCommands(const Claim& a, const Claim& b) {
  const auto equal = [](std::string_view left, std::string_view right) { return left == right; };
  return a.data == b.data && a.absolute == b.absolute && equal(a.guide, b.guide) &&
         equal(a.before, b.before) && equal(a.after, b.after);
}

}  // namespace

ClaimRuns::ClaimRuns(std::vector<std::pair<Claim, std::string>> claims, Run run)
    : claims_(std::move(claims)), run_(std::move(run)) {}

const Measurement& ClaimRuns::Of(const Claim& claim) {
  for (const auto& [measured, runs] : measured_) {
    if (HaveTheSameCommands(measured, claim)) return runs;
  }
  std::vector<std::string> metrics;
  for (const auto& [other, metric] : claims_) {
    if (!HaveTheSameCommands(other, claim)) continue;
    if (std::find(metrics.begin(), metrics.end(), metric) == metrics.end()) metrics.push_back(metric);
  }
  measured_.emplace_back(claim, run_(claim, metrics));
  return measured_.back().second;
}

}  // namespace trainwright
