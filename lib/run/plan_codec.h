/// A plan as a training state stores it, and as the options that make it again.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "lib/run/plan_table.h"

namespace trainwright {

nlohmann::ordered_json EncodePlan(const TrainPlan& plan, const PlanTable& table = TrainPlanTable());

/// Sets what the table has of `plan`.
/// \param path for the messages
/// \throws Error{kBadInput} naming `path` when an option is missing, has the wrong type or a size that no run
///     has
void DecodePlan(const nlohmann::json& json, const std::string& path, const PlanTable& table, TrainPlan* plan);
TrainPlan DecodePlan(const nlohmann::json& json, const std::string& path);

/// Adds to the plan of a state of version 1 what later ones say.
void CompleteFirstPlan(nlohmann::json* json, const PlanTable& table = TrainPlanTable());

/// The plan as values of the command line's options, by name: given to another run they make the same plan.
nlohmann::ordered_json PlanAsOptions(const TrainPlan& plan, const PlanTable& table = TrainPlanTable());

}  // namespace trainwright
