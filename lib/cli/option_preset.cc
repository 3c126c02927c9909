#include "lib/cli/option_preset.h"

#include <algorithm>

namespace trainwright {

OptionPreset PresetWithMeaning(OptionPreset preset, const OnlyWith& only_with,
                               const std::function<std::string(const std::string& key)>& given) {
  const std::vector<std::pair<std::string, std::string>> own = preset.values;
  const auto value_of = [&](const std::string& key) {
    const std::string value = given(key);
    const auto found =
        std::find_if(own.begin(), own.end(), [&](const auto& one) { return one.first == key; });
    return value.empty() && found != own.end() ? found->second : value;
  };
  std::erase_if(preset.values, [&](const auto& value) {
    const auto only = only_with.find(value.first);
    return only != only_with.end() && !only->second.second.contains(value_of(only->second.first));
  });
  return preset;
}

const OptionPreset* FindPreset(const std::vector<OptionPreset>& presets, const std::string& name) {
  const auto found = std::find_if(presets.begin(), presets.end(),
                                  [&](const OptionPreset& preset) { return preset.name == name; });
  return found != presets.end() ? &*found : nullptr;
}

std::string ListPresets(const std::vector<OptionPreset>& presets) {
  size_t width = 0;
  for (const OptionPreset& preset : presets) width = std::max(width, preset.name.size());
  std::string lines;
  for (const OptionPreset& preset : presets) {
    lines += preset.name + std::string(width + 2 - preset.name.size(), ' ') + preset.summary + "\n";
  }
  return lines;
}

std::string DescribePresets(const std::vector<OptionPreset>& presets) {
  std::string text;
  for (const OptionPreset& preset : presets) text += "  " + preset.name + ": " + preset.summary + "\n";
  for (const OptionPreset& preset : presets) {
    if (!preset.notes.empty()) text += "\n" + preset.name + ": " + preset.notes + "\n";
  }
  return text;
}

}  // namespace trainwright
