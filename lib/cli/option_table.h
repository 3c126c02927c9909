/// The options of a CLI::App as plain data: what help, man pages, completions, the configuration file and the
/// environment are made from, so that none of them keeps a list of its own.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "lib/cli/tool.h"

namespace trainwright {

struct OptionDoc {
  std::vector<std::string> short_names;  ///< "o"
  std::vector<std::string> long_names;   ///< "output"; the first is the configuration key
  std::string positional;                ///< "FILE" of a positional argument, else empty
  std::string value_name;                ///< what stands for the value in help: "FILE", "N"; empty for a flag
  std::string help;
  std::string default_text;          ///< empty: none
  std::vector<std::string> choices;  ///< the only values allowed; empty: free
  /// Names that it takes besides paths, or besides other values; may be empty.
  std::vector<std::string> suggestions;
  std::string constraint;  ///< "from 1 to 22", "greater than 0"; may be empty
  std::string group;
  std::string key;          ///< configuration key; empty when the option cannot be configured
  std::string environment;  ///< TRAINWRIGHT_...; empty when the option cannot be configured
  bool required = false;
  bool repeated = false;  ///< may be given several times (a list in the configuration file)

  bool is_flag() const { return value_name.empty(); }
  bool is_positional() const { return !positional.empty() && long_names.empty() && short_names.empty(); }
  /// Whether the value is a whole number, or several.
  bool is_whole_number() const;
  /// "-o, --output FILE", or "FILE..." for a positional argument.
  std::string Usage() const;
};

struct ToolDoc {
  ToolInfo info;
  std::vector<OptionDoc> options;  ///< in order of definition: the tool's own first, the common ones last
};

/// \param info of the tool that has it
/// \returns the option's documentation; hidden options (an empty group) give one with an empty group
OptionDoc DescribeOption(const CLI::Option& option, const ToolInfo& info);

/// Builds a throw-away app from a tool's definition and describes it.
ToolDoc DescribeTool(const ToolInfo& info, const DefineOptions& define);
/// The same for an app that is already defined.
ToolDoc DescribeApp(const ToolInfo& info, CLI::App& app);

/// Whether an option can be set by environment and configuration file: all but help, version, config,
/// print-config, list-presets.
bool IsConfigurable(const CLI::Option& option);

/// The groups in the order in which help shows them: as defined, the common group last.
std::vector<std::string> GroupsOf(const ToolDoc& doc);

/// "pack [OPTION]... [FILE]..." split after the name, for roff and plain text alike.
std::string SynopsisArguments(const ToolDoc& doc);

}  // namespace trainwright
