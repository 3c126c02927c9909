#include "lib/run/explanation.h"

#include <algorithm>

#include "lib/report/table.h"

namespace trainwright {
namespace {

std::string OriginName(OptionOrigin origin) {
  switch (origin) {
    case OptionOrigin::kDefault:
      return "default";
    case OptionOrigin::kPreset:
      return "preset";
    case OptionOrigin::kRemembered:
      return "run";
    case OptionOrigin::kSettingsFile:
    case OptionOrigin::kConfigFile:
      return "config";
    case OptionOrigin::kEnvironment:
      return "environment";
    case OptionOrigin::kCommandLine:
      return "command line";
  }
  return "";
}

std::string ValueText(const nlohmann::ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

std::vector<ExplainedOption> ExplainOptions(const std::vector<OptionValue>& given,
                                            const nlohmann::ordered_json& resolved,
                                            const std::vector<ChoiceReason>& reasons,
                                            const nlohmann::ordered_json& stored) {
  std::vector<ExplainedOption> explained;
  for (const OptionValue& option : given) {
    ExplainedOption row{option.key, option.value, option.group, OriginName(option.origin), option.source};
    const bool user_said = option.origin != OptionOrigin::kDefault;
    if (resolved.contains(option.key)) row.value = ValueText(resolved[option.key]);
    const auto reason = std::find_if(reasons.begin(), reasons.end(),
                                     [&](const ChoiceReason& choice) { return choice.option == option.key; });
    const bool is_chosen = reason != reasons.end();
    const bool is_stored = stored.contains(option.key) && !user_said;
    // A branch with another schedule has values that are neither asked for nor its parent's.
    const bool is_replaced = is_chosen && is_stored && resolved.contains(option.key) &&
                             resolved.at(option.key) != stored.at(option.key);
    if (is_stored && !is_replaced) {
      row.value = ValueText(stored[option.key]);
      row.origin = "checkpoint";
    } else if (is_chosen) {
      if (!user_said) row.origin = "auto";
      row.reason += (row.reason.empty() ? "" : ": ") + reason->text;
    }
    explained.push_back(std::move(row));
  }
  return explained;
}

std::string FormatExplanation(const std::vector<ExplainedOption>& options) {
  Table table({"option", "value", "origin", "reason"});
  std::vector<std::string> groups;
  for (const ExplainedOption& option : options) {
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) groups.push_back(option.group);
  }
  for (const std::string& group : groups) {
    if (groups.size() > 1) table.AddRow({"[" + group + "]", "", "", ""});
    for (const ExplainedOption& option : options) {
      if (option.group != group) continue;
      table.AddRow({option.name, option.value.empty() ? "-" : option.value, option.origin, option.reason});
    }
  }
  return table.ToString();
}

nlohmann::ordered_json EncodeExplanation(const std::vector<ExplainedOption>& options) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const ExplainedOption& option : options) {
    json.push_back({{"option", option.name},
                    {"value", option.value},
                    {"group", option.group},
                    {"origin", option.origin},
                    {"reason", option.reason}});
  }
  return json;
}

}  // namespace trainwright
