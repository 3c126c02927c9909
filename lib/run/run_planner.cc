#include "lib/run/run_planner.h"

#include <algorithm>
#include <cmath>

#include "lib/base/error.h"
#include "lib/base/units.h"
#include "lib/run/plan_rules.h"
#include "lib/run/schedule_planner.h"
#include "lib/spec/family.h"
#include "lib/spec/saved_modules.h"
#include "lib/spec/usual_sizes.h"

namespace trainwright {
namespace {

constexpr int64_t kLeastDefaultSteps = 100;

/// "lm or sft": the records that the objectives take, or the objectives that take some records.
std::string Alternatives(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " or ") + name;
  return text;
}

std::vector<std::string> NamesOfTakers(const PlanFacts& facts) {
  std::vector<std::string> names;
  for (const ObjectiveDescription& objective : facts.choices.objectives) {
    if (objective.TakesAll(facts.records)) names.push_back(objective.name);
  }
  return names;
}

/// Of data that no objective takes.
Error NoObjective(const PlanFacts& facts) {
  std::vector<std::string> kinds;
  for (const ObjectiveDescription& objective : facts.choices.objectives) {
    for (const TakenRecords& taken : objective.records) {
      if (IsOwnKind(taken.kind)) continue;  // which other programs make
      const std::string kind = RecordKindName(taken.kind);
      if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
    }
  }
  return Error(ErrorCode::kBadInput, "--data",
               "holds " + RecordKindNames(facts.records) + " records, of which no objective is made", "",
               "make the stream with pretokenize --records " + Alternatives(kinds));
}

/// \throws Error{kBadInput} where an objective does not take the records
void RequireTaken(const ObjectiveDescription& objective, const PlanFacts& facts) {
  if (objective.TakesAll(facts.records)) return;
  const std::vector<std::string> takers = NamesOfTakers(facts);
  if (takers.empty()) throw NoObjective(facts);
  for (const RefusedRecords& refused : objective.refused) {
    if (!facts.records.contains(refused.kind)) continue;
    throw Error(ErrorCode::kBadInput, "--objective " + objective.name, refused.problem, "", refused.hint);
  }
  throw Error(ErrorCode::kBadInput, "--objective " + objective.name,
              "does not take the " + RecordKindNames(facts.records) + " records of the data", "",
              "train with --objective " + Alternatives(takers));
}

/// Why an objective was chosen for the data: what it says of the records, of the first kind that it says
/// something of; else by their name alone.
std::string WhyChosen(const ObjectiveDescription& objective, const std::set<RecordKind>& kinds) {
  for (const RecordKind kind : kinds) {
    const std::string& why = objective.FindRecords(kind)->why;
    if (kinds.size() == 1 && !why.empty()) return why;
  }
  return "the shards hold " + RecordKindNames(kinds) + " records";
}

/// --objective auto: the one that has the name of the records, or the first that may be chosen for them.
void ChooseObjective(const PlanFacts& facts, PlannedRun* planned) {
  std::vector<std::string> takers = NamesOfTakers(facts);
  std::erase_if(takers, [&](const std::string& name) {
    return !facts.choices.Objective(name).IsChosenFor(facts.records);
  });
  if (takers.empty()) {
    if (facts.require_alike) facts.require_alike();
    throw NoObjective(facts);
  }
  const std::string records = RecordKindNames(facts.records);
  const bool named = std::find(takers.begin(), takers.end(), records) != takers.end();
  std::string& objective = planned->plan.objective;
  objective = named ? records : takers.front();
  const std::string why = WhyChosen(facts.choices.Objective(objective), facts.records);
  planned->reasons.push_back(
      {"objective", why, objective == kDefaultObjective ? "" : "objective " + objective});
}

void PlanObjective(const TrainSettings& settings, const PlanFacts& facts, PlannedRun* planned) {
  if (settings.objective == "auto") ChooseObjective(facts, planned);
  const ObjectiveDescription& objective = facts.choices.Objective(planned->plan.objective);
  if (!objective.mixes && facts.require_alike) facts.require_alike();
  RequireTaken(objective, facts);
  TakeObjectiveNeeds(facts, planned);
}

/// \throws Error{kUsage} on options of adapters in a run without them
void RefuseAdapterOptions(const TrainSettings& settings) {
  const auto refuse = [](bool given, const char* flag) {
    if (!given) return;
    throw Error(ErrorCode::kUsage, flag, "has a meaning only with adapters", "",
                "add --lora RANK, or leave it out");
  };
  refuse(settings.lora_alpha.has_value(), "--lora-alpha");
  refuse(settings.lora_dropout.has_value(), "--lora-dropout");
  refuse(!settings.lora_targets.empty(), "--lora-targets");
  refuse(settings.rslora, "--rslora");
  refuse(settings.dora, "--dora");
  refuse(!settings.lora_save_modules.empty(), "--lora-save-modules");
  refuse(settings.quant == "nf4", "--quant nf4");
}

/// What is trained on top of an adapter: its shape is given, dropout belongs to the training alone. Modules
/// that are spelt otherwise, such as all-linear for a list of all, are spelt so in the run.
/// \throws Error{kUsage} on another shape
LoraOptions GoOnWith(const LoraOptions& adapter, const ModelConfig& model, const TrainSettings& settings) {
  const auto require_same = [&](bool same, const char* flag) {
    if (same) return;
    throw Error(ErrorCode::kUsage, flag, "differs from that of the adapter " + settings.adapter, "",
                std::string("leave out ") + flag);
  };
  LoraOptions lora = adapter;
  require_same(settings.lora.value_or(lora.rank) == lora.rank, "--lora");
  require_same(settings.lora_alpha.value_or(lora.alpha) == lora.alpha, "--lora-alpha");
  if (!settings.lora_targets.empty()) {
    lora.targets = settings.lora_targets;
    require_same(ChooseLoraTargets(lora.targets, model) == ChooseLoraTargets(adapter.targets, model),
                 "--lora-targets");
  }
  require_same(!settings.rslora || lora.rank_stabilized, "--rslora");
  require_same(!settings.dora || lora.dora, "--dora");
  require_same(
      settings.lora_save_modules.empty() || MeanSameModules(settings.lora_save_modules, lora.saved_modules),
      "--lora-save-modules");
  lora.dropout = settings.lora_dropout.value_or(lora.dropout);
  return lora;
}

void PlanAdapters(const TrainSettings& settings, const PlanFacts& facts, PlannedRun* planned) {
  std::optional<LoraOptions>& lora = planned->plan.tuning.lora;
  if (facts.adapter) {
    lora = GoOnWith(*facts.adapter, facts.model, settings);
    return;
  }
  if (!settings.lora) {
    RefuseAdapterOptions(settings);
    return;
  }
  lora = LoraOptions{.rank = *settings.lora};
  lora->alpha = settings.lora_alpha.value_or(2 * static_cast<double>(lora->rank));
  lora->dropout = settings.lora_dropout.value_or(0.0);
  if (!settings.lora_targets.empty()) lora->targets = settings.lora_targets;
  lora->rank_stabilized = settings.rslora;
  lora->dora = settings.dora;
  lora->saved_modules = settings.lora_save_modules;
  if (!settings.lora_alpha) planned->reasons.push_back({"lora-alpha", "twice the rank", ""});
}

void PlanPrecision(const TrainSettings& settings, const PlanFacts& facts, PlannedRun* planned) {
  if (settings.mixed_precision != "auto") return;
  const Precision precision = ParsePrecision("auto", facts.fast_bf16, facts.fast_fp16);
  planned->plan.precision = precision;
  const char* const reason = precision == Precision::kBf16 ? "this device multiplies bf16 faster than fp32"
                             : precision == Precision::kFp16
                                 ? "this device has no bf16 GEMMs, and is fast at fp16"
                                 : "bf16 is not known to be 1.1 times as fast as fp32 on this device";
  planned->reasons.push_back({"mixed-precision", reason, "precision " + PrecisionName(precision)});
}

/// How many tokens a sample and a micro-batch have.
void PlanSizes(const TrainSettings& settings, const PlanFacts& facts, PlannedRun* planned) {
  TrainPlan& plan = planned->plan;
  const int64_t longest = FamilyOf(facts.model).LongestSequence(facts.model);
  const std::optional<SampleTokens> own = OwnSampleTokens(settings, facts.choices, plan, longest);
  if (own) {
    plan.sequence_tokens = own->longest_span;
    planned->reasons.push_back({"seq", "the longest text of --objective " + plan.objective, ""});
  } else if (!settings.seq) {
    plan.sequence_tokens = UsualSequence(facts.model.max_positions);
    planned->reasons.push_back({"seq", "the positions of the model, at most 2048", ""});
    RequireAsked(plan.sequence_tokens >= 1, "--seq", plan.sequence_tokens, "tokens: must be at least 1");
  }
  RequirePositions(plan.sequence_tokens, longest,
                   "use a shorter --seq, or a --model config.json with more max_position_embeddings");
  if (!settings.batch) {
    const int64_t tokens = UsualMicroBatchTokens(facts.gpu);
    plan.batch = UsualBatch(own ? own->sample : plan.sequence_tokens, facts.gpu);
    planned->reasons.push_back({"batch",
                                "about " + FormatCount(static_cast<double>(tokens)) +
                                    " tokens a micro-batch suit " + (facts.gpu ? "a GPU" : "a CPU"),
                                "batch " + std::to_string(plan.batch)});
  }
  RequireStepThatFits(plan);
  RequireLeaves(plan);
  TakeOwnOfStep(facts.choices, &plan);
  RequireOwnOptions(settings, facts.choices, plan);
  RequireSuitableModel(facts.choices, plan, facts.model);
  plan.window_chunks *= plan.samples.block_chunks;  // as many places of the data in a window
}

/// The length of a run that goes by the data.
void PlanLength(const TrainSettings& settings, const EpochCounts& epoch, PlannedRun* planned) {
  TrainPlan& plan = planned->plan;
  const auto because = [&](const std::string& headline, const std::string& text) {
    planned->reasons.push_back({"steps", text, headline});
  };
  planned->epoch = epoch;
  int64_t& steps = plan.schedule.total_steps;
  steps = StepsOf(settings, epoch, plan);
  if (!plan.length_rule.empty()) {
    because("", "as many as " + plan.length_rule + " take, rounded up");
    return;
  }
  plan.length_rule = "default";
  const std::string one_epoch = "one epoch of the data is " + std::to_string(steps) + " steps";
  if (steps >= kLeastDefaultSteps) {
    because(std::to_string(steps) + " steps", one_epoch);
    return;
  }
  because(std::to_string(kLeastDefaultSteps) + " steps, " +
              FormatFixed(static_cast<double>(kLeastDefaultSteps) / StepsAsked(settings, epoch, plan), 1) +
              " epochs",
          one_epoch + ", too few to learn from; --steps, --epochs or --tokens decide otherwise");
  steps = kLeastDefaultSteps;
}

}  // namespace

void TakeAsked(const TrainSettings& settings, const PlanTable& table, TrainPlan* plan) {
  for (const PlanOption& option : table) {
    if (option.options.empty()) continue;
    const nlohmann::json asked = option.value.asked(settings);
    if (asked.is_null()) continue;
    const std::string flag = "--" + option.options.front();
    if (asked.is_number() && !option.range.holds(asked.get<double>())) {
      throw Error(ErrorCode::kUsage, flag, asked.dump() + " " + option.range.problem);
    }
    option.value.set(asked, flag, plan);
  }
}

void TakeObjectiveNeeds(const PlanFacts& facts, PlannedRun* planned) {
  TrainPlan& plan = planned->plan;
  const ObjectiveDescription& objective = facts.choices.Objective(plan.objective);
  const auto take = [&](const OwnOptions& decided, const std::string& why) {
    for (const auto& [name, value] : decided) {
      if (!plan.objective_own.emplace(name, value).second) continue;
      const OwnOption* option = FindOwnOption(objective.own, name);
      TRAINWRIGHT_CHECK(option != nullptr);
      const bool usual = option->initial == value;
      planned->reasons.push_back({option->flag(), why, usual ? "" : option->flag() + " " + value.ToString()});
    }
  };
  if (objective.own_of_data) {
    take(objective.own_of_data(facts.records),
         "the shards hold " + RecordKindNames(facts.records) + " records");
  }
  if (objective.own_of_model) {
    const FamilyDescription& family = FamilyOf(facts.model);
    take(objective.own_of_model(family), std::string("the model is of the family ") + family.model_type());
  }
  if (objective.drops_last && !plan.drop_last) {
    plan.drop_last = true;
    planned->reasons.push_back(
        {"drop-last", "no step of --objective " + objective.name + " mixes epochs", ""});
  }
}

PlannedRun PlanRun(const TrainSettings& settings, const PlanFacts& facts) {
  PlannedRun planned;
  TrainPlan& plan = planned.plan;
  plan.optimizer =
      facts.choices.Optimizer(settings.optimizer.empty() ? kDefaultOptimizer : settings.optimizer).defaults;
  TakeAsked(settings, TrainPlanTable(), &plan);
  plan.eval_split = facts.eval_split;
  plan.ranks = facts.ranks;
  PlanObjective(settings, facts, &planned);
  CompleteAskedPlan(settings, TrainPlanTable(), facts.choices, &plan);
  RequireCarriedState(plan, facts.model);
  PlanPrecision(settings, facts, &planned);
  PlanAdapters(settings, facts, &planned);
  PlanSizes(settings, facts, &planned);
  plan.length_rule = LengthRule(settings);
  if (!settings.steps) PlanLength(settings, facts.count_epoch(plan), &planned);
  PlanSchedule(settings, facts, &planned);
  RequireOptimizerOptions(facts.choices, plan);
  return planned;
}

}  // namespace trainwright
