/// Which options of a tool exclude each other, and what gives way where they come from different sources.
#pragma once

#include <CLI/App.hpp>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/cli/config_file.h"
#include "lib/cli/tool.h"
#include "lib/report/option_value.h"

namespace trainwright {

/// Of the options that were given, by key: what gave them, and where that is.
using Origins = std::map<std::string, std::pair<OptionOrigin, std::string>>;

/// Whether a value is what the option has without it, as a printed configuration says: it excludes nothing.
bool IsDefault(const CLI::Option& option, const std::string& value);

/// The same of an option with the value that it has in this run.
bool HasDefault(const EffectiveOption& option);

/// Of the sets in ToolInfo::exclusive, and of CLI11's excludes. Both must outlive it.
class OptionExclusions {
 public:
  OptionExclusions(const ToolInfo& info, const CLI::App& app) : info_(info), app_(app) {}

  /// The key of the option, or else of one that it excludes, that is among these; empty: none is.
  std::string GivenInstead(const Origins& given, const std::string& key) const;
  bool IsGiven(const Origins& given, const std::string& key) const {
    return !GivenInstead(given, key).empty();
  }
  /// The same, or else the key of the option among these beside whose value this one has no meaning
  /// (ToolInfo::only_with).
  std::string OverriddenBy(const Origins& given, const std::string& key) const;
  /// Whether a value gives way to what takes precedence over its source.
  /// \param given of what takes precedence
  /// \param notices gets a sentence where another option is why
  bool GivesWay(const Origins& given, const std::string& key, const std::vector<std::string>& values,
                const std::string& source, std::vector<std::string>* notices) const;
  /// Takes back flags that only repeat their default beside an option that they exclude, as --eos=false
  /// beside a `no-eos: true` of a file: CLI11 would refuse it.
  static void ClearNeedless(CLI::App* app);
  /// Takes back what a variable gave to an option that needs another one, where nobody gives that: it is set
  /// for other calls, or for another tool's option of that name.
  void ClearUnmet(CLI::App* app, Origins* origins) const;
  /// \param sources of the values that are of no command line
  /// \throws Error{kUsage} on options that exclude each other by CLI11, of which one has such a source
  void Refuse(const std::map<const CLI::Option*, std::string>& sources) const;

 private:
  std::set<std::string> ExcludedBy(const std::string& key) const;

  const ToolInfo& info_;
  const CLI::App& app_;
};

}  // namespace trainwright
