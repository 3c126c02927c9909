/// Named sets of option values: `train --preset rft-fast`.
///
/// A preset is data. Its values come between the configuration file and the built-in defaults: whatever a
/// flag, the environment or the file says takes precedence over them, for an option and for those that it
/// excludes.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lib/report/option_value.h"

namespace trainwright {

struct OptionPreset {
  std::string name;
  std::string summary;  ///< one line, without a full stop
  std::string notes;    ///< sentences for the man page: sources that disagree, what has no option here
  /// Configuration keys with values as they would be typed. A key that the tool lacks is left out with a
  /// notice.
  std::vector<std::pair<std::string, std::string>> values;
  /// Keys of `values` without which it would be another run: a tool that lacks one refuses the preset.
  std::vector<std::string> essential;
};

/// The preset with those of its values that have a meaning beside what is given, or else beside its own.
/// \param given the value that a key has been given, as text; empty: none
OptionPreset PresetWithMeaning(OptionPreset preset, const OnlyWith& only_with,
                               const std::function<std::string(const std::string& key)>& given);

/// \returns nullptr when there is not one of that name
const OptionPreset* FindPreset(const std::vector<OptionPreset>& presets, const std::string& name);

/// "name  summary" lines, aligned.
std::string ListPresets(const std::vector<OptionPreset>& presets);
/// The same in the form of ToolSection::text, and what the notes say.
std::string DescribePresets(const std::vector<OptionPreset>& presets);

}  // namespace trainwright
