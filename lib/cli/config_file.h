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
  // Of files of other programs (lib/cli/foreign_config.h) only.
  std::vector<ConfigEntry> section = {};  ///< of a key that holds a mapping
  bool is_section = false;
  bool is_null = false;     ///< in a section: the key is there without a value
  bool is_skipped = false;  ///< holds what no option does, and was not read
};

/// "FILE: key 'NAME' in line N": what a message about an entry is about.
std::string PlaceOf(const ConfigEntry& entry, const std::string& path);

/// \param section the one key that may hold a mapping, when not empty; other keys may then hold anything,
///     which is not read but marked
/// \throws Error{kIo} when the file cannot be read, Error{kUsage} when it is not a flat YAML mapping
std::vector<ConfigEntry> ReadConfigFile(const std::string& path, const std::string& section = "");

/// The same of a text that was read from the file.
std::vector<ConfigEntry> ParseConfig(const std::string& text, const std::string& path,
                                     const std::string& section = "");

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
