/// What every tool's main shares: parsing, configuration, messages, signals, exit statuses, summaries.
///
/// A tool is a ToolInfo (what it is), a function that defines its options on a CLI::App, and a function that
/// runs. Both of the first live in tools/<name>_options.cc, free of torch, so that man pages, completions and
/// the frozen command line come from the same definition that parses.
#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/cli/config_entry.h"
#include "lib/cli/named_files.h"
#include "lib/cli/option_preset.h"
#include "lib/cli/option_synonym.h"
#include "lib/cli/tool_text.h"
#include "lib/report/option_value.h"
#include "lib/report/progress.h"

namespace trainwright {

/// Options that apply where neither command line, environment nor --config gives them.
struct RememberedOptions {
  std::string path;                 ///< of the file that holds them, for messages; empty: none
  std::string text;                 ///< as of a configuration file
  std::set<std::string> leave_out;  ///< keys of it that do not apply
};

/// An option that names a file of settings of another program, in a form of its own.
struct SettingsFile {
  std::string option;  ///< its key; empty: the tool has none
  /// \param given of what takes precedence over the file
  /// \throws Error{kUsage} on what the file says and this tool does not understand
  std::function<OptionsOfFile(const std::string& path, const GivenValue& given)> read = {};
};

struct ToolInfo {
  std::string name;
  std::string summary;                ///< one line, lower case, no full stop
  ToolText text;                      ///< description, sections, examples
  std::vector<std::string> see_also;  ///< "pack(1)", "trainwright-shard(5)"
  bool filter = true;                 ///< dies of SIGPIPE like a filter; false: ignores it (train)
  bool stdout_is_data = true;         ///< then the JSON summary goes to --summary FILE only
  bool tells_notices = true;          ///< false: the tool reports ToolRun::notices, in one of its processes
  std::string build_features = "";    ///< second line of --version: library versions
  /// When not empty the tool has --preset NAME and --list-presets (AddPresetOptions).
  std::vector<OptionPreset> presets = {};
  /// Keys of which one at most may be given: a preset's value gives way to any of them.
  std::vector<std::vector<std::string>> exclusive = {};
  /// A value of a preset or of another program's file, or a default of that program, counts only where it has
  /// a meaning beside what was given.
  OnlyWith only_with = {};
  /// Keys of two options, the least and the most of something; see SettleBounds.
  std::vector<std::pair<std::string, std::string>> bounds = {};
  /// Keys of options whose value may be the empty text. Of others that is refused: it is what an unset
  /// variable of a script gives, which must not do the same as leaving the option out.
  std::set<std::string> may_be_empty = {};
  /// Of options, by key: the name that their environment variable has after TRAINWRIGHT_ in place of theirs,
  /// as an option's name with dashes. For those of a name that means something else to another tool, which a
  /// variable set for that one must not change.
  std::map<std::string, std::string> variables = {};
  /// Of options with choices, by key: values that only other tools' options of that name take. A variable
  /// that has one is set for those tools, and gives nothing here.
  std::map<std::string, std::set<std::string>> values_of_others = {};
  /// Of options that take a path or a name, by key: the names, which completions offer beside the paths.
  std::map<std::string, std::vector<std::string>> suggestions = {};
  /// Options of other programs that this one has not, with dashes: the hint in place of a near name, which
  /// says why, and what serves instead.
  std::map<std::string, std::string> absent = {};
  /// Of options, by key, that name a file which is written: those of the other options whose file it may be.
  std::map<std::string, std::set<std::string>> outputs = {};
  OptionSynonyms synonyms = {};  ///< what other programs call options of this one
  /// What other programs say by several keys of a file of --config together, before each is read by itself.
  /// Not set: nothing.
  /// \throws Error{kUsage} on what has no counterpart here
  std::function<std::vector<ConfigEntry>(std::vector<ConfigEntry> entries, const ConfigSurroundings& around)>
      settle_keys = {};
  /// Files of --config of other programs, by their text; nullopt: it is one of ours. Values give way to
  /// options that exclude them; OptionsOfFile::defaults come after --preset. Not set: all files are ours.
  /// \param given of what takes precedence over the file
  /// \throws Error{kUsage} on what the file says and this tool does not understand
  std::function<std::optional<OptionsOfFile>(std::string_view text, const std::string& path,
                                             const GivenValue& given)>
      foreign_config = {};
  /// Its values come after those of --config, and give way to options that exclude them.
  SettingsFile settings_file = {};
  /// Where the output that is continued remembers its options.
  /// \param given the value that a key has been given, as text; empty: none
  std::function<RememberedOptions(const std::function<std::string(const std::string& key)>& given)>
      remembered = {};
};

/// The options that every tool has; RunTool defines them.
struct CommonOptions {
  ProgressMode progress = ProgressMode::kAuto;
  std::string summary_path;  ///< of --summary, once checked: JSON of counts, exit status, time and memory
  bool quiet = false, verbose = false;
};

/// What a running tool gets from RunTool.
struct ToolRun {
  std::string tool;  ///< its name
  CommonOptions common;
  /// The counts for --summary. schema, tool, version, argv, exit_status, wall_time_s, cpu_time_s and
  /// max_memory_bytes are RunTool's, whatever they say, and so is the error if there was one.
  nlohmann::ordered_json summary;
  const OptionPreset* preset = nullptr;  ///< of --preset; nullptr: none
  /// Every option that can be configured, in the order of its definition, lists in YAML's notation.
  std::vector<OptionValue> options;
  std::vector<OptionValue> file_values;  ///< OptionsOfFile::others of the settings file
  std::vector<std::string> notices;      ///< of files and presets, that are still to be reported
  std::vector<NamedFile> option_files;   ///< that options were read from: --config and the settings file
  /// \throws Error{kUsage} where --summary is one of these files, which no option names
  void KeepFromSummary(const std::vector<std::string>& files);
};

using DefineOptions = std::function<void(CLI::App&)>;

/// Runs a tool from main(): `return RunTool(argc, argv, info, define, run);`
///
/// Order: signals; define; env, --config, the settings file, what the output remembers and --preset applied
/// (flags > TRAINWRIGHT_<FLAG> > --config FILE.yaml > settings file > remembered > --preset NAME > built-in);
/// parse; -h short help, --help long help, --version, --print-config; refuse outputs and --summary that would
/// replace what other options name; run; flush and check standard output (a failed delayed write is exit 4);
/// --summary. Errors become "tool: error:" / "tool: hint:" lines and exit
/// statuses; std::exception, bad_alloc and CLI11's 100-127 are translated here. An Error{kUsage} of `run`
/// about "--flag" names the environment variable instead where that has set the option.
/// Tools of the torch side translate torch's exceptions about memory before (lib/device/memory_error.h).
///
/// Notes for definitions. Defaults are captured from the bound variables (a flag that is on by default needs
/// default_str("true")). The last of several values counts; an option that fills a vector takes one value
/// each time it is given. group("Name") sorts help. The configuration key and TRAINWRIGHT_ name (but for
/// ToolInfo::variables) come from the first long name, or from the name of a positional argument. Bounds,
/// choices and file names are shown, and completed, where they are CLI11 validators (Range, PositiveNumber,
/// IsMember), AddChoice, or type_name("FILE" or "DIR").
///
/// \returns the exit status
int RunTool(int argc, char** argv, const ToolInfo& info, const DefineOptions& define,
            const std::function<int(ToolRun&)>& run);

/// An option whose value is one of a few words: shown in help, man page and completions, kept in the
/// configuration as the word, stored in `value` as the enumerator. The default is what `value` holds.
template <typename Enum>
CLI::Option* AddChoice(CLI::App& app, const std::string& names, Enum* value,
                       const std::vector<std::pair<std::string, Enum>>& choices, const std::string& help) {
  std::vector<std::string> words;
  std::string initial;
  for (const auto& [word, enumerator] : choices) {
    words.push_back(word);
    if (enumerator == *value) initial = word;
  }
  return app
      .add_option_function<std::string>(
          names,
          [value, choices](const std::string& given) {
            for (const auto& [word, enumerator] : choices) {
              if (word == given) *value = enumerator;
            }
          },
          help)
      ->check(CLI::IsMember(words))
      ->default_str(initial);
}

/// Defines --preset and --list-presets, for a tool whose ToolInfo has presets.
/// \param name gets the preset's name
void AddPresetOptions(CLI::App& app, const std::vector<OptionPreset>& presets, std::string* name,
                      const std::string& group);

/// Defines the common options (help, version, config, print-config, summary, progress, quiet, verbose) on an
/// app: RunTool and clidoc both call it.
void DefineCommonOptions(CLI::App& app, CommonOptions* options);

}  // namespace trainwright
