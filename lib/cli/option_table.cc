#include "lib/cli/option_table.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

#include "lib/cli/text_folding.h"

namespace trainwright {
namespace {

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool IsOneOf(const std::string& text, std::initializer_list<const char*> values) {
  return std::any_of(values.begin(), values.end(), [&](const char* value) { return text == value; });
}

// Definitions may write "passes over the data" or "Passes over the data."; documents show the latter. A first
// word that is more than letters, such as a value, keeps its case.
std::string AsSentences(std::string help) {
  if (help.empty()) return help;
  const size_t word_end = help.find_first_not_of("abcdefghijklmnopqrstuvwxyz-");
  if (word_end != 0 && help[0] != '-' && word_end != std::string::npos && help[word_end] == ' ') {
    help[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(help[0])));
  }
  if (!help.ends_with('.')) help += '.';
  return help;
}

/// Where the validators begin in a type name, which may itself be "NAME[FIRST:END]"; npos: it has none.
size_t ColonOutsideBrackets(const std::string& type) {
  int depth = 0;
  for (size_t i = 0; i < type.size(); ++i) {
    if (type[i] == '[') ++depth;
    if (type[i] == ']') --depth;
    if (type[i] == ':' && depth == 0) return i;
  }
  return std::string::npos;
}

// CLI11 describes its validators in the type name: "TEXT:{a,b}", "TEXT:value in {a->0,b->1} OR {0,1}",
// "UINT:INT in [1 - 64]", "FLOAT:POSITIVE", "TEXT:FILE".
void ReadValidators(const std::string& description, std::string* value_name, OptionDoc* doc) {
  if (const size_t open = description.find('{'); open != std::string::npos) {
    const size_t close = description.find('}', open);
    for (const std::string& item : Split(description.substr(open + 1, close - open - 1), ',')) {
      doc->choices.push_back(item.substr(0, item.find("->")));
    }
  } else if (const size_t range = description.find(" in ["); range != std::string::npos) {
    const std::string bounds = description.substr(range + 5, description.find(']', range) - range - 5);
    const size_t dash = bounds.find(" - ");
    const std::string low = bounds.substr(0, dash), high = bounds.substr(dash + 3);
    const bool unbounded = std::strtod(high.c_str(), nullptr) >= 1e15;
    doc->constraint = unbounded ? low + " or more" : "from " + low + " to " + high;
  } else if (description.find("NONNEGATIVE") != std::string::npos) {
    doc->constraint = "0 or more";
  } else if (description.find("POSITIVE") != std::string::npos) {
    doc->constraint = "greater than 0";
  } else if (IsOneOf(description, {"FILE", "DIR"})) {
    *value_name = description;
  } else if (description.rfind("PATH", 0) == 0) {
    *value_name = "PATH";
  } else if (description.rfind("SIZE", 0) == 0) {
    *value_name = "SIZE";
  } else if (!description.empty() && description != "NUMBER") {
    doc->constraint = description;
  }
}

}  // namespace

bool IsConfigurable(const CLI::Option& option) {
  const std::string& name = option.get_single_name();
  return !IsOneOf(name, {"h", "help", "version", "config", "print-config", "list-presets"}) &&
         !option.get_group().empty();
}

OptionDoc DescribeOption(const CLI::Option& option, const ToolInfo& info) {
  OptionDoc doc;
  doc.short_names = option.get_snames();
  doc.long_names = option.get_lnames();
  doc.positional = option.get_positional() ? Upper(option.get_name(true)) : "";
  doc.help = AsSentences(option.get_description());
  doc.group = option.get_group();
  doc.required = option.get_required();
  const bool flag = option.get_items_expected_max() == 0;
  doc.repeated = option.get_expected_max() > 1;

  if (!flag) {
    const std::string type = option.get_type_name();
    const size_t colon = ColonOutsideBrackets(type);
    std::string value_name = type.substr(0, colon);
    if (colon != std::string::npos) ReadValidators(type.substr(colon + 1), &value_name, &doc);
    if (doc.choices.empty() && value_name.find('|') != std::string::npos && value_name == Lower(value_name)) {
      doc.choices = Split(value_name, '|');
    }
    if (!doc.choices.empty() &&
        (value_name == "TEXT" || value_name == "ENUM" || value_name == Lower(value_name))) {
      const std::string& name = option.get_single_name();
      value_name = Upper(name.substr(name.rfind('-') + 1));
    }
    if (IsOneOf(value_name, {"INT", "UINT", "NUMBER"})) value_name = "N";
    if (value_name == "FLOAT") value_name = "X";
    if (doc.is_positional() && (value_name.empty() || value_name == "TEXT")) value_name = doc.positional;
    if (value_name.empty()) value_name = "VALUE";
    doc.value_name = value_name;
  }

  doc.default_text = option.get_default_str();
  if (doc.default_text == "[]" || doc.default_text == "{}" || (flag && doc.default_text == "false")) {
    doc.default_text.clear();
  }
  if (doc.repeated && doc.default_text.starts_with('[') && doc.default_text.ends_with(']')) {
    doc.default_text = doc.default_text.substr(1, doc.default_text.size() - 2);
  }
  if (IsConfigurable(option)) {
    doc.key = doc.long_names.empty() ? Lower(option.get_single_name()) : doc.long_names.front();
    const auto named = info.variables.find(doc.key);
    doc.environment = "TRAINWRIGHT_" + Upper(named == info.variables.end() ? doc.key : named->second);
    std::replace(doc.environment.begin(), doc.environment.end(), '-', '_');
    const auto suggested = info.suggestions.find(doc.key);
    if (suggested != info.suggestions.end()) doc.suggestions = suggested->second;
  }
  return doc;
}

bool OptionDoc::is_whole_number() const {
  return IsOneOf(value_name, {"N", "PATIENCE", "PID", "RANK"});
}

std::string OptionDoc::Usage() const {
  if (is_positional()) return positional + (repeated ? "..." : "");
  std::string text;
  const auto add = [&](const std::string& name) { text += (text.empty() ? "" : ", ") + name; };
  for (const std::string& name : short_names) add("-" + name);
  for (const std::string& name : long_names) add("--" + name);
  return is_flag() ? text : text + " " + value_name;
}

ToolDoc DescribeApp(const ToolInfo& info, CLI::App& app) {
  ToolDoc doc{info, {}};
  for (const CLI::Option* option : app.get_options()) {
    OptionDoc described = DescribeOption(*option, info);
    if (!described.group.empty()) doc.options.push_back(std::move(described));
  }
  std::stable_partition(doc.options.begin(), doc.options.end(),
                        [](const OptionDoc& option) { return option.group != kCommonGroup; });
  return doc;
}

ToolDoc DescribeTool(const ToolInfo& info, const DefineOptions& define) {
  CLI::App app;
  CommonOptions common;
  DefineCommonOptions(app, &common);
  define(app);
  return DescribeApp(info, app);
}

std::vector<std::string> GroupsOf(const ToolDoc& doc) {
  std::vector<std::string> groups;
  for (const OptionDoc& option : doc.options) {
    if (!option.is_positional() && std::find(groups.begin(), groups.end(), option.group) == groups.end()) {
      groups.push_back(option.group);
    }
  }
  return groups;
}

std::string SynopsisArguments(const ToolDoc& doc) {
  std::string text = "[OPTION]...";
  for (const OptionDoc& option : doc.options) {
    if (option.required && !option.is_positional()) {
      const std::string name =
          option.long_names.empty() ? "-" + option.short_names[0] : "--" + option.long_names[0];
      text += " " + name + (option.is_flag() ? "" : " " + option.value_name);
    }
  }
  for (const OptionDoc& option : doc.options) {
    if (option.positional.empty()) continue;
    text +=
        option.required && option.is_positional() ? " " + option.positional : " [" + option.positional + "]";
    if (option.repeated) text += "...";
  }
  return text;
}

}  // namespace trainwright
