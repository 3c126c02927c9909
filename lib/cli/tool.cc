#include "lib/cli/tool.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>  // here alone: each file with all of it compiles the virtual functions of its classes
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/exception.h"
#include "lib/base/log.h"
#include "lib/base/nearest_name.h"
#include "lib/base/signals.h"
#include "lib/base/version.h"
#include "lib/cli/config_entry.h"
#include "lib/cli/config_file.h"
#include "lib/cli/config_synonym.h"
#include "lib/cli/flag_word.h"
#include "lib/cli/help_text.h"
#include "lib/cli/named_files.h"
#include "lib/cli/option_bounds.h"
#include "lib/cli/option_exclusion.h"
#include "lib/cli/option_table.h"
#include "lib/io/byte_sink.h"
#include "lib/io/cut_mapping.h"
#include "lib/io/output_link.h"
#include "lib/io/process_memory.h"

namespace trainwright {
namespace {

using Clock = std::chrono::steady_clock;
using SettingsHook = std::function<void(const std::string& config_path)>;

// What -h, --help, --version and --print-config throw to leave the parser with their text.
struct TextRequested {
  std::string text;
};

// Without this the first file that a tool opens could become descriptor 1 and receive its standard output. A
// closed stream is opened the wrong way round, so that using it fails like using a closed one.
void ReserveStandardDescriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) == -1 && errno == EBADF) {
      [[maybe_unused]] const int opened = open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
  }
}

double SecondsOf(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

std::string Hint(const ToolInfo& info) {
  return "'" + info.name + " -h' lists the options";
}

std::string FirstLine(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Whether a whole number does not fit the widest type of its option: CLI11 would take the largest that does.
bool IsTooLong(const std::string& text, bool is_signed) {
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const char* end = text.data() + text.size();
  int64_t narrow = 0;
  uint64_t wide = 0;
  const auto result = is_signed || text.starts_with('-') ? std::from_chars(begin, end, narrow)
                                                         : std::from_chars(begin, end, wide);
  return result.ec == std::errc::result_out_of_range;
}

/// A whole number without the zeros before its digits, which make CLI11 read the others as octal.
std::string WithoutLeadingZeros(const std::string& text) {
  const size_t sign = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
  if (text.size() == sign || text.find_first_not_of("0123456789", sign) != std::string::npos) return text;
  const size_t first = std::min(text.find_first_not_of('0', sign), text.size() - 1);
  return text.substr(0, sign) + text.substr(first);
}

/// Whether a text is a NaN, which passes every comparison with the bounds of an option.
bool IsNotANumber(const std::string& text) {
  char* end = nullptr;
  return std::isnan(std::strtod(text.c_str(), &end)) && *end == '\0';
}

// ---- Parsing ----

/// Whether CLI11 refuses the option beside some others, or without one.
bool DependsOnOthers(const CLI::Option& option) {
  return !option.get_excludes().empty() || !option.get_needs().empty();
}

Error EmptyValue(const std::string& source) {
  return Error(ErrorCode::kUsage, source, "is empty, as an unset variable is", "",
               "give it a value, or leave it out");
}

std::string ValueMissing(const std::string& problem) {
  return problem.ends_with(" missing") && Contains(problem, " required ") ? "needs a value" : problem;
}

/// CLI11 takes "--name=" for a name without value and would eat the next argument.
std::vector<std::string> Arguments(int argc, char** argv) {
  std::vector<std::string> arguments;
  bool options_ended = false;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    options_ended |= argument == "--";
    if (!options_ended && argument.size() > 3 && argument.starts_with("--") &&
        argument.find('=') == argument.size() - 1) {
      argument.pop_back();
      arguments.push_back(std::move(argument));
      arguments.emplace_back();
    } else {
      arguments.push_back(std::move(argument));
    }
  }
  std::reverse(arguments.begin(), arguments.end());  // the order in which CLI11 takes a vector
  return arguments;
}

/// "true" or "false".
std::string FlagValue(const CLI::Option& option, const std::string& value, const std::string& source) {
  if (option.get_items_expected_max() != 0) return value;
  if (const std::optional<bool> on = FlagWord(value)) return *on ? "true" : "false";
  throw Error(ErrorCode::kUsage, source, "'" + value + "' is neither true nor false");
}

/// RefuseEmpty cannot tell an empty --config from none: its callback is forced.
void RefuseEmptyConfig(int argc, char** argv) {
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string_view argument = argv[i];
    const bool is_empty =
        argument == "--config=" || (argument == "--config" && i + 1 < argc && *argv[i + 1] == '\0');
    if (is_empty) throw EmptyValue("--config");
  }
}

/// Whole numbers are decimal, as everyone reads them, wherever they come from: 010 is ten.
void ReadNumbersByTen(const ToolInfo& info, CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->count() == 0 || !DescribeOption(*option, info).is_whole_number()) continue;
    const std::vector<std::string> given = option->results();
    option->clear();
    for (const std::string& value : given) option->add_result(WithoutLeadingZeros(value));
  }
}

std::vector<std::string> FlagNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// What an unknown option may have been meant to be, by its name here or by other programs'.
std::string HintOfUnknownFlag(const ToolInfo& info, const std::vector<std::string>& flags,
                              const std::string& name) {
  if (!name.starts_with("--")) return Hint(info);
  std::vector<std::string> names = flags;
  for (const auto& [synonym, meaning] : info.synonyms) names.push_back("--" + synonym);
  const std::string nearest = NearestName("--" + DashedName(name), names);
  if (nearest.empty()) return Hint(info);
  const bool is_ours = std::find(flags.begin(), flags.end(), nearest) != flags.end();
  return "did you mean " + nearest + "? " + (is_ours ? Hint(info) : HintOfSynonym(info.synonyms, nearest));
}

/// The name that is nearest to an unknown key, ours or, as it is written there, other programs'; empty: none
/// is near.
std::string NearestKey(const ToolInfo& info, const std::map<std::string, CLI::Option*>& by_key,
                       const std::string& key) {
  std::vector<std::string> names;
  for (const auto& [name, option] : by_key) names.push_back(name);
  for (const auto& [name, meaning] : info.synonyms) names.push_back(name);
  std::string nearest = NearestName(DashedName(key), names);
  if (!by_key.contains(nearest)) std::replace(nearest.begin(), nearest.end(), '-', '_');
  return nearest;
}

/// The value that an option has been given so far, as text; empty: none.
std::string TextGiven(const CLI::App& app, const std::string& key) {
  const CLI::Option* option = app.get_option_no_throw("--" + key);
  return option == nullptr || option->count() == 0 ? std::string() : option->results().back();
}

/// What the environment gives an option; null: nothing, or what only other tools' options of its name take.
const char* VariableOf(const OptionDoc& doc, const ToolInfo& info) {
  const char* const value = std::getenv(doc.environment.c_str());
  if (value == nullptr || *value == '\0') return nullptr;
  const auto others = info.values_of_others.find(doc.key);
  return others != info.values_of_others.end() && others->second.contains(value) ? nullptr : value;
}

/// The file of options that --config names, or else its variable; an empty path: neither does.
NamedFile ConfigFile(const std::string& of_flag) {
  if (!of_flag.empty()) return {"--config", of_flag};
  const char* const path = std::getenv("TRAINWRIGHT_CONFIG");
  return {"TRAINWRIGHT_CONFIG", path == nullptr ? "" : path};
}

/// Parses one command line: applies environment and configuration file, and turns CLI11's errors into ours.
class CommandLine {
 public:
  CommandLine(const ToolInfo& info, CLI::App& app) : info_(info), app_(app), exclusions_(info, app) {}

  void Parse(int argc, char** argv) {
    RefuseEmptyConfig(argc, argv);
    try {
      app_.parse(Arguments(argc, argv));
    } catch (const CLI::ParseError& error) {
      // What is left for CLI11 itself to find: missing values, options that need or exclude each other.
      const std::string message = FirstLine(error.what());
      const size_t colon = message.find(": ");
      const bool names_option = colon != std::string::npos && message.find(' ') > colon;
      throw Error(ErrorCode::kUsage, names_option ? message.substr(0, colon) : "",
                  names_option ? ValueMissing(message.substr(colon + 2)) : message, "", Hint(info_));
    }
  }

  /// Runs when all arguments are collected and none is converted yet.
  void ApplySettings(const std::string& config_path_flag) {
    if (Given("h")) throw TextRequested{ShortHelp(DescribeApp(info_, app_))};
    if (Given("help")) throw TextRequested{LongHelp(DescribeApp(info_, app_))};
    if (Given("version")) throw TextRequested{VersionText(info_)};
    if (!info_.presets.empty() && Given("list-presets")) throw TextRequested{ListPresets(info_.presets)};
    RefuseLeftOvers();
    for (const CLI::Option* option : app_.get_options()) {
      if (option->count() > 0)
        origins_[DescribeOption(*option, info_).key] = {OptionOrigin::kCommandLine, ""};
    }
    ApplyEnvironment();
    if (const NamedFile config = ConfigFile(config_path_flag); !config.path.empty()) ApplyFile(config.path);
    ApplySettingsFile();
    ApplyRemembered();
    ApplyPresets();
    ReadNumbersByTen(info_, app_);
    OptionExclusions::ClearNeedless(&app_);
    exclusions_.ClearUnmet(&app_, &origins_);
    exclusions_.Refuse(sources_);
    std::vector<EffectiveOption> effective = Effective();
    ConvertAll();
    SettleBounds(info_, app_, origins_, &effective, &notices_);
    for (const EffectiveOption& option : effective) values_.push_back(ValueOf(option));
    if (Given("print-config")) throw TextRequested{WriteConfig(info_.name, effective)};
    RequireAll();
  }

  /// What every option is and where it came from; after Parse.
  const std::vector<OptionValue>& values() const { return values_; }
  /// What is worth telling about them before the tool runs.
  const std::vector<std::string>& notices() const { return notices_; }
  const OptionPreset* preset() const { return preset_; }
  const std::vector<OptionValue>& file_values() const { return file_values_; }

 private:
  bool Given(const std::string& name) const {
    return app_.get_option((name.size() == 1 ? "-" : "--") + name)->count() > 0;
  }

  void RefuseLeftOvers() const {
    std::vector<std::string> rest = app_.remaining();
    const auto end_of_options = std::find(rest.begin(), rest.end(), "--");
    for (const std::string& argument : std::vector(rest.begin(), end_of_options)) {
      if (argument.size() < 2 || argument[0] != '-') continue;
      const std::string name = argument.substr(0, argument.find('='));
      if (const auto absent = info_.absent.find(name); absent != info_.absent.end()) {
        throw Error(ErrorCode::kUsage, name, "unknown option", "", absent->second);
      }
      if (const std::string hint = HintOfSynonym(info_.synonyms, name);
          name.starts_with("--") && !hint.empty())
        throw Error(ErrorCode::kUsage, name, "unknown option", "", hint);
      throw Error(ErrorCode::kUsage, name, "unknown option", "",
                  HintOfUnknownFlag(info_, FlagNames(app_), name));
    }
    if (end_of_options != rest.end()) rest.erase(end_of_options);
    if (!rest.empty()) throw Error(ErrorCode::kUsage, rest.front(), "unexpected argument", "", Hint(info_));
  }

  void Set(CLI::Option* option, const std::vector<std::string>& values, const std::string& source) {
    const bool repeated = option->get_expected_max() > 1;
    if (repeated && values.empty()) {
      // CLI11 has no result that means "no items"; its converter clears the variable and reports failure.
      option->get_callback()({});
      emptied_.insert(option);
      return;
    }
    for (const std::string& value : values) {
      // No command line can hold it, and the system would end a path there.
      if (Contains(value, std::string_view("\0", 1)))
        throw Error(ErrorCode::kUsage, source, "holds a NUL character");
      const std::string result = FlagValue(*option, value, source);
      // CLI11 counts what it has results of among options that exclude or need each other.
      if (!DependsOnOthers(*option) || !IsDefault(*option, result)) option->add_result(result);
    }
    if (!repeated && values.size() != 1)
      throw Error(ErrorCode::kUsage, source, "takes one value, not a list");
    sources_[option] = source;
  }

  void ApplyEnvironment() {
    const Origins given = origins_;  // the variables do not exclude each other
    for (CLI::Option* option : app_.get_options()) {
      if (option->count() > 0 || !IsConfigurable(*option)) continue;
      const OptionDoc doc = DescribeOption(*option, info_);
      const char* const value = VariableOf(doc, info_);
      if (value == nullptr) continue;
      const auto values =
          doc.repeated ? ParseListText(value, doc.environment) : std::vector<std::string>{value};
      if (exclusions_.GivesWay(given, doc.key, values, doc.environment, &notices_)) continue;
      Set(option, values, doc.environment);
      origins_[doc.key] = {OptionOrigin::kEnvironment, doc.environment};
    }
  }

  std::map<std::string, CLI::Option*> OptionsByKey() const {
    std::map<std::string, CLI::Option*> by_key;
    for (CLI::Option* option : app_.get_options()) {
      if (IsConfigurable(*option)) by_key[DescribeOption(*option, info_).key] = option;
    }
    return by_key;
  }

  void ApplyFile(const std::string& path) {
    const auto by_key = OptionsByKey();
    const auto is_ours = [&](const std::string& key) { return by_key.contains(key); };
    const Origins before = origins_;  // its own values do not exclude each other
    const std::string text = ReadConfigText(path);
    std::optional<std::set<std::string>> only;
    const auto given = [&](const std::string& key) { return TextGiven(app_, key); };
    if (info_.foreign_config) foreign_ = info_.foreign_config(text, path, given);
    if (foreign_) {
      only = foreign_->ours;
      ApplyOptionsOf(*foreign_, OptionOrigin::kConfigFile);
    }
    auto entries = ParseConfig(text, path, only, info_.synonyms);
    if (info_.settle_keys) {
      entries = info_.settle_keys(std::move(entries), {.path = path, .given = given, .notices = &notices_});
    }
    for (const ConfigEntry& entry : WithOurNames(entries, is_ours, info_.synonyms, path, &notices_))
      ApplyEntry(entry, by_key, path, OptionOrigin::kConfigFile, before);
  }

  /// The options that a file of another program gives, where nobody who goes before it has given them or what
  /// overrides them; and its notices.
  void ApplyOptionsOf(const OptionsOfFile& file, OptionOrigin origin) {
    notices_.insert(notices_.end(), file.notices.begin(), file.notices.end());
    const Origins given = origins_;  // its own values do not exclude each other
    for (const auto& [key, error] : file.refused) {
      if (!exclusions_.IsGiven(given, key)) throw error;
    }
    for (const OptionValue& option : file.options) {
      const std::string instead = exclusions_.OverriddenBy(given, option.key);
      if (instead.empty()) {
        Set(app_.get_option("--" + option.key), {option.value}, option.source);
        origins_[option.key] = {origin, option.source};
      } else if (instead != option.key) {
        notices_.push_back(option.source + ": --" + instead + " overrides it");
      }
    }
    for (const auto& [key, notice] : file.notices_of_options) {
      if (!exclusions_.IsGiven(given, key)) notices_.push_back(notice);
    }
  }

  /// Sets an option unless what goes before the file has given it or what excludes it.
  void ApplyEntry(const ConfigEntry& entry, const std::map<std::string, CLI::Option*>& by_key,
                  const std::string& path, OptionOrigin origin, const Origins& given) {
    const auto found = by_key.find(entry.key);
    if (found == by_key.end()) {
      const std::string nearest = NearestKey(info_, by_key, entry.key);
      throw Error(ErrorCode::kUsage, path, "unknown key '" + entry.name_in_file() + "'",
                  "line " + std::to_string(entry.line),
                  nearest.empty() ? Hint(info_) : "did you mean '" + nearest + "'?");
    }
    CLI::Option* option = found->second;
    const std::string source = PlaceOf(entry, path);
    if (entry.is_list && option->get_expected_max() <= 1) {
      throw Error(ErrorCode::kUsage, source, "takes one value, not a list");
    }
    // Its place is still checked when a flag or the environment goes before it; its value is theirs.
    const bool gives_way = exclusions_.GivesWay(given, entry.key, entry.values, source, &notices_);
    if (gives_way || option->count() > 0) return;
    Set(option, entry.values, source);
    origins_[entry.key] = {origin, path + " line " + std::to_string(entry.line)};
  }

  void ApplySettingsFile() {
    if (info_.settings_file.option.empty()) return;
    const CLI::Option* const chooser = app_.get_option("--" + info_.settings_file.option);
    // An empty path is refused when all values are checked.
    if (chooser->count() == 0 || chooser->results().back().empty()) return;
    const auto given = [&](const std::string& key) { return TextGiven(app_, key); };
    OptionsOfFile file = info_.settings_file.read(chooser->results().back(), given);
    ApplyOptionsOf(file, OptionOrigin::kSettingsFile);
    file_values_ = std::move(file.others);
  }

  /// What the output that is gone on with remembers: like a preset's, its values give way to options that
  /// exclude them.
  void ApplyRemembered() {
    if (!info_.remembered) return;
    const RememberedOptions remembered =
        info_.remembered([&](const std::string& key) { return TextGiven(app_, key); });
    if (remembered.path.empty()) return;
    const auto by_key = OptionsByKey();
    const auto given = origins_;  // its own values do not exclude each other
    for (const ConfigEntry& entry : ParseConfig(remembered.text, remembered.path)) {
      if (remembered.leave_out.contains(entry.key) || exclusions_.IsGiven(given, entry.key)) continue;
      // Versions that took an empty value remembered it.
      if (!info_.may_be_empty.contains(entry.key) && entry.values == std::vector<std::string>{""}) continue;
      ApplyEntry(entry, by_key, remembered.path, OptionOrigin::kRemembered, given);
    }
  }

  /// The values of --preset, and those of another program whose file was read.
  void ApplyPresets() {
    if (!info_.presets.empty()) {
      const CLI::Option* chooser = app_.get_option("--preset");
      // An unknown name is found, with the nearest one, when all values are checked.
      if (chooser->count() > 0) preset_ = FindPreset(info_.presets, chooser->results().back());
      if (preset_ != nullptr) ApplyPreset(*preset_, "preset " + preset_->name);
    }
    if (foreign_) ApplyPreset({.values = foreign_->defaults}, foreign_->program + "'s default");
  }

  void ApplyPreset(const OptionPreset& preset, const std::string& source) {
    std::vector<std::pair<std::string, std::string>>
        given;  // applied together: they do not exclude each other
    std::string left_out;
    const auto value_given = [&](const std::string& key) { return TextGiven(app_, key); };
    const OptionPreset counting = PresetWithMeaning(preset, info_.only_with, value_given);
    for (const auto& [key, value] : counting.values) {
      if (app_.get_option_no_throw("--" + key) == nullptr) {
        if (std::find(preset.essential.begin(), preset.essential.end(), key) != preset.essential.end()) {
          throw Error(ErrorCode::kUsage, "--preset " + preset.name,
                      "needs --" + key + ", which this build does not have");
        }
        left_out += (left_out.empty() ? "" : ", ") + key + " " + value;
      } else if (!exclusions_.IsGiven(origins_, key)) {
        given.emplace_back(key, value);
      }
    }
    for (const auto& [key, value] : given) {
      Set(app_.get_option("--" + key), {value}, source + ": " + key);
      origins_[key] = {OptionOrigin::kPreset, source};
    }
    if (!left_out.empty()) {
      notices_.push_back(source + ": left out, as this build has no such options: " + left_out);
    }
  }

  /// Taken before conversion, which replaces what was typed by what it stands for.
  std::vector<EffectiveOption> Effective() const {
    std::vector<EffectiveOption> effective;
    for (const CLI::Option* option : app_.get_options()) {
      if (!IsConfigurable(*option)) continue;
      EffectiveOption entry{DescribeOption(*option, info_), option->results(), true};
      const OptionDoc& doc = entry.doc;
      if (!entry.values.empty()) {
        if (!doc.repeated) entry.values = {entry.values.back()};
      } else if (emptied_.contains(option)) {
        entry.values.clear();
      } else if (doc.is_flag()) {
        entry.values = {doc.default_text.empty() ? "false" : doc.default_text};
      } else if (!doc.default_text.empty()) {
        entry.values = doc.repeated ? ParseListText("[" + doc.default_text + "]", doc.key)
                                    : std::vector<std::string>{doc.default_text};
      } else {
        entry.is_set = false;
      }
      effective.push_back(std::move(entry));
    }
    std::stable_partition(effective.begin(), effective.end(),
                          [](const EffectiveOption& entry) { return entry.doc.group != kCommonGroup; });
    return effective;
  }

  OptionValue ValueOf(const EffectiveOption& option) const {
    OptionValue value{.key = option.doc.key, .group = option.doc.group, .is_default = HasDefault(option)};
    if (option.doc.repeated) {
      for (const std::string& item : option.values) value.value += (value.value.empty() ? "" : ", ") + item;
      value.value = "[" + value.value + "]";
    } else if (!option.values.empty()) {
      value.value = option.values.back();
    }
    if (const auto origin = origins_.find(value.key); origin != origins_.end()) {
      value.origin = origin->second.first;
      value.source = origin->second.second;
    }
    return value;
  }

  /// What an error about the value of an option names.
  std::string SourceOf(const CLI::Option& option, const OptionDoc& doc) const {
    if (const auto source = sources_.find(&option); source != sources_.end()) return source->second;
    return doc.is_positional() ? doc.positional : option.get_name();
  }

  /// \throws Error{kUsage} on an empty text where none is asked for. Numbers and words have their own
  ///     messages.
  void RefuseEmpty(const CLI::Option& option, const OptionDoc& doc) const {
    const bool is_text = !doc.is_flag() && doc.choices.empty() && doc.constraint.empty() &&
                         doc.value_name != "N" && doc.value_name != "X";
    const std::vector<std::string>& values = option.results();
    if (!is_text || info_.may_be_empty.contains(doc.key)) return;
    if (std::find(values.begin(), values.end(), "") == values.end()) return;
    throw EmptyValue(SourceOf(option, doc));
  }

  void ConvertAll() {
    for (CLI::Option* option : app_.get_options()) {
      if (option->count() == 0 || option->get_single_name() == "config") continue;
      const OptionDoc doc = DescribeOption(*option, info_);
      RefuseEmpty(*option, doc);
      if (option->get_callback_run()) continue;
      const std::vector<std::string> given = option->results();
      try {
        const bool is_signed = option->get_type_name().starts_with("INT");
        for (const std::string& value : given) {
          if (doc.value_name == "N" && IsTooLong(value, is_signed)) throw CLI::ConversionError(value);
          if ((doc.value_name == "X" || !doc.constraint.empty()) && IsNotANumber(value))
            throw CLI::ConversionError(value);
        }
        option->run_callback();
      } catch (const CLI::ParseError& error) {
        throw BadValue(*option, doc, given, error.what());
      }
    }
  }

  Error BadValue(const CLI::Option& option, const OptionDoc& doc, const std::vector<std::string>& given,
                 const std::string& message) const {
    const std::string object = SourceOf(option, doc), value = given.empty() ? "" : given.back();
    if (!doc.choices.empty()) {
      std::string choices;
      for (const std::string& choice : doc.choices) choices += (choices.empty() ? "" : ", ") + choice;
      const std::string nearest = NearestName(value, doc.choices);
      return Error(ErrorCode::kUsage, object, "'" + value + "' is not one of " + choices, "",
                   nearest.empty() ? "" : "did you mean " + nearest + "?");
    }
    if (!doc.constraint.empty())
      return Error(ErrorCode::kUsage, object, "'" + value + "' is not allowed; it must be " + doc.constraint);
    if (doc.value_name == "N" || doc.value_name == "X" || message.starts_with("Could not convert")) {
      const bool whole = doc.value_name == "N";
      const char* kind = doc.is_flag()           ? "true or false"
                         : whole                 ? "a whole number in range"
                         : doc.value_name == "X" ? "a number"
                                                 : "a valid value";
      return Error(ErrorCode::kUsage, object, "'" + value + "' is not " + kind);
    }
    const size_t colon = message.find(": ");
    return Error(ErrorCode::kUsage, object,
                 FirstLine(colon == std::string::npos ? message : message.substr(colon + 2)), "",
                 Hint(info_));
  }

  void RequireAll() const {
    for (const CLI::Option* option : app_.get_options()) {
      if (option->get_required() && option->count() == 0) {
        const OptionDoc doc = DescribeOption(*option, info_);
        throw Error(ErrorCode::kUsage, doc.is_positional() ? doc.positional : option->get_name(),
                    "is required", "", Hint(info_));
      }
    }
  }

  const ToolInfo& info_;
  CLI::App& app_;
  const OptionExclusions exclusions_;
  std::map<const CLI::Option*, std::string> sources_;
  std::set<const CLI::Option*> emptied_;  // set to a list without items
  Origins origins_;                       // by key; absent: default
  std::vector<OptionValue> values_;
  const OptionPreset* preset_ = nullptr;
  std::optional<OptionsOfFile> foreign_;  // what --config says, where it is another program's
  std::vector<OptionValue> file_values_;
  std::vector<std::string> notices_;
};

// A flag that is only asked for its count.
CLI::Option* AddPlainFlag(CLI::App& app, const std::string& names, const std::string& help) {
  return app
      .add_flag_function(
          names, [](int64_t) {}, help)
      ->group(kCommonGroup);
}

void DefineCommonOptionsWithHook(CLI::App& app, CommonOptions* options, const SettingsHook& hook) {
  app.set_help_flag();
  app.option_defaults()->always_capture_default()->take_last();
  // First of all options: its forced callback runs before any other value is converted.
  CLI::Option* config = app.add_option_function<std::string>(
      "--config",
      [hook](const std::string& path) {
        if (hook) hook(path);
      },
      "Read options from this flat YAML file. Flags and environment variables take precedence.");
  config->type_name("FILE")->group(kCommonGroup)->default_str("");
  if (hook) config->force_callback();
  AddPlainFlag(app, "--print-config",
               "Write the effective configuration as YAML to standard output, and stop.");
  // RunTool takes the path once it is checked: no error in the options after it is written over an input.
  app.add_option_function<std::string>(
         "--summary", [](const std::string&) {},
         "Write a JSON summary to this file when done, also after a failure. It holds counts, exit status, "
         "wall and processor time in seconds, and peak memory in bytes. After wrong usage it replaces "
         "nothing but a former summary. A process that is killed, or that ends where a library runs out of "
         "memory, leaves the file as it was.")
      ->type_name("FILE")
      ->group(kCommonGroup);
  static const std::vector<std::pair<std::string, ProgressMode>> kModes = {
      {"auto", ProgressMode::kAuto}, {"always", ProgressMode::kAlways}, {"never", ProgressMode::kNever}};
  AddChoice(app, "--progress", &options->progress, kModes,
            "When to draw a progress bar on standard error. auto draws on a terminal, unless TERM is dumb or "
            "-q is given.")
      ->type_name("WHEN")
      ->group(kCommonGroup);
  app.add_flag("-q,--quiet", options->quiet, "Print errors only.")->group(kCommonGroup);
  app.add_flag("-v,--verbose", options->verbose, "Print more about what is done.")->group(kCommonGroup);
  AddPlainFlag(app, "-h", "Print a short help, one line an option.");
  AddPlainFlag(app, "--help", "Print the whole help.");
  AddPlainFlag(app, "--version", "Print version and build features.");
}

// ---- Running ----

/// Whether standard output is a pipe that nobody reads any more.
bool ReaderWentAway() {
  pollfd output = {.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return poll(&output, 1, /*timeout=*/0) == 1 && (output.revents & POLLERR) != 0;
}

/// Flushes and closes standard output, so that an error that was delayed until now is not lost.
void CloseStandardOutput(const ToolInfo& info) {
  errno = 0;
  const bool failed_before = std::ferror(stdout) != 0;
  const bool flushed = std::fflush(stdout) == 0;
  int error = errno;
  if (failed_before && error == 0 && ReaderWentAway()) error = EPIPE;  // of a text longer than stdio's buffer
  // close reports what network file systems delay; the descriptor is reserved again for whatever is opened
  // later.
  if (close(STDOUT_FILENO) != 0 && error == 0 && errno != EBADF) error = errno;
  ReserveStandardDescriptors();
  if (error == EPIPE && !info.filter) return;  // a reader that went away must not fail a finished run
  if (error != 0 || failed_before || !flushed) {
    throw SystemError("standard output", "write", error != 0 ? error : EIO,
                      error == ENOSPC ? "free some space, or write elsewhere" : "");
  }
}

void PrintError(const Error& error) {
  LogError(error.what());
  if (!error.hint().empty()) LogHint(error.hint());
}

nlohmann::ordered_json ErrorSummary(const Error& error) {
  return {{"message", error.what()},
          {"object", error.object()},
          {"problem", error.problem()},
          {"place", error.place()},
          {"hint", error.hint()}};
}

/// Calls `action`; an exception is printed and becomes the returned status.
int Guard(const std::function<int()>& action, nlohmann::ordered_json* error_summary) {
  try {
    return action();
  } catch (...) {
    const Error error = ErrorOf(std::current_exception());
    PrintError(error);
    *error_summary = ErrorSummary(error);
    return static_cast<int>(error.code());
  }
}

/// An error about "--flag", or about several with commas between them: each is named by the variable that has
/// set it, if one has, and placed in the file that has: on the command line there is none to be found.
Error NamingSources(const Error& error, const std::vector<OptionValue>& options) {
  std::string objects, places;
  const std::string& flags = error.object();
  for (size_t begin = 0; begin < flags.size();) {
    const size_t end = std::min(flags.find(", ", begin), flags.size());
    std::string object = flags.substr(begin, end - begin);
    const auto option = std::find_if(options.begin(), options.end(),
                                     [&](const OptionValue& value) { return object == "--" + value.key; });
    if (option != options.end()) {
      const bool is_of_file =
          option->origin == OptionOrigin::kConfigFile || option->origin == OptionOrigin::kSettingsFile;
      if (is_of_file) places += (places.empty() ? "" : "; ") + option->source;
      if (option->origin == OptionOrigin::kEnvironment) object = option->source;
    }
    objects += (objects.empty() ? "" : ", ") + object;
    begin = end + 2;
  }
  return {error.code(), objects, error.problem(), error.place().empty() ? places : error.place(),
          error.hint()};
}

/// Runs a tool.
/// \throws Error as NamingSources
int RunNamingSources(const std::function<int(ToolRun&)>& run, ToolRun* tool_run) {
  try {
    return run(*tool_run);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUsage) throw;
    // The tool may not know all of its files yet, as those of a list.
    if (SummaryReplacesOther(tool_run->common.summary_path)) tool_run->common.summary_path.clear();
    throw NamingSources(error, tool_run->options);
  }
}

/// The files that options name, by key; after parsing. A value that may be a word, as that of a built-in
/// template, is a path where it looks like one and there is such a file.
std::vector<std::pair<std::string, NamedFile>> FilesNamedBy(const CLI::App& app, const ToolInfo& info) {
  std::vector<std::pair<std::string, NamedFile>> files;
  for (const CLI::Option* option : app.get_options()) {
    const OptionDoc doc = DescribeOption(*option, info);
    const bool is_path = doc.value_name == "FILE" || doc.value_name == "DIR" || doc.is_positional();
    std::vector<std::string> values = option->results();
    if (values.empty()) values = {doc.default_text};
    for (const std::string& value : values) {
      std::error_code ignored;
      const bool names_file = is_path || (value.find_first_of("./") != std::string::npos &&
                                          std::filesystem::is_regular_file(value, ignored));
      if (!names_file || value.empty()) continue;
      files.emplace_back(doc.key,
                         NamedFile{doc.is_positional() ? doc.positional : option->get_name(), value});
    }
  }
  if (const char* config = std::getenv("TRAINWRIGHT_CONFIG"))
    files.emplace_back("config", NamedFile{"TRAINWRIGHT_CONFIG", config});
  return files;
}

/// The files that options were read from, by the flags or the variable that name them; after parsing.
std::vector<NamedFile> OptionFilesOf(const CLI::App& app, const ToolInfo& info) {
  std::vector<NamedFile> files;
  const NamedFile config = ConfigFile(TextGiven(app, "config"));
  if (!config.path.empty()) files.push_back(config);
  const std::string& key = info.settings_file.option;
  const std::string settings = key.empty() ? "" : TextGiven(app, key);
  if (!settings.empty()) files.push_back({"--" + key, settings});
  return files;
}

/// \throws Error{kUsage} where an output would replace what another option names
void KeepNamedFiles(const CLI::App& app, const ToolInfo& info) {
  const auto files = FilesNamedBy(app, info);
  for (const auto& [key, file] : files) {
    const auto output = info.outputs.find(key);
    if (output == info.outputs.end()) continue;
    std::vector<NamedFile> others;
    for (const auto& [other, named] : files) {
      const bool may_be =
          other == "summary" || info.outputs.contains(other) || output->second.contains(other);
      if (!may_be) others.push_back(named);
    }
    RefuseToReplaceNamed(file, others);
  }
}

/// The path that --summary or its variable has given so far; empty: none.
std::string SummaryAsked(const CLI::App& app) {
  if (app.get_option("--summary")->count() > 0) return TextGiven(app, "summary");
  const char* const variable = std::getenv("TRAINWRIGHT_SUMMARY");
  return variable == nullptr ? "" : variable;
}

/// Where the summary goes: a file, or "-"; empty: none is asked for.
/// \throws Error{kUsage} where it would replace what another option names, or go between data
std::string PlaceOfSummary(const CLI::App& app, const ToolInfo& info) {
  const std::string asked = SummaryAsked(app);
  const bool is_stdout = !asked.empty() && IsStandardOutput(asked);
  if (is_stdout && info.stdout_is_data) {
    throw Error(ErrorCode::kUsage, "--summary",
                "cannot be " + asked + ", for standard output carries the data", "", "name a file");
  }
  std::vector<NamedFile> named;
  for (const auto& [key, file] : FilesNamedBy(app, info)) {
    if (key != "summary") named.push_back(file);
  }
  RefuseSummaryOver(asked, named);
  return is_stdout ? "-" : asked;
}

/// The same after wrong usage, where not all files are known that the command would read and write: nothing
/// but a former summary is replaced.
std::string PlaceOfSummaryAfterWrongUsage(const CLI::App& app, const ToolInfo& info) {
  try {
    const std::string place = PlaceOfSummary(app, info);
    return SummaryReplacesOther(place) ? "" : place;
  } catch (const Error&) {
    return "";
  }
}

void WriteSummary(const std::string& path, const ToolInfo& info, int argc, char** argv,
                  const nlohmann::ordered_json& counts, int exit_status, Clock::time_point start,
                  const nlohmann::ordered_json& error) {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  nlohmann::ordered_json summary;
  summary["schema"] = "trainwright." + info.name + ".summary/1";
  summary["tool"] = info.name;
  summary["version"] = TRAINWRIGHT_VERSION;
  summary["argv"] = std::vector<std::string>(argv, argv + argc);
  summary["exit_status"] = exit_status;
  summary["wall_time_s"] = std::chrono::duration<double>(Clock::now() - start).count();
  summary["cpu_time_s"] = SecondsOf(usage.ru_utime) + SecondsOf(usage.ru_stime);
  // Not ru_maxrss: that begins with what the program held that started this one.
  summary["max_memory_bytes"] = PeakResidentBytes();
  for (const auto& [key, value] : counts.items()) {
    if (!summary.contains(key)) summary[key] = value;  // a result has a schema, too
  }
  if (!error.is_null()) summary["error"] = error;
  const std::string text =
      summary.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  if (path == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
  } else {
    WriteFileAtomically(path, AsBytes(text));
  }
}

}  // namespace

void ToolRun::KeepFromSummary(const std::vector<std::string>& files) {
  std::vector<NamedFile> named;
  for (const std::string& file : files) named.push_back({"this command", file});
  const std::string asked = std::exchange(common.summary_path, "");  // no error is written over one of them
  RefuseSummaryOver(asked, named);
  common.summary_path = asked;
}

void AddPresetOptions(CLI::App& app, const std::vector<OptionPreset>& presets, std::string* name,
                      const std::string& group) {
  std::vector<std::string> names;
  for (const OptionPreset& preset : presets) names.push_back(preset.name);
  app.add_option(
         "--preset", *name,
         "Take the options that are not given from this set of values; see PRESETS. Flags, environment and "
         "--config take precedence, and --print-config shows the result.")
      ->check(CLI::IsMember(names))
      ->group(group);
  AddPlainFlag(app, "--list-presets", "Print the names of the presets, one line each, and stop.")
      ->group(group);
}

void DefineCommonOptions(CLI::App& app, CommonOptions* options) {
  DefineCommonOptionsWithHook(app, options, nullptr);
}

int RunTool(int argc, char** argv, const ToolInfo& info, const DefineOptions& define,
            const std::function<int(ToolRun&)>& run) {
  const Clock::time_point start = Clock::now();
  ReserveStandardDescriptors();
  InstallSignalHandlers(/*ignore_sigpipe=*/!info.filter);
  TellCutMappings();
  ConfigureLog(info.name, LogLevel::kInfo);

  ToolRun tool_run;
  tool_run.tool = info.name;
  nlohmann::ordered_json error;
  int status = Guard(
      [&] {
        CLI::App app(info.summary, info.name);
        CommandLine command_line(info, app);
        DefineCommonOptionsWithHook(app, &tool_run.common,
                                    [&](const std::string& path) { command_line.ApplySettings(path); });
        define(app);
        // A repeated option takes one value each time: "--eval-data a b" must not swallow the argument b.
        for (CLI::Option* option : app.get_options()) {
          if (!option->get_positional()) option->allow_extra_args(false);
        }
        try {
          command_line.Parse(argc, argv);
        } catch (const TextRequested& requested) {
          for (const std::string& notice : command_line.notices()) LogInfo(notice);
          std::fwrite(requested.text.data(), 1, requested.text.size(), stdout);
          return 0;
        } catch (...) {
          tool_run.common.summary_path = PlaceOfSummaryAfterWrongUsage(app, info);
          throw;
        }
        tool_run.options = command_line.values();
        tool_run.file_values = command_line.file_values();
        tool_run.option_files = OptionFilesOf(app, info);
        tool_run.common.summary_path = PlaceOfSummary(app, info);
        KeepNamedFiles(app, info);
        ConfigureLog(info.name, tool_run.common.quiet     ? LogLevel::kError
                                : tool_run.common.verbose ? LogLevel::kDebug
                                                          : LogLevel::kInfo);
        if (info.tells_notices) {
          for (const std::string& notice : command_line.notices()) LogInfo(notice);
        } else {
          tool_run.notices = command_line.notices();
        }
        tool_run.preset = command_line.preset();
        const int ended = RunNamingSources(run, &tool_run);
        ReleaseHeldInfo();
        return ended;
      },
      &error);

  const auto write_summary = [&] {
    WriteSummary(tool_run.common.summary_path, info, argc, argv, tool_run.summary, status, start, error);
    return 0;
  };
  const bool summary_on_stdout = tool_run.common.summary_path == "-";
  if (summary_on_stdout) write_summary();
  const int close_status = Guard(
      [&] {
        CloseStandardOutput(info);
        return 0;
      },
      &error);
  if (status <= 1 && close_status != 0) status = close_status;
  if (!summary_on_stdout && !tool_run.common.summary_path.empty()) {
    const int summary_status = Guard(write_summary, &error);
    if (status <= 1 && summary_status != 0) status = summary_status;
  }
  return status;
}

}  // namespace trainwright
