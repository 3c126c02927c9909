/// The claims of each system, a file a system: what claims.h measures.
#pragma once

#include <string>
#include <vector>

#include "lib/bench/claims.h"

namespace trainwright {

inline constexpr char kMemoryMetric[] = "max_memory_bytes";
inline constexpr char kSpeedMetric[] = "tokens_per_s";
inline constexpr char kStepsMetric[] = "steps_per_s";
inline constexpr char kWholeRunMetric[] = "run_tokens_per_s";
/// Most steps wait for nothing and some for a whole window: only the mean shows it.
inline constexpr char kDataWaitMetric[] = "mean:data_wait_s";
inline constexpr char kForwardMetric[] = "forward_s";
/// What the device does for the model in a second: utilisation, but for the device's peak.
inline constexpr char kFlopsMetric[] = "model_flops_per_s";
/// That the training thread loses to a checkpoint.
inline constexpr char kBlockingMetric[] = "mean:stall_s";
inline constexpr char kSlowStepMetric[] = "p99:step_time_s";
/// Of the run's time.
inline constexpr char kEvaluationShare[] = "share:eval_time_s";
inline constexpr char kCleanupShare[] = "share:cleanup_s";

inline Claim CostOf(Claim claim) {
  claim.cost = true;
  return claim;
}
inline Claim AtGuideSize(const char* flags, Claim claim) {
  claim.guide = flags;
  return claim;
}

/// A single run, reported as it is.
struct SuiteCase {
  const char* group;
  const char* flags;  ///< added to `train`
  ClaimData data = ClaimData::kText;
  const char* guide = "";  ///< as of Claim
};

/// Where a guide contradicts itself, its own code, or what is known of the hardware; printed beside its
/// claims.
struct Contradiction {
  const char* about;  ///< words of the claims that it is about; "": the guide as a whole
  const char* text;
};

/// Of every guide that gives a number for all its levers together.
inline constexpr char kSharesDoNotCompose[] =
    "shares of single levers do not compose: bench --ablate cumulative measures levers together";

struct SystemClaims {
  std::vector<Claim> claims;
  std::vector<SuiteCase> suite = {};
  std::vector<Contradiction> contradictions = {};
  /// Adds tables after those of the claims and of the suite, and their JSON; null: there are none.
  /// \param budget_s as of CheckClaims
  void (*add_tables)(const ClaimsWorkplace& workplace, double budget_s, ClaimsResult* result) = nullptr;
};

SystemClaims GritClaims();
SystemClaims RefocusedClaims();
SystemClaims RftClaims();
SystemClaims LoraClaims();
SystemClaims TenClaims();

}  // namespace trainwright
