#include "lib/run/plan_codec.h"

#include <algorithm>
#include <limits>

#include "lib/base/error.h"

namespace trainwright {
namespace {

/// \throws Error; nlohmann::json::exception
void DecodeOption(const nlohmann::json& json, const PlanOption& option, TrainPlan* plan) {
  const std::optional<nlohmann::json> absent = option.old_states.in_present();
  const nlohmann::json& value = absent && !json.contains(option.stored) ? *absent : json.at(option.stored);
  option.value.set(value, option.stored, plan);
}

/// What is wrong with a size that was read; empty: nothing.
std::string SizeProblem(const PlanOption& option, const TrainPlan& plan) {
  const nlohmann::ordered_json value = option.value.get(plan);
  if (!value.is_number()) return "";
  const StoredSizes& sizes = option.stored_sizes;
  if (value.get<double>() < sizes.least) {
    return "a size below " + std::to_string(static_cast<int64_t>(sizes.least));
  }
  return value.get<double>() > sizes.most ? "a size that no run has" : "";
}

/// Whether the samples of a step are more than are counted.
bool StepOverflows(const TrainPlan& plan) {
  return plan.samples_per_rank() > std::numeric_limits<int64_t>::max() / plan.ranks;
}

nlohmann::ordered_json TellOption(const PlanOption& option, const TrainPlan& plan) {
  nlohmann::ordered_json told = nlohmann::ordered_json::object();
  if (option.options.empty() || (option.told_when && !option.told_when(plan))) return told;
  if (option.taken_by != TakenBy::kEveryRun && !plan.Takes(option.stored)) return told;
  if (option.told) return option.told(plan);
  told[option.options.front()] = option.value.get(plan);
  return told;
}

}  // namespace

nlohmann::ordered_json EncodePlan(const TrainPlan& plan, const PlanTable& table) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const PlanOption& option : table) {
    nlohmann::ordered_json value = option.value.get(plan);
    const std::optional<nlohmann::json> absent = option.old_states.in_present();
    if (!absent || nlohmann::json(value) != *absent) json[option.stored] = std::move(value);
  }
  return json;
}

void DecodePlan(const nlohmann::json& json, const std::string& path, const PlanTable& table,
                TrainPlan* plan) {
  const auto unreadable = [&](const std::exception& error) {
    return Error(ErrorCode::kBadInput, path,
                 std::string("its training plan cannot be read: ") + error.what());
  };
  for (const PlanOption& option : table) {
    try {
      DecodeOption(json, option, plan);
    } catch (const nlohmann::json::exception& error) {
      throw unreadable(error);
    } catch (const Error& error) {
      throw unreadable(error);
    }
    const std::string problem = SizeProblem(option, *plan);
    if (!problem.empty()) {
      throw Error(ErrorCode::kBadInput, path, "its training plan holds " + problem);
    }
  }
  if (StepOverflows(*plan)) {
    throw Error(ErrorCode::kBadInput, path, "its training plan holds a step of a size that no run has");
  }
}

TrainPlan DecodePlan(const nlohmann::json& json, const std::string& path) {
  TrainPlan plan;
  DecodePlan(json, path, TrainPlanTable(), &plan);
  return plan;
}

void CompleteFirstPlan(nlohmann::json* json, const PlanTable& table) {
  for (const PlanOption& option : table) {
    if (const auto value = option.old_states.in_first()) json->emplace(option.stored, *value);
  }
}

nlohmann::ordered_json PlanAsOptions(const TrainPlan& plan, const PlanTable& table) {
  std::vector<const PlanOption*> options;
  for (const PlanOption& option : table) options.push_back(&option);
  std::stable_sort(options.begin(), options.end(),
                   [](const PlanOption* a, const PlanOption* b) { return a->config_line < b->config_line; });
  nlohmann::ordered_json values = nlohmann::ordered_json::object();
  for (const PlanOption* option : options) values.update(TellOption(*option, plan));
  return values;
}

}  // namespace trainwright
