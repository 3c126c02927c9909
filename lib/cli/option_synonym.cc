#include "lib/cli/option_synonym.h"

#include <algorithm>

namespace trainwright {

std::string DashedName(const std::string& name) {
  std::string dashed = name.substr(std::min(name.find_first_not_of('-'), name.size()));
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  return dashed;
}

std::string PlainWord(const std::string& value) {
  if (value == "True" || value == "TRUE") return "true";
  if (value == "False" || value == "FALSE") return "false";
  return value;
}

const OptionSynonym* FindSynonym(const OptionSynonyms& synonyms, const std::string& name) {
  std::string path = DashedName(name);
  while (true) {
    if (const auto found = synonyms.find(path); found != synonyms.end()) return &found->second;
    const size_t dot = path.rfind('.');
    if (dot == std::string::npos) return nullptr;
    path.resize(dot);
  }
}

std::string HintOfSynonym(const OptionSynonyms& synonyms, const std::string& name) {
  const OptionSynonym* const synonym = FindSynonym(synonyms, name);
  if (synonym == nullptr || synonym->key == DashedName(name)) return "";
  if (synonym->key.empty() && !synonym->instead.empty()) return synonym->instead;
  std::string hint = synonym->key.empty() ? "it has no effect here" : "its name here is --" + synonym->key;
  if (synonym->only_words && !synonym->key.empty()) {
    for (const auto& [theirs, ours] : synonym->words) {
      if (theirs == "true" && ours != "true") hint += " " + ours;  // a flag takes no value
    }
  }
  return hint + (synonym->notice.empty() ? "" : ": " + synonym->notice);
}

}  // namespace trainwright
