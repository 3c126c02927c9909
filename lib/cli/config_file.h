/// The configuration file: flat YAML whose keys are the long names of the flags.
///
/// A value is a scalar, or a list for an option that may be given several times. Scalars are taken as the
/// text that stands there, as if they had been typed on the command line, so that no YAML typing rule changes
/// a value.
#pragma once

#include <string>
#include <vector>

#include "lib/cli/option_table.h"

namespace trainwright {

struct ConfigEntry {
  std::string key;
  std::vector<std::string> values;
  bool is_list = false;
  int line = 0;  ///< from 1
};

/// \throws Error{kIo} when the file cannot be read, Error{kUsage} when it is not a flat YAML mapping
std::vector<ConfigEntry> ReadConfigFile(const std::string& path);

/// The items of "[a, b]", or the text itself: how an environment variable gives a list.
/// \throws Error{kUsage} naming `variable`
std::vector<std::string> ParseListText(const std::string& text, const std::string& variable);

/// What --print-config writes for one option.
struct EffectiveOption {
  OptionDoc doc;
  std::vector<std::string> values;  ///< empty: unset
  bool is_set = false;              ///< false: unset and without a default; written as a comment
};

/// YAML that ReadConfigFile reads back to the same values.
/// \throws Error{kUsage} for a value that YAML cannot hold (not UTF-8)
std::string WriteConfig(const std::string& tool, const std::vector<EffectiveOption>& options);

}  // namespace trainwright
