/// What the command line says about a plan that is more than the value of one option.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "lib/base/error.h"
#include "lib/loading/sample_loader.h"
#include "lib/run/train_plan.h"
#include "lib/run/train_settings.h"
#include "lib/spec/model_config.h"

namespace trainwright {

inline constexpr int64_t kMostSteps = int64_t{1} << 40;

/// Whether the samples of the plan's objective are as long as --seq says; of one that this library does not
/// know they are.
bool GoesBySeq(const TrainPlan& plan);

/// \throws Error{kUsage} naming `flag` where the condition does not hold: "<value> <problem>"
template <typename Number>
void RequireAsked(bool holds, const std::string& flag, Number value, const std::string& problem) {
  if (!holds) throw Error(ErrorCode::kUsage, flag, nlohmann::json(value).dump() + " " + problem);
}

/// \throws Error{kUsage} naming --seq where a sample is longer than the model takes
void RequirePositions(int64_t sequence_tokens, int64_t max_positions, const std::string& hint);

/// "steps 100", "epochs 2" and so on for the length that was asked; empty when none was.
/// \throws Error{kUsage} when several were
std::string LengthRule(const TrainSettings& settings);

/// Steps of a run whose length --epochs or --tokens says, or of one epoch where neither does.
/// \throws Error{kUsage} on a length that no run has, and where --drop-last skips everything
double StepsAsked(const TrainSettings& settings, const EpochCounts& epoch, const TrainPlan& plan);
/// The same as a whole number, at least 1.
int64_t StepsOf(const TrainSettings& settings, const EpochCounts& epoch, const TrainPlan& plan);

/// Samples that a step may have on all ranks: each process reads the whole step before it takes its share.
inline constexpr int64_t kMostStepSamples = int64_t{1} << 22;

/// \throws Error{kUsage} naming --batch and --accum where a step has more samples than that
void RequireStepThatFits(const TrainPlan& plan);

/// \throws Error{kUsage} naming --exact-world where a step's micro-batches do not form as many equal leaves,
///     or the ranks cannot have as many of these each
void RequireLeaves(const TrainPlan& plan);

/// \throws Error{kUsage} naming --tbptt where the model carries no state from token to token
void RequireCarriedState(const TrainPlan& plan, const ModelConfig& model);

/// Steps of warm-up that are this share of a run, rounded up.
/// \throws Error{kUsage} on a share outside [0, 1]
double WarmupSteps(double ratio, int64_t total_steps);

}  // namespace trainwright
