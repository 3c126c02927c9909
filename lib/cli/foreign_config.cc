#include "lib/cli/foreign_config.h"

#include <algorithm>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/nearest_name.h"

namespace trainwright {
namespace {

std::string AtLine(const ConfigEntry& entry) {
  return "line " + std::to_string(entry.line);
}

template <typename Value>
std::vector<std::string> KeysOf(const std::map<std::string, Value>& map) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : map) keys.push_back(key);
  return keys;
}

/// Lists become "a,b", which is how our options take several words.
std::string Joined(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : ",") + value;
  return text;
}

}  // namespace

TranslatedConfig TranslateConfig(const std::vector<ConfigEntry>& entries, const ForeignConfig& foreign,
                                 const std::string& path) {
  TranslatedConfig translated;
  for (const ConfigEntry& entry : entries) {
    const auto& others = foreign.other_sections;
    if (entry.key != foreign.section || !entry.is_section) {
      if (entry.is_section || entry.is_skipped) {
        if (std::find(others.begin(), others.end(), entry.key) == others.end()) {
          throw Error(ErrorCode::kUsage, path,
                      "key '" + entry.key + "' must be a single value or a list of them", AtLine(entry),
                      "write one 'name: value' a line, the names as in --help without the dashes");
        }
        translated.notices.push_back(path + ": section '" + entry.key + "' of " + foreign.program +
                                     " has no effect here");
        continue;
      }
      translated.entries.push_back(entry);
      continue;
    }
    translated.is_foreign = true;
    for (const ConfigEntry& item : entry.section) {
      const std::string name = foreign.section + "." + item.key;
      const auto found = foreign.keys.find(item.key);
      if (found == foreign.keys.end()) {
        const std::string nearest = NearestName(item.key, KeysOf(foreign.keys));
        throw Error(
            ErrorCode::kUsage, path, "unknown key '" + name + "'", AtLine(item),
            nearest.empty() ? foreign.program + " has no such key" : "did you mean '" + nearest + "'?");
      }
      if (item.is_null) continue;
      const ForeignKey& key = found->second;
      std::string value = Joined(item.values);
      if (!key.words.empty()) {
        const auto word = key.words.find(value);
        if (word == key.words.end()) {
          std::string known;
          for (const std::string& choice : KeysOf(key.words)) known += (known.empty() ? "" : ", ") + choice;
          throw Error(ErrorCode::kUsage, path, "key '" + name + "': '" + value + "' is not one of " + known,
                      AtLine(item));
        }
        value = word->second;
      }
      if (!key.notice.empty()) {
        // The value is not repeated: it may be a token.
        translated.notices.push_back(path + ": key '" + name + "': " + key.notice);
      }
      if (key.option.empty() || value.empty()) continue;
      const bool repeated = std::any_of(translated.entries.begin(), translated.entries.end(),
                                        [&](const ConfigEntry& other) { return other.key == key.option; });
      if (repeated) {
        throw Error(ErrorCode::kUsage, path, "key '" + name + "' says '" + key.option + "' a second time",
                    AtLine(item), "leave one of the two out");
      }
      ConfigEntry ours;
      ours.key = key.option;
      ours.values = {value};
      ours.line = item.line;
      translated.entries.push_back(std::move(ours));
    }
  }
  return translated;
}

}  // namespace trainwright
