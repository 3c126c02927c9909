/// The plan of a run that is resumed.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/run/plan_table.h"
#include "lib/spec/model_config.h"

namespace trainwright {

/// Makes a plan one of another number of ranks: each has as many more micro-batches of a step, or fewer, as
/// keep the step as it is.
/// \returns warnings
/// \throws Error{kUsage} where they cannot have as many each, or leaves are no longer equal
std::vector<std::string> TakeRanks(int64_t ranks, TrainPlan* plan);

/// Takes over the files that own options of the plan's objective name, where they are named otherwise than in
/// the plan: whether they say the same, the run's samples show.
void TakeOwnFiles(const TrainSettings& settings, TrainPlan* plan);

/// Takes over from the plan of the run's record how its step is split and computed and its state is divided:
/// that was given after the checkpoint whose plan this is, and the run may have been stopped before its next
/// one.
/// \returns warnings
std::vector<std::string> TakeRecordedDivision(const TrainPlan& recorded, TrainPlan* plan,
                                              const PlanTable& table = TrainPlanTable());

/// What no process of a run changes of its plan, as EncodePlan writes it: not its length and what is a share
/// of that, nor how its step is split and computed and its state is divided, nor the names of its files.
/// Equal in all checkpoints of a run.
nlohmann::json EncodeLastingPlan(TrainPlan plan, const PlanTable& table = TrainPlanTable());

/// The settings with the plan's words for the modules that have adapters, where they name the same ones of
/// the model in other words: all-linear for a list of all.
/// \throws Error{kUsage} on a name that no module of the model has
TrainSettings InWordsOfPlan(TrainSettings settings, const TrainPlan& plan, const ModelConfig& model);

/// Checks the flags of a resumed run against its stored plan, all but those that TakeOwnFiles takes. Flags
/// that repeat the plan are fine, also where they are those of another number of ranks; another split of the
/// same step into micro-batches, and another way in which its objective computes it, is taken over into
/// `plan`.
/// \param ranks that train the run from here on
/// \returns warnings
/// \throws Error{kUsage} on a flag that asks for another run; as TakeRanks
std::vector<std::string> ReconcilePlan(const TrainSettings& settings, TrainPlan* plan, int64_t ranks = 1,
                                       const PlanTable& table = TrainPlanTable());

}  // namespace trainwright
