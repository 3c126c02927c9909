/// The value an option has in one run of a tool, and who gave it.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"

namespace trainwright {

/// The group of the options that every tool has.
inline constexpr char kCommonGroup[] = "Common options";

/// In the order of precedence, what gives way first.
enum class OptionOrigin {
  kDefault,
  kPreset,
  kRemembered,
  kSettingsFile,  ///< a file of another program: see OptionsOfFile
  kConfigFile,
  kEnvironment,
  kCommandLine
};

struct OptionValue {
  std::string key;    ///< as in configuration files: "eval-data"
  std::string value;  ///< as given, or the built-in default; empty: none
  OptionOrigin origin = OptionOrigin::kDefault;
  std::string source;  ///< which preset, variable or line of a file; empty for the two others
  std::string group;   ///< under which help shows it
  /// Whether the value is the built-in default, whoever gave it: a printed configuration has every default.
  bool is_default = false;
};

/// By an option's key: the key of another, and the values of that one with which it has a meaning ("": that
/// one is not given).
using OnlyWith = std::map<std::string, std::pair<std::string, std::set<std::string>>>;

/// The value that what takes precedence over a source gives an option, by its key, as text; empty: none.
using GivenValue = std::function<std::string(const std::string& key)>;

/// What a file of another program says about a tool's options. Of each value there are key, value and source.
struct OptionsOfFile {
  std::vector<OptionValue> options;
  std::vector<std::string> notices;  ///< sentences for the user: what is otherwise here
  /// Those that are said only where the file's value of an option counts: its key, and the sentence.
  std::vector<std::pair<std::string, std::string>> notices_of_options = {};
  /// What is no option, by the other program's names: the tool itself makes something of it.
  std::vector<OptionValue> others;
  std::string program = "";  ///< whose file it is
  /// What that program does where its file says nothing: keys and values, which --preset overrides.
  std::vector<std::pair<std::string, std::string>> defaults = {};
  /// Options that the file asks a value of that there is not: an error unless what overrides the file
  /// gives them.
  std::vector<std::pair<std::string, Error>> refused = {};
  std::set<std::string> ours = {};  ///< keys of the file that are the tool's own, and not among the options
};

}  // namespace trainwright
