#include "lib/run/plan_option.h"

namespace trainwright {

std::string AskedText(const nlohmann::json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "being on" : "being off";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string StoredText(const nlohmann::json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "plan, which has it on" : "plan, which has it off";
  if (value.is_string() && value.get_ref<const std::string&>().empty()) return "plan, which has none";
  return AskedText(value);
}

std::optional<PlanDifference> DifferenceOf(const std::string& option, const nlohmann::json& asked,
                                           const nlohmann::json& stored) {
  if (asked.is_null() || asked == stored) return std::nullopt;
  return PlanDifference{option, AskedText(asked), StoredText(stored)};
}

std::optional<PlanDifference> DifferenceOf(const PlanOption& option, const TrainSettings& settings,
                                           const TrainPlan& plan) {
  if (option.options.empty()) return std::nullopt;
  if (option.difference) return option.difference(settings, plan);
  return DifferenceOf(option.options.front(), option.value.asked(settings), option.value.get(plan));
}

}  // namespace trainwright
