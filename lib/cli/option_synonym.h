/// Names that other programs give to what is an option here: of a command line they are the hint to the
/// option's own name, in a configuration file they are read as it.
#pragma once

#include <map>
#include <string>

namespace trainwright {

struct OptionSynonym {
  std::string key;  ///< ours; empty: it has no effect here
  /// Values that are said otherwise here; an empty one leaves the option alone.
  std::map<std::string, std::string> words = {};
  bool only_words = false;  ///< any other value is refused
  std::string notice = "";  ///< a sentence on what is different; empty: nothing is
  bool joins =
      false;  ///< a list is one value here, with commas between its items; without items it says none
};

/// By name, with dashes for underscores.
using OptionSynonyms = std::map<std::string, OptionSynonym>;

/// The name with dashes for underscores, and without those that it begins with.
std::string DashedName(const std::string& name);

/// What to say about such a name on a command line: "its name here is --lr"; empty: it is unknown.
std::string HintOfSynonym(const OptionSynonyms& synonyms, const std::string& name);

}  // namespace trainwright
