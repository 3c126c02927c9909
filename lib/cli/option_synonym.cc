#include "lib/cli/option_synonym.h"

#include <algorithm>

namespace trainwright {

std::string DashedName(const std::string& name) {
  std::string dashed = name.substr(std::min(name.find_first_not_of('-'), name.size()));
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  return dashed;
}

std::string HintOfSynonym(const OptionSynonyms& synonyms, const std::string& name) {
  const auto found = synonyms.find(DashedName(name));
  if (found == synonyms.end()) return "";
  const OptionSynonym& synonym = found->second;
  std::string hint = synonym.key.empty() ? "it has no effect here" : "its name here is --" + synonym.key;
  if (synonym.only_words) {
    for (const auto& [theirs, ours] : synonym.words) {
      if (theirs == "true") hint += " " + ours;
    }
  }
  return hint + (synonym.notice.empty() ? "" : ": " + synonym.notice);
}

}  // namespace trainwright
