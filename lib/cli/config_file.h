/// The configuration file: flat YAML whose keys are the long names of the flags.
///
/// A value is a scalar, or a list for an option that may be given several times. Scalars are taken as the
/// text as written, as if they had been typed on the command line, so that no YAML typing rule changes
/// a value.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/cli/config_entry.h"
#include "lib/cli/option_synonym.h"
#include "lib/cli/option_table.h"

namespace trainwright {

/// The text of the file: YAML, or JSON, of which pairs of escaped surrogates are put together for that.
/// \throws Error{kIo} when the file cannot be read
std::string ReadConfigText(const std::string& path);

/// The entries of a text that was read from the file.
/// \param only the keys that are read, where others are of another program: see OptionsOfFile::ours
/// \param foreign names of other programs, whose files are nested: one that is null says nothing, and the
///     keys of one that holds a mapping are read as NAME.KEY
/// \throws Error{kUsage} when it is not a flat YAML mapping otherwise
std::vector<ConfigEntry> ParseConfig(const std::string& text, const std::string& path,
                                     const std::optional<std::set<std::string>>& only = std::nullopt,
                                     const OptionSynonyms& foreign = {});

/// The items of "[a, b]", or the text itself: how an environment variable gives a list.
/// \throws Error{kUsage} naming `variable`
std::vector<std::string> ParseListText(const std::string& text, const std::string& variable);

/// What --print-config writes for one option.
struct EffectiveOption {
  OptionDoc doc;
  std::vector<std::string> values;  ///< empty: unset
  bool is_set = false;              ///< false: unset and without a default; written as a comment
};

/// YAML that ParseConfig reads back to the same values.
/// \throws Error{kUsage} for a value that YAML cannot hold (not UTF-8)
std::string WriteConfig(const std::string& tool, const std::vector<EffectiveOption>& options);

}  // namespace trainwright
