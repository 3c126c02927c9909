/// The plan of a new run: what the user asked, and what follows from the model, the device and the data.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/run/plan_choices.h"
#include "lib/run/plan_table.h"
#include "lib/spec/model_config.h"

namespace trainwright {

/// Why an option that the user left open has its value.
struct ChoiceReason {
  std::string option;    ///< "batch"
  std::string text;      ///< a sentence without the option's name
  std::string headline;  ///< what the console says before it at the start of a run; empty: nothing
  std::string line() const { return headline + ": " + text; }
};

/// A plan, and the reasons of what the user did not choose.
struct PlannedRun {
  TrainPlan plan;
  std::vector<ChoiceReason> reasons;
  std::optional<EpochCounts> epoch;  ///< where it was counted
};

/// What a plan is made for.
struct PlanFacts {
  ModelConfig model;
  bool gpu = false;        ///< else a CPU
  bool fast_bf16 = false;  ///< whether the device multiplies bf16 faster than fp32
  bool fast_fp16 = false;  ///< likewise fp16
  /// Counts an epoch of the samples of a plan; called only where the length of the run depends on it.
  std::function<EpochCounts(const TrainPlan&)> count_epoch;
  std::set<RecordKind> records = {RecordKind::kLm};  ///< of the sets of the data
  /// Called before an objective is taken that does not mix sets.
  /// \throws Error{kBadInput} where the sets of the data are not alike; empty: they are
  std::function<void()> require_alike = {};
  PlanChoices choices = BuiltInChoices();        ///< that a program knows
  std::optional<DocumentSplit> eval_split = {};  ///< what of the data is held out
  std::optional<LoraOptions> adapter = {};       ///< of the one that the run starts with, as its config says
  int64_t ranks = 1;                             ///< that train it
};

/// Fills in what the user left open.
/// \throws Error{kUsage} on values out of range or flags that exclude each other; Error{kBadInput} when the
///     data does not say what the objective asks for
PlannedRun PlanRun(const TrainSettings& settings, const PlanFacts& facts);

/// The first part of it: sets what was asked of each option by itself.
/// \throws Error{kUsage} on a value out of range
void TakeAsked(const TrainSettings& settings, const PlanTable& table, TrainPlan* plan);
/// Once the objective is known: what the data decides of its own options, where nobody said it, and
/// --drop-last, where it needs that.
void TakeObjectiveNeeds(const PlanFacts& facts, PlannedRun* planned);

}  // namespace trainwright
