#include "lib/run/resumed_plan.h"

#include <filesystem>
#include <utility>

#include "lib/base/error.h"
#include "lib/run/plan_choices.h"
#include "lib/run/plan_codec.h"
#include "lib/run/plan_rules.h"
#include "lib/run/schedule_shares.h"
#include "lib/spec/built_in_objectives.h"
#include "lib/spec/family.h"
#include "lib/spec/own_options.h"

namespace trainwright {
namespace {

constexpr char kSameSums[] = ": the same sums in another order, so results differ by rounding";

Error OtherStep(int64_t samples, int64_t ranks) {
  return Error(ErrorCode::kUsage, "--batch, --accum",
               "do not make the run's " + std::to_string(samples) + " samples a step" +
                   (ranks > 1 ? " on " + std::to_string(ranks) + " ranks" : ""),
               "", "a resumed run may split its step otherwise, but not change its size");
}

std::string OtherBatch(int64_t batch, int64_t before) {
  return "micro-batches of " + std::to_string(batch) + " samples instead of the run's " +
         std::to_string(before) + kSameSums;
}

std::string OtherBatchTokens(int64_t tokens, int64_t before) {
  const auto limit = [](int64_t most) {
    return most > 0 ? "of at most " + std::to_string(most) + " tokens" : "without a limit of tokens";
  };
  return "micro-batches " + limit(tokens) + " instead of the run's " + limit(before) + kSameSums;
}

/// Takes over another split of the step.
/// \returns warnings
/// \throws Error{kUsage} on a step of another size
std::vector<std::string> SplitStep(const TrainSettings& settings, int64_t ranks, TrainPlan* plan) {
  if (!settings.batch && !settings.accum) return TakeRanks(ranks, plan);
  const int64_t samples = plan->samples_per_step();
  const bool alone = ranks == 1 && plan->ranks == 1;
  const bool by_accum = alone && settings.accum.value_or(0) > 0;
  const int64_t batch = settings.batch.value_or(by_accum ? samples / *settings.accum : plan->batch);
  const int64_t accum = settings.accum.value_or(batch > 0 ? samples / ranks / batch : 0);
  if (batch < 1 || accum < 1 || batch > samples || accum > samples / batch) throw OtherStep(samples, ranks);
  if (batch * accum * ranks != samples) {
    // What started the run on other ranks may start it again on these.
    const bool of_other_ranks = !alone && batch == plan->batch && samples % (batch * accum) == 0;
    if (!of_other_ranks) throw OtherStep(samples, ranks);
    return TakeRanks(ranks, plan);
  }
  if (batch == plan->batch) return TakeRanks(ranks, plan);
  const int64_t before = plan->batch;
  plan->batch = batch;
  plan->accum = accum;
  plan->ranks = ranks;
  RequireLeaves(*plan);
  return {OtherBatch(batch, before)};
}

/// Takes over another limit of a micro-batch's tokens.
/// \returns warnings
/// \throws Error{kUsage}
std::vector<std::string> TakeBatchTokens(const TrainSettings& settings, TrainPlan* plan) {
  const int64_t before = plan->max_batch_tokens, now = settings.max_tokens_per_batch.value_or(before);
  if (now < 0) throw Error(ErrorCode::kUsage, "--max-tokens-per-batch", "must be at least 0 tokens");
  if (now == before) return {};
  plan->max_batch_tokens = now;
  return {OtherBatchTokens(now, before)};
}

/// Takes over an own option of the plan's objective that says how a step is computed.
/// \returns warnings
std::vector<std::string> TakeOwnDivision(const OwnOption& option, const OwnValue& value, TrainPlan* plan) {
  OwnValue& stored = plan->objective_own[option.name];
  if (value == stored) return {};
  const std::string before = stored.ToString();
  stored = value;
  return {"--" + option.flag() + " " + value.ToString() + " instead of the run's " + before + kSameSums};
}

/// The same of those that are asked for.
/// \throws Error{kUsage} on a value that an option cannot have
std::vector<std::string> TakeOwnDivision(const TrainSettings& settings, TrainPlan* plan) {
  std::vector<std::string> warnings;
  for (const auto& [name, value] : AskedOwnOptions(settings)) {
    if (!IsFreeOnResume(plan->objective, name)) continue;
    const OwnOption& option = *FindBuiltInOwnOption(plan->objective, name);
    const OwnOptions complete =
        WithDescribed({{name, value}}, {option}, ErrorCode::kUsage, "the objective " + plan->objective);
    for (std::string& warning : TakeOwnDivision(option, complete.at(name), plan)) {
      warnings.push_back(std::move(warning));
    }
  }
  return warnings;
}

/// Of an option that may be another one than the run began with.
/// \throws Error{kUsage} where it is asked for and the run's objective or optimizer does not take it
void RequireTaken(const PlanOption& option, const TrainSettings& settings, const TrainPlan& plan) {
  if (option.taken_by == TakenBy::kEveryRun || plan.Takes(option.stored)) return;
  if (option.value.asked(settings).is_null()) return;
  const bool of_objective = option.taken_by == TakenBy::kObjective;
  const std::string flag = "--" + option.options.front();
  throw Error(ErrorCode::kUsage, flag,
              "is not taken by the run's " +
                  (of_objective ? "objective " + plan.objective : "optimizer " + plan.optimizer.name),
              "", "leave out " + flag);
}

}  // namespace

void TakeOwnFiles(const TrainSettings& settings, TrainPlan* plan) {
  namespace fs = std::filesystem;
  for (const auto& [name, value] : AskedOwnOptions(settings)) {
    if (!NamesOwnFile(plan->objective, name)) continue;
    const fs::path asked = value.ToString();
    OwnValue& stored = plan->objective_own[name];
    // Relative ones start from where the run began, which may be elsewhere.
    if (asked.lexically_normal() != fs::path(stored.ToString()).lexically_normal()) {
      stored = asked.empty() ? "" : fs::absolute(asked).lexically_normal().string();
    }
  }
}

std::vector<std::string> TakeRecordedDivision(const TrainPlan& recorded, TrainPlan* plan,
                                              const PlanTable& table) {
  if (recorded.samples_per_step() != plan->samples_per_step()) return {};
  const TrainPlan before = *plan;
  for (const PlanOption& option : table) {
    if (option.free_on_resume) option.value.set(option.value.get(recorded), option.stored, plan);
  }
  std::vector<std::string> warnings;
  for (const auto& [name, value] : recorded.objective_own) {
    if (!IsFreeOnResume(plan->objective, name) || !plan->objective_own.contains(name)) continue;
    const OwnOption& option = *FindBuiltInOwnOption(plan->objective, name);
    for (std::string& warning : TakeOwnDivision(option, value, plan)) warnings.push_back(std::move(warning));
  }
  if (plan->max_batch_tokens != before.max_batch_tokens) {
    warnings.push_back(OtherBatchTokens(plan->max_batch_tokens, before.max_batch_tokens));
  }
  if (plan->batch != before.batch) {
    warnings.push_back(OtherBatch(plan->batch, before.batch));
  } else {
    // How many of these a rank has follows from the ranks that go on: see TakeRanks.
    plan->accum = before.accum;
    plan->ranks = before.ranks;
  }
  return warnings;
}

nlohmann::json EncodeLastingPlan(TrainPlan plan, const PlanTable& table) {
  plan.schedule.total_steps = 0;
  ClearShares(plan.shares, &plan.schedule);
  plan.length_rule.clear();
  std::erase_if(plan.objective_own, [&](const auto& own) {
    return NamesOwnFile(plan.objective, own.first) || IsFreeOnResume(plan.objective, own.first);
  });
  nlohmann::json lasting = EncodePlan(plan, table);
  for (const PlanOption& option : table) {
    if (option.free_on_resume) lasting.erase(option.stored);
  }
  lasting["samples_per_step"] = plan.samples_per_step();
  return lasting;
}

std::vector<std::string> TakeRanks(int64_t ranks, TrainPlan* plan) {
  if (ranks == plan->ranks) return {};
  const int64_t micro_batches = plan->accum * plan->ranks;
  TrainPlan next = *plan;
  next.ranks = ranks;
  next.accum = micro_batches / ranks;
  RequireLeaves(next);
  if (next.accum * ranks != micro_batches) {
    throw Error(ErrorCode::kUsage, std::to_string(ranks) + " ranks",
                "cannot have as many each of the " + std::to_string(micro_batches) +
                    " micro-batches of the run's steps",
                "", "start a number of ranks that divides them, or give a lower --batch");
  }
  const std::string before = std::to_string(plan->ranks);
  *plan = next;
  if (plan->exact_world > 0) return {};
  return {std::to_string(ranks) + " ranks instead of the run's " + before + ", with --accum " +
          std::to_string(plan->accum) + kSameSums};
}

TrainSettings InWordsOfPlan(TrainSettings settings, const TrainPlan& plan, const ModelConfig& model) {
  std::string& asked = settings.lora_targets;
  if (!plan.tuning.lora || asked.empty()) return settings;
  const std::string& stored = plan.tuning.lora->targets;
  if (asked != stored && ChooseLoraTargets(asked, model) == ChooseLoraTargets(stored, model)) asked = stored;
  return settings;
}

std::vector<std::string> ReconcilePlan(const TrainSettings& settings, TrainPlan* plan, int64_t ranks,
                                       const PlanTable& table) {
  for (const PlanOption& option : table) {
    if (option.free_on_resume) {
      RequireTaken(option, settings, *plan);
      continue;
    }
    const std::optional<PlanDifference> difference = DifferenceOf(option, settings, *plan);
    if (!difference) continue;
    const std::string flag = "--" + difference->option;
    throw Error(ErrorCode::kUsage, flag, difference->asked + " differs from the run's " + difference->stored,
                "",
                "a resumed run continues its plan: leave out " + flag + ", or start another run with --out");
  }
  if (settings.zero) plan->zero = *settings.zero;
  if (!settings.zero_accum.empty()) {
    plan->zero_accumulation = ParseZeroAccumulation(settings.zero_accum, "--zero-accum");
  }
  std::vector<std::string> warnings = TakeBatchTokens(settings, plan);
  for (std::string& warning : TakeOwnDivision(settings, plan)) warnings.push_back(std::move(warning));
  for (std::string& warning : SplitStep(settings, ranks, plan)) warnings.push_back(std::move(warning));
  return warnings;
}

}  // namespace trainwright
