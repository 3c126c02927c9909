#include "lib/run/foreign_file.h"

#include <algorithm>
#include <utility>

#include "lib/base/nearest_name.h"

namespace trainwright {
namespace {

using nlohmann::json;

/// "a.b.c" as its three names.
std::vector<std::string> NamesOf(const std::string& path) {
  std::vector<std::string> names;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    names.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

}  // namespace

bool ForeignFile::SaysNothing(const json& value) const {
  return value.is_null() || (!source_.open_word.empty() && value == source_.open_word);
}

void ForeignFile::Take(const ForeignRules& rules) {
  TakeObject(source_.root, "", rules);
}

void ForeignFile::TakeObject(const json& object, const std::string& prefix, const ForeignRules& rules) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = prefix + key;
    // A dot within a key must not make it pass for one of a section.
    if (key.find('.') != std::string::npos) throw Unknown(name, rules);
    const auto rule = std::find_if(rules.begin(), rules.end(),
                                   [&](const ForeignRule& other) { return other.name == name; });
    if (rule != rules.end()) {
      if (!SaysNothing(value)) rule->take({name, &value}, this);
      continue;
    }
    const bool is_section = std::any_of(rules.begin(), rules.end(), [&](const ForeignRule& other) {
      return other.name.starts_with(name + ".");
    });
    if (!is_section && source_.has_ours && prefix.empty() && !value.is_object()) {
      result_.ours.insert(name);
      continue;
    }
    if (!is_section && prefix.empty() && !value.is_structured() && source_.variables.contains(name)) continue;
    if (value.is_null()) {
      if (!is_section) ignored_.push_back(name);
      continue;
    }
    if (!is_section) throw Unknown(name, rules);
    if (!value.is_object()) throw Refusal({name, &value}, "must hold keys of its own: { }");
    TakeObject(value, name + ".", rules);
  }
}

Error ForeignFile::Unknown(const std::string& name, const ForeignRules& rules) const {
  const size_t section = name.rfind('.') + 1;  // of its last name; 0 where it is the only one
  std::vector<std::string> known;
  for (const ForeignRule& rule : rules) {
    if (!rule.name.starts_with(name.substr(0, section))) continue;
    known.push_back(rule.name.substr(section, rule.name.find('.', section) - section));
  }
  const std::string nearest = NearestName(name.substr(section), known);
  return Refusal({name, nullptr}, "is none that is read here",
                 nearest.empty() ? source_.hint : "did you mean '" + nearest + "'?");
}

const json* ForeignFile::Value(const std::string& name) const {
  const json* value = &source_.root;
  for (const std::string& part : NamesOf(name)) {
    if (!value->is_object() || !value->contains(part)) return nullptr;
    value = &value->at(part);
  }
  return value;
}

std::optional<ForeignKey> ForeignFile::Find(const std::string& name) const {
  const json* const value = Value(name);
  if (value == nullptr || SaysNothing(*value)) return std::nullopt;
  return ForeignKey{name, value};
}

bool ForeignFile::IsLeftOpen(const std::string& name) const {
  const json* const value = Value(name);
  return value != nullptr && SaysNothing(*value);
}

bool ForeignFile::IsOverridden(const std::string& option, const std::string& value) const {
  const std::string given = Given(option);
  return !given.empty() && given != value;
}

void ForeignFile::Give(const ForeignKey& key, const std::string& option, const std::string& value) {
  std::vector<OptionValue>& options = result_.options;
  const auto given = std::find_if(options.begin(), options.end(),
                                  [&](const OptionValue& other) { return other.key == option; });
  if (given == options.end()) {
    options.push_back({.key = option, .value = value, .source = SourceOf(key.name)});
    return;
  }
  if (given->value == value) return;
  throw Refusal(key, "is " + value + ", but " + given->source + " says " + given->value + " of the same",
                "leave one of the two out");
}

void ForeignFile::GiveOther(const ForeignKey& key, const std::string& value) {
  result_.others.push_back({.key = key.name, .value = value, .source = SourceOf(key.name)});
}

void ForeignFile::Tell(const ForeignKey& key, const std::string& what) {
  result_.notices.push_back(path() + ": key '" + key.name + "': " + what);
}

void ForeignFile::TellWith(const std::string& option, const ForeignKey& key, const std::string& what) {
  result_.notices_of_options.emplace_back(option, path() + ": key '" + key.name + "': " + what);
}

void ForeignFile::GiveWay(const ForeignKey& key, const std::string& option) {
  result_.notices.push_back(SourceOf(key.name) + ": --" + option + " overrides it");
}

Error ForeignFile::Refusal(const ForeignKey& key, const std::string& problem, const std::string& hint) const {
  return Error(ErrorCode::kUsage, path(), "key '" + key.name + "' " + problem, PlaceOf(key.name), hint);
}

std::string ForeignFile::PlaceOf(const std::string& name) const {
  const int line = source_.line_of(name);
  return line == 0 ? "" : "line " + std::to_string(line);
}

std::string ForeignFile::TextOf(const ForeignKey& key) const {
  const std::string text = source_.text_of ? source_.text_of(key.name) : "";
  if (!text.empty()) return text;
  return key.value->is_string() ? key.value->get<std::string>() : key.value->dump();
}

std::string ForeignFile::OrOpen() const {
  return source_.open_word.empty() ? "" : ", or \"" + source_.open_word + "\"";
}

std::string ForeignFile::SourceOf(const std::string& name) const {
  const std::string place = PlaceOf(name);
  return path() + (place.empty() ? "" : " " + place) + ", " + name;
}

OptionsOfFile ForeignFile::Result(const std::string& program,
                                  const std::vector<std::pair<std::string, std::string>>& defaults) const {
  OptionsOfFile result = result_;
  result.program = program;
  result.defaults = defaults;
  std::string ignored;
  for (const std::string& name : ignored_) ignored += (ignored.empty() ? "" : ", ") + name;
  if (!ignored.empty()) result.notices.push_back(path() + ": without effect here: " + ignored);
  return result;
}

}  // namespace trainwright
