/// Names that other programs give to what is an option here: of a command line they are the hint to the
/// option's own name, in a configuration file they are read as it.
#pragma once

#include <map>
#include <string>

namespace trainwright {

struct OptionSynonym {
  std::string key;  ///< ours; empty: it has none here, and what is accepted of it has no effect
  /// Values that are said otherwise here; an empty one leaves the option alone.
  std::map<std::string, std::string> words = {};
  bool only_words = false;   ///< any other value is refused
  std::string instead = "";  ///< what serves in place of a value that is refused; empty: `words` are named
  std::string notice = "";   ///< a sentence on what is different; empty: nothing is
  bool joins =
      false;  ///< a list is one value here, with commas between its items; without items it says none
  /// One notice names it with others that have no effect: where nobody expects one.
  bool told_together = false;
};

/// By name, with dashes for underscores. That of a key in a mapping of the file has its path, joined by dots.
using OptionSynonyms = std::map<std::string, OptionSynonym>;

/// The name with dashes for underscores, and without those that it begins with.
std::string DashedName(const std::string& name);

/// "True" and "TRUE", as Python and YAML write it, are "true", and so is false; any other value is itself.
std::string PlainWord(const std::string& value);

/// That of a name with dashes or underscores; of a key in a mapping the mapping's, where the key has none of
/// its own. nullptr: it is unknown.
const OptionSynonym* FindSynonym(const OptionSynonyms& synonyms, const std::string& name);

/// What to say about such a name on a command line: "its name here is --lr"; empty: it is unknown, or
/// ours but for its dashes.
std::string HintOfSynonym(const OptionSynonyms& synonyms, const std::string& name);

}  // namespace trainwright
