#include "lib/run/deepspeed_file.h"

#include <algorithm>
#include <utility>

#include "lib/base/nearest_name.h"
#include "lib/formats/json_text.h"

namespace trainwright {
namespace {

using nlohmann::json;

constexpr char kHint[] = "DEEPSPEED FILES in train(1) lists the keys that are read";

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

/// The line, from 1, of a key in a valid JSON text; 0 when it does not stand there letter by letter.
int LineOfKey(std::string_view text, const std::vector<std::string>& names) {
  int line = 1;
  size_t depth = 0;    // of open objects and lists
  size_t matched = 0;  // of the names, the first that lead to the open object
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c != '"') continue;
    const size_t begin = i + 1;
    for (++i; i < text.size() && text[i] != '"'; ++i) {
      if (text[i] == '\\') ++i;
    }
    const size_t next = text.find_first_not_of(" \t\r\n", i + 1);
    if (next == std::string_view::npos || text[next] != ':' || depth == 0) continue;
    matched = std::min(matched, depth - 1);
    if (matched + 1 != depth || depth > names.size()) continue;
    if (text.substr(begin, i - begin) != names[matched]) continue;
    if (depth == names.size()) return line;
    matched = depth;
  }
  return 0;
}

bool SaysNothing(const json& value) {
  return value.is_null() || value == "auto";
}

json ParseObject(std::string_view text, const std::string& path) {
  constexpr char kWanted[] = "--deepspeed names a JSON file of DeepSpeed";
  json root;
  try {
    root = ParseJson(text, path);
  } catch (const Error& error) {  // a wrong configuration is a wrong use of the tool, not bad data
    throw Error(ErrorCode::kUsage, path, error.problem(), error.place(), kWanted);
  }
  if (!root.is_object()) throw Error(ErrorCode::kUsage, path, "is not a JSON object", "", kWanted);
  return root;
}

}  // namespace

DeepSpeedFile::DeepSpeedFile(std::string_view text, const std::string& path)
    : text_(text), path_(path), root_(ParseObject(text, path)) {}

void DeepSpeedFile::Take(const std::vector<DeepSpeedRule>& rules) {
  TakeObject(root_, "", rules);
}

void DeepSpeedFile::TakeObject(const json& object, const std::string& prefix,
                               const std::vector<DeepSpeedRule>& rules) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = prefix + key;
    // A dot within a key must not make it pass for one of a section.
    if (key.find('.') != std::string::npos) throw Unknown(name, rules);
    const auto rule = std::find_if(rules.begin(), rules.end(),
                                   [&](const DeepSpeedRule& other) { return other.name == name; });
    if (rule != rules.end()) {
      if (!SaysNothing(value)) rule->take({name, &value}, this);
      continue;
    }
    const bool is_section = std::any_of(rules.begin(), rules.end(), [&](const DeepSpeedRule& other) {
      return other.name.starts_with(name + ".");
    });
    if (!is_section) throw Unknown(name, rules);
    if (value.is_null()) continue;
    if (!value.is_object()) throw Refusal({name, &value}, "must hold keys of its own: { }");
    TakeObject(value, name + ".", rules);
  }
}

Error DeepSpeedFile::Unknown(const std::string& name, const std::vector<DeepSpeedRule>& rules) const {
  const size_t section = name.rfind('.') + 1;  // of its last name; 0 where it is the only one
  std::vector<std::string> known;
  for (const DeepSpeedRule& rule : rules) {
    if (!rule.name.starts_with(name.substr(0, section))) continue;
    known.push_back(rule.name.substr(section, rule.name.find('.', section) - section));
  }
  const std::string nearest = NearestName(name.substr(section), known);
  return Refusal({name, nullptr}, "is none that is read here",
                 nearest.empty() ? kHint : "did you mean '" + nearest + "'?");
}

const json* DeepSpeedFile::Value(const std::string& name) const {
  const json* value = &root_;
  for (const std::string& part : NamesOf(name)) {
    if (!value->is_object() || !value->contains(part)) return nullptr;
    value = &value->at(part);
  }
  return value;
}

std::optional<DeepSpeedKey> DeepSpeedFile::Find(const std::string& name) const {
  const json* const value = Value(name);
  if (value == nullptr || SaysNothing(*value)) return std::nullopt;
  return DeepSpeedKey{name, value};
}

bool DeepSpeedFile::IsLeftOpen(const std::string& name) const {
  const json* const value = Value(name);
  return value != nullptr && SaysNothing(*value);
}

void DeepSpeedFile::Give(const DeepSpeedKey& key, const std::string& option, const std::string& value) {
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

void DeepSpeedFile::GiveOther(const DeepSpeedKey& key, const std::string& value) {
  result_.others.push_back({.key = key.name, .value = value, .source = SourceOf(key.name)});
}

void DeepSpeedFile::Tell(const DeepSpeedKey& key, const std::string& what) {
  result_.notices.push_back(path_ + ": key '" + key.name + "': " + what);
}

Error DeepSpeedFile::Refusal(const DeepSpeedKey& key, const std::string& problem,
                             const std::string& hint) const {
  return Error(ErrorCode::kUsage, path_, "key '" + key.name + "' " + problem, PlaceOf(key.name), hint);
}

std::string DeepSpeedFile::PlaceOf(const std::string& name) const {
  const int line = LineOfKey(text_, NamesOf(name));
  return line == 0 ? "" : "line " + std::to_string(line);
}

std::string DeepSpeedFile::SourceOf(const std::string& name) const {
  const std::string place = PlaceOf(name);
  return path_ + (place.empty() ? "" : " " + place) + ", " + name;
}

}  // namespace trainwright
