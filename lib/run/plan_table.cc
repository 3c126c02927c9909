#include "lib/run/plan_table.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "lib/loading/document_split.h"
#include "lib/loading/mixture_weights.h"
#include "lib/run/plan_choices.h"
#include "lib/run/plan_rules.h"
#include "lib/spec/built_in_objectives.h"
#include "lib/spec/saved_modules.h"

namespace trainwright {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr double kMostTokens = double{1u << 31};
constexpr StoredSizes kTokens = {1, kMostTokens}, kSteps = {1, double{kMostSteps}};

// Ranges.

template <int64_t kLeast, int64_t kMost = kMostSteps>
bool Within(double value) {
  return value >= static_cast<double>(kLeast) && value <= static_cast<double>(kMost);
}

const PlanRange kNotNegative = {[](double value) { return value >= 0 && std::isfinite(value); },
                                "must be a number of at least 0"},
                kBelowOne = {[](double value) { return value >= 0 && value < 1; },
                             "must be at least 0 and below 1"},
                kZScore = {[](double value) { return value >= 0 && value <= 11; },
                           "must lie in [0, 11]: of 128 values none is further above their mean than 11.2 "
                           "standard deviations"},
                kShare = {[](double value) { return value >= 0 && value <= 1; }, "must lie in [0, 1]"};

// Names.

/// The value of `all` that has a name.
template <typename Value>
Value ValueNamed(const std::string& name, const std::string& of, const auto& name_of,
                 std::initializer_list<Value> all) {
  for (const Value value : all) {
    if (name_of(value) == name) return value;
  }
  throw Error(ErrorCode::kBadInput, of, "unknown name '" + name + "'");
}

Precision PrecisionNamed(const std::string& name, const std::string& of) {
  return ValueNamed(name, of, PrecisionName, {Precision::kFp32, Precision::kBf16, Precision::kFp16});
}

json AskedPrecision(const TrainSettings& settings) {
  if (settings.mixed_precision.empty() || settings.mixed_precision == "auto") return nullptr;
  return PrecisionName(ParsePrecision(settings.mixed_precision, /*fast_bf16=*/false, /*fast_fp16=*/false));
}

/// In the words of the command line.
std::optional<PlanDifference> OtherPrecision(const TrainSettings& settings, const TrainPlan& plan) {
  auto difference = DifferenceOf("mixed-precision", AskedPrecision(settings), PrecisionName(plan.precision));
  if (difference) difference->asked = settings.mixed_precision;
  return difference;
}

json AskedFp8(const TrainSettings& settings) {
  return settings.fp8.empty() ? json() : json(Fp8PartsName(ParseFp8Parts(settings.fp8, "--fp8")));
}

Fp8Parts Fp8Named(const std::string& name, const std::string& of) {
  return ValueNamed(
      name, of, Fp8PartsName,
      {Fp8Parts{}, Fp8Parts{.mlp = true}, Fp8Parts{.head = true}, Fp8Parts{.mlp = true, .head = true}});
}

/// Any name: which there are, the registry of what runs the training says.
PlanValue ObjectiveValue() {
  PlanValue value = Kept(&TrainPlan::objective);
  value.asked = [](const TrainSettings& settings) {
    return settings.objective == "auto" ? json() : json(settings.objective);
  };
  return value;
}

json AskedLossOn(const TrainSettings& settings) {
  return settings.loss_on.empty() ? json() : json(NameOf(ParseLossOn(settings.loss_on)));
}

json AskedPacking(const TrainSettings& settings) {
  return settings.packing.empty() ? json() : json(PackingName(ParsePacking(settings.packing)));
}

json AskedSchedule(const TrainSettings& settings) {
  if (settings.schedule.empty()) return nullptr;
  return ScheduleKindName(ParseScheduleKind(settings.schedule, "--schedule"));
}

json AskedOptimizerStates(const TrainSettings& settings) {
  if (settings.optimizer_states.empty()) return nullptr;
  return OptimizerStatesName(ParseOptimizerStates(settings.optimizer_states, "--optimizer-states"));
}

json AskedZeroAccumulation(const TrainSettings& settings) {
  if (settings.zero_accum.empty()) return nullptr;
  return ZeroAccumulationName(ParseZeroAccumulation(settings.zero_accum, "--zero-accum"));
}

WeightFormat FormatNamed(const std::string& name, const std::string& of) {
  return ValueNamed(name, of, WeightFormatName, {WeightFormat::kPlain, WeightFormat::kNf4});
}

json AskedFormat(const TrainSettings& settings) {
  return settings.quant.empty() ? json() : json(settings.quant);
}

// The length of the run.

std::optional<PlanDifference> OtherLength(const TrainSettings& settings, const TrainPlan& plan) {
  const std::string rule = LengthRule(settings);
  const int64_t steps = plan.schedule.total_steps;
  if (rule.empty() || rule == plan.length_rule || settings.steps == steps) return std::nullopt;
  const size_t space = rule.find(' ');
  return PlanDifference{rule.substr(0, space), rule.substr(space + 1),
                        std::to_string(steps) + " steps (" + plan.length_rule + ")"};
}

/// 3 rather than 3.0 for what is a whole number but for one-cycle's default.
ordered_json EncodeSteps(double steps) {
  if (steps == std::floor(steps)) return static_cast<int64_t>(steps);
  return steps;
}

PlanValue WarmupValue() {
  PlanValue value = Asked(&TrainSettings::warmup, &TrainPlan::schedule, &ScheduleOptions::warmup_steps);
  value.get = [](const TrainPlan& plan) { return EncodeSteps(plan.schedule.warmup_steps); };
  return value;
}

PlanValue WarmupRatioValue() {
  return {.get = [](const TrainPlan& plan) -> ordered_json {
            if (!plan.shares.warmup_ratio) return nullptr;
            return *plan.shares.warmup_ratio;
          },
          .set =
              [](const json& value, const std::string& name, TrainPlan* plan) {
                plan->shares.warmup_ratio.reset();
                if (!value.is_null()) plan->shares.warmup_ratio = ReadPlanValue<double>(value, name);
              },
          .asked =
              [](const TrainSettings& settings) {
                return settings.warmup_ratio ? json(*settings.warmup_ratio) : json();
              }};
}

/// Whether the warm-up is the share of the run that was asked for. That of a run that was made longer without
/// --replan-schedule is not.
bool HasWarmupRatio(const TrainPlan& plan) {
  const std::optional<double>& ratio = plan.shares.warmup_ratio;
  return ratio && WarmupSteps(*ratio, plan.schedule.total_steps) == plan.schedule.warmup_steps;
}

/// A fraction of a step is one-cycle's default, which the length gives again.
bool TellsWarmupSteps(const TrainPlan& plan) {
  return !HasWarmupRatio(plan) && EncodeSteps(plan.schedule.warmup_steps).is_number_integer();
}

std::optional<PlanDifference> OtherWarmup(const TrainSettings& settings, const TrainPlan& plan) {
  if (!settings.warmup) return std::nullopt;
  return DifferenceOf("warmup", *settings.warmup, EncodeSteps(plan.schedule.warmup_steps));
}

std::optional<PlanDifference> OtherWarmupRatio(const TrainSettings& settings, const TrainPlan& plan) {
  if (!settings.warmup_ratio || settings.warmup_ratio == plan.shares.warmup_ratio) return std::nullopt;
  const json stored = EncodeSteps(plan.schedule.warmup_steps);
  const double asked = WarmupSteps(*settings.warmup_ratio, plan.schedule.total_steps);
  if (asked == plan.schedule.warmup_steps) return std::nullopt;
  return PlanDifference{"warmup-ratio", json(*settings.warmup_ratio).dump(),
                        "warm-up of " + stored.dump() + " steps"};
}

// What is predicted, and on which documents.

/// Of objectives that do not take it every token is predicted, whatever the plan would do with conversations.
std::optional<PlanDifference> OtherLossOn(const TrainSettings& settings, const TrainPlan& plan) {
  return DifferenceOf("loss-on", AskedLossOn(settings), NameOf(plan.labels_on()));
}

/// Which documents a number of them are depends on the data: see PlanFacts.
PlanValue SplitValue() {
  return {.get = [](const TrainPlan& plan) -> ordered_json {
            if (!plan.eval_split) return nullptr;
            return EncodeSplit(*plan.eval_split);
          },
          .set =
              [](const json& value, const std::string&, TrainPlan* plan) {
                plan->eval_split.reset();
                if (!value.is_null()) plan->eval_split = DecodeSplit(value);
              }};
}

std::optional<PlanDifference> OtherSplit(const TrainSettings& settings, const TrainPlan& plan) {
  const std::string split = plan.eval_split ? plan.eval_split->asked : "";
  if (!settings.eval_split.empty() && settings.eval_split != split) {
    return PlanDifference{"eval-split", settings.eval_split,
                          split.empty() ? "plan, which holds nothing out" : split};
  }
  if (!plan.eval_split) {
    if (!settings.eval_split_seed) return std::nullopt;
    return PlanDifference{"eval-split-seed", std::to_string(*settings.eval_split_seed),
                          "plan, which holds nothing out"};
  }
  if (settings.eval_split_seed && *settings.eval_split_seed != plan.eval_split->seed) {
    return PlanDifference{"eval-split-seed", std::to_string(*settings.eval_split_seed),
                          std::to_string(plan.eval_split->seed)};
  }
  if (!settings.eval_data.empty()) {
    return PlanDifference{"eval-data", JoinedPaths(settings.eval_data),
                          "evaluation on what --eval-split " + split + " holds out"};
  }
  return std::nullopt;
}

std::vector<uint64_t> WeightsOf(const std::string& shares) {
  return ParseMixtureWeights(shares, static_cast<size_t>(std::count(shares.begin(), shares.end(), ',')) + 1);
}

/// The same shares may be said by other numbers, and one set has the whole, whatever its number.
std::optional<PlanDifference> OtherWeights(const TrainSettings& settings, const TrainPlan& plan) {
  const std::string &asked = settings.data_weights, &stored = plan.data_weights;
  if (asked.empty() || asked == stored || WeightsOf(asked).size() == 1) return std::nullopt;
  if (stored.empty()) return PlanDifference{"data-weights", asked, "shares, which are by the sets' sizes"};
  if (WeightsOf(asked) == WeightsOf(stored)) return std::nullopt;
  return PlanDifference{"data-weights", asked, stored};
}

ordered_json TellSplit(const TrainPlan& plan) {
  return {{"eval-split", plan.eval_split->asked}, {"eval-split-seed", plan.eval_split->seed}};
}

// What is trained.

bool HasAdapters(const TrainPlan& plan) {
  return plan.tuning.lora.has_value();
}

/// What was asked of adapters is completed from the adapter that a run starts with: see PlanFacts. States
/// lack `dora` and `saved_modules` where these are off, as those from before there were any do.
PlanValue LoraValue() {
  return {.get = [](const TrainPlan& plan) -> ordered_json {
            const std::optional<LoraOptions>& lora = plan.tuning.lora;
            if (!lora) return nullptr;
            ordered_json stored = {{"rank", lora->rank},
                                   {"alpha", lora->alpha},
                                   {"dropout", lora->dropout},
                                   {"targets", lora->targets},
                                   {"rank_stabilized", lora->rank_stabilized}};
            if (lora->dora) stored["dora"] = true;
            if (!lora->saved_modules.empty()) stored["saved_modules"] = lora->saved_modules;
            return stored;
          },
          .set =
              [](const json& value, const std::string&, TrainPlan* plan) {
                plan->tuning.lora.reset();
                if (value.is_null()) return;
                plan->tuning.lora = {.rank = ReadPlanValue<int64_t>(value.at("rank"), "rank"),
                                     .alpha = value.at("alpha").get<double>(),
                                     .dropout = value.at("dropout").get<double>(),
                                     .targets = value.at("targets").get<std::string>(),
                                     .rank_stabilized = value.at("rank_stabilized").get<bool>(),
                                     .dora = value.value("dora", false),
                                     .saved_modules = value.value("saved_modules", std::string())};
              }};
}

std::optional<PlanDifference> OtherLora(const TrainSettings& settings, const TrainPlan& plan) {
  const LoraOptions lora = plan.tuning.lora.value_or(LoraOptions{});
  const auto number = [](const auto& asked) { return asked ? json(*asked) : json(); };
  if (auto rank = DifferenceOf("lora", number(settings.lora), lora.rank)) return rank;
  if (auto alpha = DifferenceOf("lora-alpha", number(settings.lora_alpha), lora.alpha)) return alpha;
  if (auto dropout = DifferenceOf("lora-dropout", number(settings.lora_dropout), lora.dropout))
    return dropout;
  if (settings.rslora && !lora.rank_stabilized) return DifferenceOf("rslora", true, false);
  if (settings.dora && !lora.dora) return DifferenceOf("dora", true, false);
  const auto text = [](const std::string& asked) { return asked.empty() ? json() : json(asked); };
  const std::string& saved = settings.lora_save_modules;
  if (!saved.empty() && !MeanSameModules(saved, lora.saved_modules)) {
    return DifferenceOf("lora-save-modules", text(saved), lora.saved_modules);
  }
  const std::string& targets = settings.lora_targets;
  if (!targets.empty() && MeanSameModules(targets, lora.targets)) return std::nullopt;
  return DifferenceOf("lora-targets", text(targets), lora.targets);
}

ordered_json TellLora(const TrainPlan& plan) {
  const LoraOptions& lora = *plan.tuning.lora;
  ordered_json told = {{"lora", lora.rank},
                       {"lora-alpha", lora.alpha},
                       {"lora-dropout", lora.dropout},
                       {"lora-targets", lora.targets}};
  if (lora.rank_stabilized) told["rslora"] = true;
  if (lora.dora) told["dora"] = true;
  if (!lora.saved_modules.empty()) told["lora-save-modules"] = lora.saved_modules;
  return told;
}

// What only one objective or optimizer has.

/// The first of the options asked for that the plan has not, or has otherwise.
std::optional<PlanDifference> OtherOwnOption(const std::string& flag, const OwnOptions& asked,
                                             const OwnOptions& stored) {
  for (const auto& [name, value] : asked) {
    const auto found = stored.find(name);
    if (found != stored.end() && IsSameOwnValue(value, found->second)) continue;
    return PlanDifference{
        flag, FormatOwnOptions({{name, value}}).front(),
        found == stored.end() ? "options, which have no " + name : FormatOwnOptions({*found}).front()};
  }
  return std::nullopt;
}

/// Its defaults are those of the description: lib/run/plan_choices.h completes what was asked or stored.
template <typename... Path>
PlanOption OwnOptionsRow(const char* stored, const char* flag, OwnTexts texts,
                         std::vector<std::string> TrainSettings::*setting, Path... path) {
  const auto asked = [=](const TrainSettings& settings) {
    return ParseOwnOptions(settings.*setting, std::string("--") + flag, texts);
  };
  const PlanValue value = {
      .get = [=](const TrainPlan& plan) { return EncodeOwnOptions(MemberAt(plan, path...)); },
      // Each is an option by itself: those that are not asked for stay.
      .set =
          [=](const json& options, const std::string& name, TrainPlan* plan) {
            for (const auto& [own, decoded] : DecodeOwnOptions(options, name)) {
              MemberAt(plan, path...)[own] = decoded;
            }
          },
      .asked =
          [=](const TrainSettings& settings) {
            return (settings.*setting).empty() ? json() : json(EncodeOwnOptions(asked(settings)));
          }};
  return {.stored = stored,
          .options = {flag},
          .old_states = OldStates::AnyMayLackIt(json::object()),
          .value = value,
          .difference =
              [=](const TrainSettings& settings, const TrainPlan& plan) {
                return OtherOwnOption(flag, asked(settings), MemberAt(plan, path...));
              },
          .told_when = [=](const TrainPlan& plan) { return !MemberAt(plan, path...).empty(); },
          .told =
              [=](const TrainPlan& plan) {
                return ordered_json{{flag, FormatOwnOptions(MemberAt(plan, path...))}};
              }};
}

const std::vector<ObjectiveDescription>& DescribedObjectives() {
  static const std::vector<ObjectiveDescription> all = BuiltInObjectiveDescriptions();
  return all;
}

/// The flag of an option that an objective has, or another of this library; empty: it has none.
/// \param objective of the plan; of another one than this library's all options are given as NAME=VALUE
std::string FlagOfOwn(const std::string& objective, const std::string& name) {
  if (FindBuiltInObjective(objective) == nullptr) return "";
  for (const ObjectiveDescription& built_in : DescribedObjectives()) {
    const OwnOption* option = FindOwnOption(built_in.own, name);
    if (option != nullptr && option->has_flag()) return option->flag();
  }
  return "";
}

constexpr char kObjectiveOption[] = "objective-option";

/// By their flags; an empty text is what not giving it means.
ordered_json TellObjectiveOptions(const TrainPlan& plan) {
  ordered_json told = ordered_json::object();
  std::vector<std::string> without_flag;
  for (const auto& [name, value] : plan.objective_own) {
    const std::string flag = FlagOfOwn(plan.objective, name);
    if (flag.empty()) {
      without_flag.push_back(FormatOwnOptions({{name, value}}).front());
    } else if (!value.ToString().empty()) {
      told[flag] = value.is_number() ? EncodeSteps(value.number()) : ordered_json(value.text());
    }
  }
  if (!without_flag.empty()) told[kObjectiveOption] = without_flag;
  return told;
}

/// Those of the objectives of this library have flags of their own beside the one that takes NAME=VALUE.
PlanOption ObjectiveOptionsRow() {
  PlanOption row = OwnOptionsRow("objective_options", kObjectiveOption, OwnTexts::kTaken,
                                 &TrainSettings::objective_options, &TrainPlan::objective_own);
  for (const ObjectiveDescription& objective : DescribedObjectives()) {
    for (const OwnOption& option : objective.own) {
      if (option.has_flag()) row.options.push_back(option.flag());
    }
  }
  row.difference = [](const TrainSettings& settings, const TrainPlan& plan) {
    OwnOptions asked = AskedOwnOptions(settings);
    // What a file says is part of the data: a run knows its samples, not the name of the file.
    std::erase_if(asked, [&](const auto& own) {
      return NamesOwnFile(plan.objective, own.first) || IsFreeOnResume(plan.objective, own.first);
    });
    std::optional<PlanDifference> found = OtherOwnOption(kObjectiveOption, asked, plan.objective_own);
    if (!found) return found;
    const std::string flag = FlagOfOwn(plan.objective, found->asked.substr(0, found->asked.find('=')));
    if (!flag.empty()) found->option = flag;
    return found;
  };
  row.told = TellObjectiveOptions;
  return row;
}

// The rows, in the order of a state.

PlanTable StepRows() {
  return {
      {.stored = "batch",
       .options = {"batch"},
       .old_states = OldStates::AllHaveIt(),
       .value = Asked(&TrainSettings::batch, &TrainPlan::batch),
       .range = {Within<1, INT64_MAX>, "samples: must be at least 1"},
       .stored_sizes = kTokens,
       .free_on_resume = true,
       .config_line = 2},
      {.stored = "accum",
       .options = {"accum"},
       .old_states = OldStates::AllHaveIt(),
       .value = Asked(&TrainSettings::accum, &TrainPlan::accum),
       .range = {Within<1, INT64_MAX>, "micro-batches: must be at least 1"},
       .stored_sizes = kTokens,
       .free_on_resume = true,
       .config_line = 3},
      {.stored = "sequence_tokens",
       .options = {"seq"},
       .old_states = OldStates::AllHaveIt(),
       .value = Asked(&TrainSettings::seq, &TrainPlan::sequence_tokens),
       .range = {Within<1, INT64_MAX>, "tokens: must be at least 1"},
       .stored_sizes = kTokens,
       .told_when = GoesBySeq,
       .config_line = 4},
      {.stored = "window_chunks",
       .old_states = OldStates::AllHaveIt(),
       .value = Kept(&TrainPlan::window_chunks),
       .stored_sizes = {.least = 1}},
      {.stored = "seed",
       .options = {"seed"},
       .old_states = OldStates::AllHaveIt(),
       .value = Asked(&TrainSettings::seed, &TrainPlan::seed),
       .config_line = 16},
      {.stored = "precision",
       .options = {"mixed-precision"},
       .old_states = OldStates::AllHaveIt(),
       .value = Named<Precision>(PrecisionName, PrecisionNamed, AskedPrecision, &TrainPlan::precision),
       .difference = OtherPrecision,
       .told =
           [](const TrainPlan& plan) {
             const bool plain = plan.precision == Precision::kFp32;
             return ordered_json{{"mixed-precision", plain ? "no" : PrecisionName(plan.precision)}};
           },
       .config_line = 17},
  };
}

PlanTable ScheduleRows() {
  return {
      {.stored = "total_steps",
       .options = {"steps", "epochs", "tokens"},
       .old_states = OldStates::AllHaveIt(),
       .value = Asked(&TrainSettings::steps, &TrainPlan::schedule, &ScheduleOptions::total_steps),
       .range = {Within<1>, "must be at least 1"},
       .stored_sizes = kSteps,
       .difference = OtherLength,
       .config_line = 1},
      {.stored = "length_rule", .old_states = OldStates::AllHaveIt(), .value = Kept(&TrainPlan::length_rule)},
      {.stored = "schedule",
       .options = {"schedule"},
       .old_states = OldStates::AllHaveIt(),
       .value = Named<ScheduleKind>(ScheduleKindName, ParseScheduleKind, AskedSchedule, &TrainPlan::schedule,
                                    &ScheduleOptions::kind),
       .config_line = 6},
      {.stored = "lr",
       .options = {"lr"},
       .old_states = OldStates::AllHaveIt(),
       .value = Asked(&TrainSettings::lr, &TrainPlan::schedule, &ScheduleOptions::peak_lr),
       .range = kNotNegative,
       .config_line = 5},
      {.stored = "min_lr_ratio",
       .options = {"min-lr-ratio"},
       .old_states = OldStates::AllHaveIt(),
       .value = Asked(&TrainSettings::min_lr_ratio, &TrainPlan::schedule, &ScheduleOptions::final_lr_ratio),
       .range = kShare,
       .told_when = [](const TrainPlan& plan) { return plan.schedule.kind != ScheduleKind::kOneCycle; },
       .config_line = 26},
      {.stored = "warmup_steps",
       .options = {"warmup"},
       .old_states = OldStates::AllHaveIt(),
       .value = WarmupValue(),
       .range = {Within<0>, "steps: must be at least 0"},
       .difference = OtherWarmup,
       .told_when = TellsWarmupSteps,
       .config_line = 24},
      {.stored = "decay_steps",
       .options = {"decay-steps"},
       .old_states = OldStates::FirstLacksIt(0),
       .value = Asked(&TrainSettings::decay_steps, &TrainPlan::schedule, &ScheduleOptions::decay_steps),
       .stored_sizes = {0, double{kMostSteps}},
       .told_when = [](const TrainPlan& plan) { return plan.schedule.kind == ScheduleKind::kWsd; },
       .config_line = 25},
      {.stored = "cycle_momentum",
       .options = {"cycle-momentum"},
       .old_states = OldStates::FirstLacksIt(false),
       .value = Asked(&TrainSettings::cycle_momentum, &TrainPlan::schedule, &ScheduleOptions::cycle_beta1),
       .taken_by = TakenBy::kOptimizer,
       .told_when = [](const TrainPlan& plan) { return plan.schedule.cycle_beta1; },
       .config_line = 27},
  };
}

PlanTable OptimizerRows() {
  return {
      {.stored = "beta1",
       .options = {"beta1"},
       .old_states = OldStates::AllHaveIt(),
       .value = Asked(&TrainSettings::beta1, &TrainPlan::optimizer, &OptimizerOptions::beta1),
       .range = kBelowOne,
       .taken_by = TakenBy::kOptimizer,
       .told_when = [](const TrainPlan& plan) { return !plan.schedule.cycle_beta1; },
       .config_line = 28},
      {.stored = "beta2",
       .options = {"beta2"},
       .old_states = OldStates::AllHaveIt(),
       .value = Asked(&TrainSettings::beta2, &TrainPlan::optimizer, &OptimizerOptions::beta2),
       .range = kBelowOne,
       .taken_by = TakenBy::kOptimizer,
       .config_line = 7},
      {.stored = "epsilon",
       .options = {"adam-eps"},
       .old_states = OldStates::AllHaveIt(),
       .value = Asked(&TrainSettings::adam_eps, &TrainPlan::optimizer, &OptimizerOptions::epsilon),
       .range = kNotNegative,
       .taken_by = TakenBy::kOptimizer,
       .config_line = 8},
      {.stored = "weight_decay",
       .options = {"weight-decay"},
       .old_states = OldStates::AllHaveIt(),
       .value = Asked(&TrainSettings::weight_decay, &TrainPlan::optimizer, &OptimizerOptions::weight_decay),
       .range = kNotNegative,
       .taken_by = TakenBy::kOptimizer,
       .config_line = 9},
      {.stored = "optimizer_states",
       .options = {"optimizer-states"},
       .old_states = OldStates::FirstLacksIt("fp32"),
       .value = Named<OptimizerStates>(OptimizerStatesName, ParseOptimizerStates, AskedOptimizerStates,
                                       &TrainPlan::optimizer, &OptimizerOptions::states),
       .taken_by = TakenBy::kOptimizer,
       .fixed_in_branch = true,
       .config_line = 10},
      {.stored = "clip",
       .options = {"clip"},
       .old_states = OldStates::AllHaveIt(),
       .value = Asked(&TrainSettings::clip, &TrainPlan::clip),
       .range = kNotNegative,
       .config_line = 11},
  };
}

PlanTable ObjectiveRows() {
  return {
      {.stored = "objective",
       .options = {"objective"},
       .old_states = OldStates::FirstLacksIt(kDefaultObjective),
       .value = ObjectiveValue(),
       .fixed_in_branch = true,
       .config_line = 12},
      {.stored = "loss_on",
       .options = {"loss-on"},
       .old_states = OldStates::FirstLacksIt("assistant"),
       .value = Named<LossOn>(
           NameOf, [](const std::string& name, const std::string&) { return ParseLossOn(name); }, AskedLossOn,
           &TrainPlan::loss_on),
       .taken_by = TakenBy::kObjective,
       .fixed_in_branch = true,
       .difference = OtherLossOn,
       .config_line = 20},
      {.stored = "z_loss",
       .options = {"z-loss"},
       .old_states = OldStates::FirstLacksIt(0),
       .value = Asked(&TrainSettings::z_loss, &TrainPlan::loss_addends, &LossAddends::z_loss),
       .range = kNotNegative,
       .taken_by = TakenBy::kObjective,
       .config_line = 13},
      {.stored = "label_smoothing",
       .options = {"label-smoothing"},
       .old_states = OldStates::FirstLacksIt(0),
       .value =
           Asked(&TrainSettings::label_smoothing, &TrainPlan::loss_addends, &LossAddends::label_smoothing),
       .range = kBelowOne,
       .taken_by = TakenBy::kObjective,
       .config_line = 14},
  };
}

PlanTable DataRows() {
  return {
      {.stored = "drop_last",
       .options = {"drop-last"},
       .old_states = OldStates::FirstLacksIt(false),
       .value = Asked(&TrainSettings::drop_last, &TrainPlan::drop_last),
       .config_line = 15},
      {.stored = "eval_split",
       .options = {"eval-split", "eval-split-seed"},
       .old_states = OldStates::FirstLacksIt(nullptr),
       .value = SplitValue(),
       .fixed_in_branch = true,
       .difference = OtherSplit,
       .told_when = [](const TrainPlan& plan) { return plan.eval_split.has_value(); },
       .told = TellSplit,
       .config_line = 21},
  };
}

PlanTable TuningRows() {
  return {
      {.stored = "lora",
       .options = {"lora", "lora-alpha", "lora-dropout", "lora-targets", "rslora", "dora",
                   "lora-save-modules", "adapter"},
       .old_states = OldStates::FirstLacksIt(nullptr),
       .value = LoraValue(),
       .fixed_in_branch = true,
       .difference = OtherLora,
       .told_when = HasAdapters,
       .told = TellLora,
       .config_line = 22},
      {.stored = "quant",
       .options = {"quant"},
       .old_states = OldStates::FirstLacksIt("none"),
       .value = Named<WeightFormat>(WeightFormatName, FormatNamed, AskedFormat, &TrainPlan::tuning,
                                    &FineTuning::frozen_format),
       .fixed_in_branch = true,
       .told_when = HasAdapters,
       .config_line = 23},
  };
}

bool IsExactWorld(double value) {
  return value == 0 || (Within<1, 1 << 16>(value) && std::has_single_bit(static_cast<uint64_t>(value)));
}

PlanValue ExactWorldValue() {
  PlanValue value = Asked(&TrainSettings::exact_world, &TrainPlan::exact_world);
  value.set = [set = value.set](const json& leaves, const std::string& name, TrainPlan* plan) {
    if (!IsExactWorld(static_cast<double>(ReadPlanValue<int64_t>(leaves, name)))) {
      throw Error(ErrorCode::kBadInput, name, "is no power of two: " + leaves.dump());
    }
    set(leaves, name, plan);
  };
  return value;
}

/// What of the parameters an update changes, and when.
PlanTable UpdateRows() {
  return {
      {.stored = "skip_loss_z",
       .options = {"skip-loss-z"},
       .old_states = OldStates::AnyMayLackIt(0),
       .value = Asked(&TrainSettings::skip_loss_z, &TrainPlan::skip_loss_z),
       .range = kZScore,
       .told_when = [](const TrainPlan& plan) { return plan.skip_loss_z > 0; }},
      {.stored = "skip_grad_z",
       .options = {"skip-grad-z"},
       .old_states = OldStates::AnyMayLackIt(0),
       .value = Asked(&TrainSettings::skip_grad_z, &TrainPlan::skip_grad_z),
       .range = kZScore,
       .told_when = [](const TrainPlan& plan) { return plan.skip_grad_z > 0; }},
      {.stored = "ema",
       .options = {"ema"},
       .old_states = OldStates::AnyMayLackIt(0),
       .value = Asked(&TrainSettings::ema, &TrainPlan::optimizer, &OptimizerOptions::average_decay),
       .range = kBelowOne,
       .fixed_in_branch = true,
       .told_when = [](const TrainPlan& plan) { return plan.optimizer.average_decay > 0; }},
      {.stored = "freeze",
       .options = {"freeze"},
       .old_states = OldStates::AnyMayLackIt(""),
       .value =
           Asked(&TrainSettings::freeze, &TrainPlan::tuning, &FineTuning::rules, &ParameterRules::freeze),
       .fixed_in_branch = true,
       .told_when = [](const TrainPlan& plan) { return !plan.tuning.rules.freeze.empty(); }},
      {.stored = "lr_scale",
       .options = {"lr-scale"},
       .old_states = OldStates::AnyMayLackIt(""),
       .value =
           Asked(&TrainSettings::lr_scale, &TrainPlan::tuning, &FineTuning::rules, &ParameterRules::lr_scale),
       .told_when = [](const TrainPlan& plan) { return !plan.tuning.rules.lr_scale.empty(); }},
      {.stored = "no_decay",
       .options = {"no-decay"},
       .old_states = OldStates::AnyMayLackIt(""),
       .value =
           Asked(&TrainSettings::no_decay, &TrainPlan::tuning, &FineTuning::rules, &ParameterRules::no_decay),
       .told_when = [](const TrainPlan& plan) { return !plan.tuning.rules.no_decay.empty(); }},
  };
}

/// What trainwright.state/2 had not from its beginning: new rows come last.
PlanTable LaterRows() {
  return {
      {.stored = "block_chunks",
       .options = {"shuffle-block"},
       .old_states = OldStates::AnyMayLackIt(1),
       .value = Asked(&TrainSettings::shuffle_block, &TrainPlan::samples, &SampleMaking::block_chunks),
       .range = {Within<1, 1 << 16>, "chunks: must be from 1 to 65536"},
       .stored_sizes = {.least = 1},
       .told_when = [](const TrainPlan& plan) { return plan.samples.block_chunks > 1; },
       .config_line = 18},
      {.stored = "data_weights",
       .options = {"data-weights"},
       .old_states = OldStates::AnyMayLackIt(""),
       .value = Asked(&TrainSettings::data_weights, &TrainPlan::data_weights),
       .difference = OtherWeights,
       .told_when = [](const TrainPlan& plan) { return !plan.data_weights.empty(); },
       .config_line = 19},
      {.stored = "optimizer",
       .options = {"optimizer"},
       .old_states = OldStates::AnyMayLackIt(kDefaultOptimizer),
       .value = Asked(&TrainSettings::optimizer, &TrainPlan::optimizer, &OptimizerOptions::name),
       .fixed_in_branch = true,
       .told_when = [](const TrainPlan& plan) { return plan.optimizer.name != kDefaultOptimizer; }},
      OwnOptionsRow("optimizer_options", "optimizer-option", OwnTexts::kRefused,
                    &TrainSettings::optimizer_options, &TrainPlan::optimizer, &OptimizerOptions::own),
      ObjectiveOptionsRow(),
      {.stored = "ranks",
       .old_states = OldStates::AnyMayLackIt(1),
       .value = Kept(&TrainPlan::ranks),
       .stored_sizes = {1, 1 << 20},
       .free_on_resume = true},
      {.stored = "exact_world",
       .options = {"exact-world"},
       .old_states = OldStates::AnyMayLackIt(0),
       .value = ExactWorldValue(),
       .range = {IsExactWorld, "must be 0 or a power of two, at most 65536"},
       .told_when = [](const TrainPlan& plan) { return plan.exact_world > 0; }},
      {.stored = "zero",
       .options = {"zero"},
       .old_states = OldStates::AnyMayLackIt(0),
       .value = Asked(&TrainSettings::zero, &TrainPlan::zero),
       .range = {Within<0, 2>, "must be 0, 1 or 2"},
       .stored_sizes = {0, 2},
       .free_on_resume = true,
       .told_when = [](const TrainPlan& plan) { return plan.zero > 0; }},
      {.stored = "zero_accum",
       .options = {"zero-accum"},
       .old_states = OldStates::AnyMayLackIt("reduce"),
       .value = Named<ZeroAccumulation>(ZeroAccumulationName, ParseZeroAccumulation, AskedZeroAccumulation,
                                        &TrainPlan::zero_accumulation),
       .free_on_resume = true,
       .told_when =
           [](const TrainPlan& plan) {
             return plan.zero == 2 && plan.zero_accumulation != ZeroAccumulation::kReduce;
           }},
      {.stored = "tbptt",
       .options = {"tbptt"},
       .old_states = OldStates::AnyMayLackIt(0),
       .value = Asked(&TrainSettings::tbptt, &TrainPlan::tbptt),
       .range = {Within<0, INT64_MAX>, "tokens: must be at least 0"},
       .stored_sizes = {0, kMostTokens},
       .taken_by = TakenBy::kObjective,
       .told_when = [](const TrainPlan& plan) { return plan.tbptt > 0; }},
  };
}

/// What of the schedule is a share of the run.
PlanTable ShareRows() {
  return {
      {.stored = "warmup_ratio",
       .options = {"warmup-ratio"},
       .old_states = OldStates::AnyMayLackIt(nullptr),
       .value = WarmupRatioValue(),
       .range = kShare,
       .stored_sizes = {0, 1},
       .difference = OtherWarmupRatio,
       .told_when = HasWarmupRatio,
       .config_line = 24},
      {.stored = "usual_warmup",
       .old_states = OldStates::AnyMayLackIt(false),
       .value = Kept(&TrainPlan::shares, &ScheduleShares::usual_warmup)},
      {.stored = "usual_decay",
       .old_states = OldStates::AnyMayLackIt(false),
       .value = Kept(&TrainPlan::shares, &ScheduleShares::usual_decay)},
  };
}

/// How samples are made, and other options that the first states lack. The rows of updates and shares follow.
PlanTable SampleRows() {
  return {
      {.stored = "max_batch_tokens",
       .options = {"max-tokens-per-batch"},
       .old_states = OldStates::AnyMayLackIt(0),
       .value = Asked(&TrainSettings::max_tokens_per_batch, &TrainPlan::max_batch_tokens),
       .range = {Within<0, INT64_MAX>, "tokens: must be at least 0"},
       .stored_sizes = {0, kMostTokens},
       .taken_by = TakenBy::kObjective,
       .free_on_resume = true,
       .told_when = [](const TrainPlan& plan) { return plan.max_batch_tokens > 0; }},
      {.stored = "packing",
       .options = {"packing"},
       .old_states = OldStates::AnyMayLackIt("on"),
       .value = Named<Packing>(
           PackingName, [](const std::string& name, const std::string&) { return ParsePacking(name); },
           AskedPacking, &TrainPlan::samples, &SampleMaking::packing),
       .taken_by = TakenBy::kObjective,
       .told_when = [](const TrainPlan& plan) { return plan.samples.packing == Packing::kOff; }},
      {.stored = "group_by_length",
       .options = {"group-by-length"},
       .old_states = OldStates::AnyMayLackIt(false),
       .value = Asked(&TrainSettings::group_by_length, &TrainPlan::samples, &SampleMaking::group_by_length),
       .taken_by = TakenBy::kObjective,
       .told_when = [](const TrainPlan& plan) { return plan.samples.group_by_length; }},
      {.stored = "fp8",
       .options = {"fp8"},
       .old_states = OldStates::AnyMayLackIt("off"),
       .value = Named<Fp8Parts>(Fp8PartsName, Fp8Named, AskedFp8, &TrainPlan::fp8),
       .told_when = [](const TrainPlan& plan) { return plan.fp8.any(); }},
  };
}

PlanTable AllRows() {
  PlanTable table = StepRows();
  for (const PlanTable& more : {ScheduleRows(), OptimizerRows(), ObjectiveRows(), DataRows(), TuningRows(),
                                LaterRows(), SampleRows(), UpdateRows(), ShareRows()}) {
    table.insert(table.end(), more.begin(), more.end());
  }
  return table;
}

}  // namespace

const PlanTable& TrainPlanTable() {
  static const PlanTable table = AllRows();
  return table;
}

}  // namespace trainwright
