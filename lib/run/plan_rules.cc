#include "lib/run/plan_rules.h"

#include <algorithm>
#include <cmath>

#include "lib/spec/built_in_objectives.h"
#include "lib/spec/family.h"

namespace trainwright {
namespace {

/// Whether the objective never mixes epochs, so that --drop-last cannot be left out.
bool AlwaysDropsLast(const TrainPlan& plan) {
  const ObjectiveDescription* objective = FindBuiltInObjective(plan.objective);
  return objective != nullptr && objective->drops_last;
}

double StepsAnEpoch(const EpochCounts& epoch, const TrainPlan& plan) {
  const auto samples = static_cast<int64_t>(epoch.samples);
  if (!plan.drop_last) return static_cast<double>(samples) / static_cast<double>(plan.samples_per_step());
  const int64_t steps = samples / plan.samples_per_step();
  if (steps == 0 && AlwaysDropsLast(plan)) {
    throw Error(ErrorCode::kBadInput, "--data",
                "holds " + std::to_string(samples) + " records for an epoch, and a step takes " +
                    std::to_string(plan.samples_per_step()),
                "", "lower --batch or --accum");
  }
  if (steps == 0) {
    throw Error(ErrorCode::kUsage, "--drop-last",
                "skips everything: an epoch has " + std::to_string(samples) + " samples, a step takes " +
                    std::to_string(plan.samples_per_step()),
                "", "lower --batch or --accum, or leave out --drop-last");
  }
  return static_cast<double>(steps);
}

}  // namespace

bool GoesBySeq(const TrainPlan& plan) {
  const ObjectiveDescription* objective = FindBuiltInObjective(plan.objective);
  return objective == nullptr || objective->goes_by_seq();
}

void RequirePositions(int64_t sequence_tokens, int64_t max_positions, const std::string& hint) {
  if (sequence_tokens <= max_positions) return;
  throw Error(ErrorCode::kUsage, "--seq",
              std::to_string(sequence_tokens) + " is longer than the " + std::to_string(max_positions) +
                  " positions of the model",
              "", hint);
}

std::string LengthRule(const TrainSettings& settings) {
  const int given = settings.steps.has_value() + settings.epochs.has_value() + settings.tokens.has_value();
  if (given > 1) {
    throw Error(ErrorCode::kUsage, "--steps, --epochs, --tokens", "exclude each other", "",
                "give one of them");
  }
  if (settings.steps) return "steps " + std::to_string(*settings.steps);
  if (settings.epochs) return "epochs " + nlohmann::json(*settings.epochs).dump();
  if (settings.tokens) return "tokens " + std::to_string(*settings.tokens);
  return "";
}

double StepsAsked(const TrainSettings& settings, const EpochCounts& epoch, const TrainPlan& plan) {
  const double steps_an_epoch = StepsAnEpoch(epoch, plan);
  double wanted = steps_an_epoch;
  if (settings.epochs) {
    RequireAsked(*settings.epochs > 0, "--epochs", *settings.epochs, "must be above 0");
    wanted = *settings.epochs * steps_an_epoch;
  } else if (settings.tokens) {
    RequireAsked(*settings.tokens >= 1, "--tokens", *settings.tokens, "must be at least 1");
    // Also under --drop-last, whose steps have as many tokens on average and are fewer to an epoch.
    const double steps_of_epoch_tokens =
        static_cast<double>(epoch.samples) / static_cast<double>(plan.samples_per_step());
    wanted =
        static_cast<double>(*settings.tokens) / static_cast<double>(epoch.tokens) * steps_of_epoch_tokens;
  }
  if (!(wanted <= static_cast<double>(kMostSteps))) {
    throw Error(ErrorCode::kUsage, "--epochs, --tokens", "make more steps than this build counts");
  }
  return wanted;
}

int64_t StepsOf(const TrainSettings& settings, const EpochCounts& epoch, const TrainPlan& plan) {
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(StepsAsked(settings, epoch, plan))));
}

void RequireStepThatFits(const TrainPlan& plan) {
  // Their product may be more than a number holds.
  if (plan.batch <= kMostStepSamples / plan.ranks / plan.accum) return;
  const std::string ranks = plan.ranks > 1 ? " x " + std::to_string(plan.ranks) + " ranks" : "";
  throw Error(ErrorCode::kUsage, "--batch, --accum",
              "make steps of " + std::to_string(plan.batch) + " x " + std::to_string(plan.accum) + ranks +
                  " samples, and a step has at most " + std::to_string(kMostStepSamples),
              "", "lower --batch or --accum");
}

void RequireLeaves(const TrainPlan& plan) {
  const int64_t leaves = plan.exact_world, micro_batches = plan.accum * plan.ranks;
  if (leaves == 0) return;
  const std::string flag = "--exact-world " + std::to_string(leaves);
  if (leaves % plan.ranks != 0) {
    throw Error(ErrorCode::kUsage, flag,
                "is a run of 1, 2, 4, ... up to " + std::to_string(leaves) + " ranks, not of " +
                    std::to_string(plan.ranks),
                "", "start as many ranks, or another run with a greater --exact-world");
  }
  if (micro_batches % leaves != 0) {
    throw Error(ErrorCode::kUsage, flag,
                "does not divide the " + std::to_string(micro_batches) +
                    " micro-batches of a step (--accum " + std::to_string(plan.accum) + " on " +
                    std::to_string(plan.ranks) + " ranks)",
                "", "make --accum a multiple of " + std::to_string(leaves / plan.ranks));
  }
}

void RequireCarriedState(const TrainPlan& plan, const ModelConfig& model) {
  if (plan.tbptt == 0 || FamilyOf(model).carries_state()) return;
  throw Error(ErrorCode::kUsage, "--tbptt",
              std::string("needs a model that carries a state from token to token, which ") +
                  FamilyOf(model).model_type() + " does not",
              "",
              "leave it out, or take a model of the family ten; --checkpoint-activations saves memory, too");
}

double WarmupSteps(double ratio, int64_t total_steps) {
  RequireAsked(ratio >= 0 && ratio <= 1, "--warmup-ratio", ratio, "must lie in [0, 1]");
  return std::ceil(ratio * static_cast<double>(total_steps));
}

}  // namespace trainwright
