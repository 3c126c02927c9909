#include "lib/cli/config_synonym.h"

#include <map>
#include <utility>

#include "lib/base/error.h"

namespace trainwright {
namespace {

/// A key of a configuration file as ours. Empty keys have no effect, or leave their option alone.
struct TranslatedKey {
  ConfigEntry entry;
  std::string notice = {};  // to be told; may be empty
};

/// Makes one value of a list; an empty one leaves its option alone.
void JoinValues(ConfigEntry* entry) {
  std::string joined;
  for (const std::string& value : entry->values) joined += (joined.empty() ? "" : ",") + value;
  entry->is_list = false;
  entry->values = {joined};
  if (joined.empty()) entry->key.clear();
}

TranslatedKey TranslateSynonym(const OptionSynonyms& synonyms, const ConfigEntry& entry,
                               const std::string& path) {
  const auto found = synonyms.find(DashedName(entry.key));
  if (found == synonyms.end()) return {entry};
  const OptionSynonym& synonym = found->second;
  TranslatedKey translated = {entry};
  translated.entry.key = synonym.key;
  if (synonym.joins && entry.is_list) JoinValues(&translated.entry);
  const std::string place = PlaceOf(entry, path);
  if (synonym.key.empty()) {
    translated.notice = place + " has no effect here" + (synonym.notice.empty() ? "" : ": " + synonym.notice);
    return translated;
  }
  for (std::string& value : translated.entry.values) {
    const auto word = synonym.words.find(value);
    if (word == synonym.words.end()) {
      if (!synonym.only_words) continue;
      std::string known;
      for (const auto& [theirs, ours] : synonym.words) known += (known.empty() ? "" : ", ") + theirs;
      throw Error(ErrorCode::kUsage, place, "'" + value + "' has no counterpart here", "",
                  "known are " + known);
    }
    if (word->second.empty()) translated.entry.key.clear();
    value = word->second;
  }
  if (!translated.entry.key.empty() && synonym.key != DashedName(entry.key)) {
    translated.notice =
        place + " is read as " + synonym.key + (synonym.notice.empty() ? "" : ": " + synonym.notice);
  }
  return translated;
}

/// A key of a file that has another program's name for it, or underscores for dashes.
TranslatedKey AsOurs(const ConfigEntry& entry, const std::function<bool(const std::string& key)>& is_ours,
                     const OptionSynonyms& synonyms, const std::string& path) {
  TranslatedKey ours = {entry};
  if (!is_ours(entry.key)) ours.entry.key = DashedName(entry.key);
  // One that is ours may have values of other programs.
  const bool has_only_our_values = !synonyms.contains(ours.entry.key);
  return is_ours(ours.entry.key) && has_only_our_values ? ours : TranslateSynonym(synonyms, entry, path);
}

}  // namespace

std::vector<ConfigEntry> WithOurNames(const std::vector<ConfigEntry>& entries,
                                      const std::function<bool(const std::string& key)>& is_ours,
                                      const OptionSynonyms& synonyms, const std::string& path,
                                      std::vector<std::string>* notices) {
  std::vector<ConfigEntry> translated;
  std::map<std::string, std::string> said;  // by our key, the file's
  for (ConfigEntry entry : entries) {
    entry.in_file = entry.name_in_file();
    TranslatedKey ours = AsOurs(entry, is_ours, synonyms, path);
    if (!ours.notice.empty()) notices->push_back(ours.notice);
    if (ours.entry.key.empty()) continue;
    if (const auto [before, is_new] = said.emplace(ours.entry.key, entry.in_file); !is_new) {
      throw Error(ErrorCode::kUsage, path,
                  "keys '" + before->second + "' and '" + entry.in_file + "' are the same option",
                  "line " + std::to_string(entry.line), "leave one of them out");
    }
    translated.push_back(std::move(ours.entry));
  }
  return translated;
}

}  // namespace trainwright
