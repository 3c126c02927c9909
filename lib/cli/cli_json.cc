#include "lib/cli/cli_json.h"

#include <algorithm>
#include <set>

namespace trainwright {

nlohmann::ordered_json CliJson(const ToolDoc& doc) {
  nlohmann::ordered_json options = nlohmann::ordered_json::array();
  for (const OptionDoc& option : doc.options) {
    nlohmann::ordered_json entry;
    if (!option.short_names.empty()) entry["short"] = option.short_names;
    if (!option.long_names.empty()) entry["long"] = option.long_names;
    if (!option.positional.empty()) entry["positional"] = option.positional;
    entry["group"] = option.group;
    if (!option.is_flag()) entry["value"] = option.value_name;
    if (!option.default_text.empty()) entry["default"] = option.default_text;
    if (!option.choices.empty()) entry["choices"] = option.choices;
    if (!option.constraint.empty()) entry["constraint"] = option.constraint;
    if (option.required) entry["required"] = true;
    if (option.repeated) entry["repeated"] = true;
    if (!option.key.empty()) entry["key"] = option.key;
    if (!option.environment.empty()) entry["environment"] = option.environment;
    entry["help"] = option.help;
    options.push_back(std::move(entry));
  }
  nlohmann::ordered_json examples = nlohmann::ordered_json::array();
  for (const ToolExample& example : doc.info.text.examples) examples.push_back(example.command);
  return {{"tool", doc.info.name},         {"summary", doc.info.summary},
          {"filter", doc.info.filter},     {"stdout_is_data", doc.info.stdout_is_data},
          {"options", std::move(options)}, {"examples", std::move(examples)}};
}

std::vector<std::string> LintTool(const ToolDoc& doc) {
  std::vector<std::string> problems;
  const auto report = [&](const std::string& object, const std::string& problem) {
    problems.push_back(doc.info.name + ": " + object + ": " + problem);
  };
  const auto is_name = [](const std::string& name) {
    const auto allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
    return !name.empty() && name.front() != '-' && name.back() != '-' &&
           std::all_of(name.begin(), name.end(), allowed);
  };
  std::set<std::string> names;
  for (const OptionDoc& option : doc.options) {
    const std::string usage = option.Usage();
    for (const std::string& name : option.short_names) {
      if (!names.insert("-" + name).second) report(usage, "the short name is taken twice");
    }
    for (const std::string& name : option.long_names) {
      if (!names.insert("--" + name).second) report(usage, "the long name is taken twice");
      if (!is_name(name)) report(usage, "long names are lower case with dashes");
    }
    if (!option.key.empty() && !names.insert("key " + option.key).second)
      report(usage, "the configuration key is taken twice");
    if (!option.environment.empty() && !names.insert("variable " + option.environment).second)
      report(usage, "the environment variable is taken twice");
    if (option.long_names.empty() && option.positional.empty() && usage != "-h")
      report(usage, "has no long name");
    if (option.help.empty()) report(usage, "has no help");
    if (!option.help.empty() && !option.help.ends_with('.'))
      report(usage, "the help does not end with a full stop");
    if (option.help.find('\t') != std::string::npos) report(usage, "the help holds a tab");
  }
  const ToolInfo& info = doc.info;
  if (info.summary.empty() || info.summary.ends_with('.'))
    report("summary", "is one line without a full stop");
  if (info.text.description.empty()) report("description", "is missing");
  if (info.text.examples.empty()) report("examples", "are missing");
  if (info.see_also.empty()) report("see also", "is missing");
  return problems;
}

}  // namespace trainwright
