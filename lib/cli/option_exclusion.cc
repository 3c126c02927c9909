#include "lib/cli/option_exclusion.h"

#include <algorithm>
#include <optional>

#include "lib/base/error.h"
#include "lib/cli/flag_word.h"
#include "lib/cli/option_table.h"

namespace trainwright {
namespace {

bool IsFlag(const CLI::Option& option) {
  return option.get_items_expected_max() == 0;
}

/// A flag without a default is off.
std::string InitialText(bool is_flag, const std::string& default_text) {
  return is_flag && default_text.empty() ? "false" : default_text;
}

}  // namespace

bool IsDefault(const CLI::Option& option, const std::string& value) {
  const std::string initial = InitialText(IsFlag(option), option.get_default_str());
  const std::optional<bool> word = IsFlag(option) ? FlagWord(value) : std::nullopt;
  return word ? word == FlagWord(initial) : value == initial;
}

bool HasDefault(const EffectiveOption& option) {
  if (!option.is_set) return true;
  const OptionDoc& doc = option.doc;
  if (doc.repeated) return option.values == ParseListText("[" + doc.default_text + "]", doc.key);
  return option.values.back() == InitialText(doc.is_flag(), doc.default_text);
}

std::set<std::string> OptionExclusions::ExcludedBy(const std::string& key) const {
  std::set<std::string> others;
  for (const std::vector<std::string>& keys : info_.exclusive) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) others.insert(keys.begin(), keys.end());
  }
  if (const CLI::Option* const option = app_.get_option_no_throw("--" + key)) {
    for (const CLI::Option* other : option->get_excludes()) others.insert(DescribeOption(*other, info_).key);
  }
  others.erase(key);
  return others;
}

std::string OptionExclusions::GivenInstead(const Origins& given, const std::string& key) const {
  if (given.contains(key)) return key;
  for (const std::string& other : ExcludedBy(key)) {
    const CLI::Option* const option = app_.get_option_no_throw("--" + other);
    if (option == nullptr || option->count() == 0 || !given.contains(other)) continue;
    if (!IsDefault(*option, option->results().back())) return other;
  }
  return "";
}

std::string OptionExclusions::OverriddenBy(const Origins& given, const std::string& key) const {
  const std::string instead = GivenInstead(given, key);
  const auto only = info_.only_with.find(key);
  if (!instead.empty() || only == info_.only_with.end()) return instead;
  const auto& [other, values] = only->second;
  const CLI::Option* const option = app_.get_option_no_throw("--" + other);
  if (option == nullptr || option->count() == 0 || !given.contains(other)) return "";
  return values.contains(option->results().back()) ? "" : other;
}

bool OptionExclusions::GivesWay(const Origins& given, const std::string& key,
                                const std::vector<std::string>& values, const std::string& source,
                                std::vector<std::string>* notices) const {
  const std::string instead = GivenInstead(given, key);
  if (instead.empty() || instead == key) return !instead.empty();
  const CLI::Option* const option = app_.get_option_no_throw("--" + key);
  const bool says_something = option == nullptr || values.size() != 1 || !IsDefault(*option, values.front());
  if (says_something) notices->push_back(source + ": --" + instead + " overrides it");
  return true;
}

void OptionExclusions::ClearNeedless(CLI::App* app) {
  for (CLI::Option* option : app->get_options()) {
    if (!IsFlag(*option) || option->count() == 0 || !IsDefault(*option, option->results().back())) continue;
    const std::set<CLI::Option*>& excluded = option->get_excludes();
    const auto is_given = [](const CLI::Option* other) { return other->count() > 0; };
    if (std::any_of(excluded.begin(), excluded.end(), is_given)) option->clear();
  }
}

void OptionExclusions::ClearUnmet(CLI::App* app, Origins* origins) const {
  for (CLI::Option* option : app->get_options()) {
    const std::set<CLI::Option*> needs = option->get_needs();
    const auto is_missing = [](const CLI::Option* other) { return other->count() == 0; };
    if (std::none_of(needs.begin(), needs.end(), is_missing)) continue;
    const auto origin = origins->find(DescribeOption(*option, info_).key);
    if (origin == origins->end() || origin->second.first != OptionOrigin::kEnvironment) continue;
    option->clear();
    origins->erase(origin);
  }
}

void OptionExclusions::Refuse(const std::map<const CLI::Option*, std::string>& sources) const {
  for (const CLI::Option* option : app_.get_options()) {
    const auto source = sources.find(option);
    if (option->count() == 0 || source == sources.end()) continue;
    for (const CLI::Option* other : option->get_excludes()) {
      if (other->count() == 0) continue;
      const auto of_other = sources.find(other);
      throw Error(ErrorCode::kUsage, source->second,
                  "excludes " + (of_other == sources.end() ? other->get_name() : of_other->second), "",
                  "leave one of them out");
    }
  }
}

}  // namespace trainwright
