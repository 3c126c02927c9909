/// What rules for the keys of other programs' files (foreign_file.h) are made of.
///
/// Each of these makes a rule's `take`, which throws Error{kUsage} naming the key where its value has
/// another type than the program takes, or asks for what there is not.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/run/foreign_file.h"

namespace trainwright {

using TakeKey = std::function<void(const ForeignKey&, ForeignFile*)>;
/// Their words and ours. An empty one leaves the option alone.
using ForeignWords = std::map<std::string, std::string>;

inline constexpr double kMostSamples = double{1u << 31};

/// A value for messages: its first 40 bytes.
std::string ShownValue(const nlohmann::json& value);
bool BooleanOf(const ForeignKey& key, const ForeignFile& file);
/// A word, number or truth value as the text that it is.
std::string SingleTextOf(const ForeignKey& key, const ForeignFile& file);
/// The texts of a list, or the only one of what is no list.
std::vector<std::string> TextsOf(const ForeignKey& key, const ForeignFile& file);
/// "a,b": how our options take several words.
std::string Joined(const std::vector<std::string>& texts, const std::string& between = ",");
/// The mappings of a list, "datasets.0" and so on.
std::vector<ForeignKey> MappingsOf(const ForeignKey& key, const ForeignFile& file);
/// A key of such a mapping; nullopt where it is not there, or null.
std::optional<ForeignKey> KeyIn(const ForeignKey& mapping, const std::string& name);
/// Whether it is false, empty, or holds nothing else: it asks for nothing.
bool IsOff(const nlohmann::json& value);

/// These check the type alone: what is to be done goes by other keys, too.
TakeKey CheckBoolean();
TakeKey CheckWhole(double least, double most = kMostSamples);
TakeKey CheckNumber();
TakeKey CheckText();
TakeKey CheckList();

/// A value that is an option's.
TakeKey WholeFor(std::string option, double least = 1);
TakeKey NumberFor(std::string option);
TakeKey TextFor(std::string option, std::string told = "");
/// A list, or a single value, as an option's "a,b".
TakeKey ListFor(std::string option);
/// Words that the option has others for; any other is refused unless the option is given
/// (ForeignFile::Refuse).
TakeKey WordFor(std::string option, ForeignWords words, std::string hint = "");
/// One of these for true and for false; an empty one leaves the option alone.
TakeKey SwitchFor(std::string option, std::string on, std::string off, std::string told = "");

/// What is always so here. For the other value `notice` is given: no result depends on it.
TakeKey Always(bool wanted, std::string notice);
/// What may have one of these values alone: another makes another run.
TakeKey Only(std::vector<nlohmann::json> wanted, std::string why, std::string hint = "");
/// What changes nothing here, whatever single value it has.
TakeKey Nothing(std::string told = "");
/// What changes nothing here, whatever it holds: `notice`, or one more name in a notice of them all.
TakeKey Unread(std::string notice = "");
/// What has no counterpart. Switched off it says nothing.
TakeKey Missing(std::string why, std::string hint);

/// Rules of one kind for several keys.
void AddRules(ForeignRules* rules, const std::vector<std::string>& names, const TakeKey& take);

}  // namespace trainwright
