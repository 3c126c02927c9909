/// Keys of configuration files by other programs' names (option_synonym.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/cli/config_entry.h"
#include "lib/cli/option_synonym.h"

namespace trainwright {

/// The entries of a file by our keys, without those that have no effect here or leave their option alone:
/// names of other programs are translated, and underscores read as dashes. Each keeps the file's name for
/// messages.
/// \param notices gets what is to be said about them
/// \throws Error{kUsage} on a value that has no counterpart here, and on two names of one option
std::vector<ConfigEntry> WithOurNames(const std::vector<ConfigEntry>& entries,
                                      const std::function<bool(const std::string& key)>& is_ours,
                                      const OptionSynonyms& synonyms, const std::string& path,
                                      std::vector<std::string>* notices);

}  // namespace trainwright
