/// The value an option has in one run of a tool, and who gave it.
#pragma once

#include <string>

namespace trainwright {

/// The group of the options that every tool has.
inline constexpr char kCommonGroup[] = "Common options";

enum class OptionOrigin { kDefault, kPreset, kRemembered, kConfigFile, kEnvironment, kCommandLine };

struct OptionValue {
  std::string key;    ///< as in configuration files: "eval-data"
  std::string value;  ///< as given, or the built-in default; empty: none
  OptionOrigin origin = OptionOrigin::kDefault;
  std::string source;  ///< which preset, variable or line of a file; empty for the two others
  std::string group;   ///< under which help shows it
};

}  // namespace trainwright
