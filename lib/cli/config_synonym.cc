#include "lib/cli/config_synonym.h"

#include <map>
#include <utility>

#include "lib/base/error.h"

namespace trainwright {
namespace {

/// A key of a configuration file as ours. Empty keys have no effect, or leave their option alone.
struct TranslatedKey {
  ConfigEntry entry;
  std::string notice = {};        // to be told; may be empty
  bool is_told_together = false;  // with others that have no effect
};

/// Makes one value of a list; an empty one leaves its option alone.
void JoinValues(ConfigEntry* entry) {
  std::string joined;
  for (const std::string& value : entry->values) joined += (joined.empty() ? "" : ",") + value;
  entry->is_list = false;
  entry->values = {joined};
  if (joined.empty()) entry->key.clear();
}

Error Uncounterparted(const OptionSynonym& synonym, const std::string& place, const std::string& value) {
  std::string known;
  for (const auto& [theirs, ours] : synonym.words) known += (known.empty() ? "" : ", ") + theirs;
  return {ErrorCode::kUsage, place, "'" + value + "' has no counterpart here", "",
          synonym.instead.empty() ? "known are " + known : synonym.instead};
}

/// Puts our words in place of theirs.
void TranslateWords(const OptionSynonym& synonym, const std::string& place, ConfigEntry* entry) {
  for (std::string& value : entry->values) {
    const auto word = synonym.words.find(PlainWord(value));
    if (word == synonym.words.end()) {
      if (synonym.only_words) throw Uncounterparted(synonym, place, value);
      continue;
    }
    if (word->second.empty()) entry->key.clear();
    value = word->second;
  }
}

TranslatedKey TranslateSynonym(const OptionSynonyms& synonyms, const ConfigEntry& entry,
                               const std::string& path) {
  const OptionSynonym* const synonym = FindSynonym(synonyms, entry.key);
  if (synonym == nullptr) return {entry};
  const std::string place = PlaceOf(entry, path);
  const bool is_inside = !synonyms.contains(DashedName(entry.key));  // of a mapping that has the name
  if (is_inside && (synonym->only_words || !synonym->key.empty()))
    throw Error(ErrorCode::kUsage, place, "has no counterpart here", "", synonym->instead);
  TranslatedKey translated = {entry};
  translated.entry.key = synonym->key;
  if (synonym->joins && entry.is_list) JoinValues(&translated.entry);
  TranslateWords(*synonym, place, &translated.entry);
  if (synonym->key.empty()) {
    translated.is_told_together = synonym->told_together || synonym->only_words || is_inside;
    if (!translated.is_told_together)
      translated.notice =
          place + " has no effect here" + (synonym->notice.empty() ? "" : ": " + synonym->notice);
  } else if (!translated.entry.key.empty() && synonym->key != DashedName(entry.key)) {
    translated.notice =
        place + " is read as " + synonym->key + (synonym->notice.empty() ? "" : ": " + synonym->notice);
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
  std::string without_effect;
  for (ConfigEntry entry : entries) {
    entry.in_file = entry.name_in_file();
    TranslatedKey ours = AsOurs(entry, is_ours, synonyms, path);
    if (!ours.notice.empty()) notices->push_back(ours.notice);
    if (ours.is_told_together) without_effect += (without_effect.empty() ? "" : ", ") + entry.in_file;
    if (ours.entry.key.empty()) continue;
    if (const auto [before, is_new] = said.emplace(ours.entry.key, entry.in_file); !is_new) {
      throw Error(ErrorCode::kUsage, path,
                  "keys '" + before->second + "' and '" + entry.in_file + "' are the same option",
                  "line " + std::to_string(entry.line), "leave one of them out");
    }
    translated.push_back(std::move(ours.entry));
  }
  if (!without_effect.empty()) notices->push_back(path + ": without effect here: " + without_effect);
  return translated;
}

}  // namespace trainwright
