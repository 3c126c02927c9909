/// What -h, --help and --version print.
#pragma once

#include <string>

#include "lib/cli/option_table.h"

namespace trainwright {

/// One line an option, and where to read more.
std::string ShortHelp(const ToolDoc& doc);

/// Description, options with defaults, choices and environment names, the extra sections, examples, exit
/// statuses.
std::string LongHelp(const ToolDoc& doc);

/// "pack (Trainwright) 0.1.0", then what the binary was built with.
std::string VersionText(const ToolInfo& info);

/// The exit statuses of every tool, as pairs of status and meaning; `filter` adds 141.
std::vector<std::pair<std::string, std::string>> ExitStatusTable(bool filter);

/// How options, environment and configuration file go together; the same paragraphs for every tool.
std::string ConfigurationText();

/// The first sentence of a help text, without its full stop.
std::string FirstSentence(const std::string& text);

/// "default 3; one of a, b; from 1 to 9", or empty.
std::string OptionNotes(const OptionDoc& option);

}  // namespace trainwright
