#include "lib/run/foreign_rules.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace trainwright {
namespace {

using nlohmann::json;

/// DeepSpeed takes 2e8 for a whole number.
bool IsWhole(const json& value, double least, double most) {
  if (!value.is_number()) return false;
  const auto number = value.get<double>();
  return number == std::floor(number) && number >= least && number <= most;
}

void RequireNumber(const ForeignKey& key, const ForeignFile& file) {
  if (!key.value->is_number() || key.value->get<double>() < 0) {
    throw file.Refusal(key, "must be a number of at least 0" + file.OrOpen());
  }
}

void TellUnlessEmpty(const ForeignKey& key, const std::string& told, ForeignFile* file) {
  if (!told.empty()) file->Tell(key, told);
}

}  // namespace

std::string ShownValue(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 40);
}

bool BooleanOf(const ForeignKey& key, const ForeignFile& file) {
  if (!key.value->is_boolean()) {
    throw file.Refusal(key, file.OrOpen().empty() ? "must be true or false"
                                                  : "must be true, false" + file.OrOpen().substr(1));
  }
  return key.value->get<bool>();
}

std::string SingleTextOf(const ForeignKey& key, const ForeignFile& file) {
  if (key.value->is_structured()) throw file.Refusal(key, "must be a single value");
  return file.TextOf(key);
}

std::vector<std::string> TextsOf(const ForeignKey& key, const ForeignFile& file) {
  if (!key.value->is_array()) return {SingleTextOf(key, file)};
  std::vector<std::string> texts;
  for (const json& item : *key.value) {
    if (item.is_structured() || item.is_null()) throw file.Refusal(key, "must be a list of single values");
    texts.push_back(item.is_string() ? item.get<std::string>() : item.dump());
  }
  return texts;
}

std::vector<ForeignKey> MappingsOf(const ForeignKey& key, const ForeignFile& file) {
  if (!key.value->is_array()) throw file.Refusal(key, "must be a list of mappings");
  std::vector<ForeignKey> mappings;
  for (size_t i = 0; i < key.value->size(); ++i) {
    const ForeignKey item{key.name + "." + std::to_string(i), &(*key.value)[i]};
    if (!item.value->is_object()) throw file.Refusal(item, "must hold keys of its own");
    mappings.push_back(item);
  }
  return mappings;
}

std::optional<ForeignKey> KeyIn(const ForeignKey& mapping, const std::string& name) {
  const auto found = mapping.value->find(name);
  if (found == mapping.value->end() || found->is_null()) return std::nullopt;
  return ForeignKey{mapping.name + "." + name, &*found};
}

std::string Joined(const std::vector<std::string>& texts, const std::string& between) {
  std::string joined;
  for (const std::string& text : texts) joined += (joined.empty() ? "" : between) + text;
  return joined;
}

bool IsOff(const json& value) {
  if (value.is_array()) return value.empty();
  if (!value.is_object())
    return value == false || value.is_null() || value == "auto" || value == "" || value == 0;
  if (value.contains("enabled") && value["enabled"] == false) return true;
  return std::all_of(value.begin(), value.end(), IsOff);
}

TakeKey CheckBoolean() {
  return [](const ForeignKey& key, ForeignFile* file) { BooleanOf(key, *file); };
}

TakeKey CheckWhole(double least, double most) {
  return [=](const ForeignKey& key, ForeignFile* file) {
    if (IsWhole(*key.value, least, most)) return;
    throw file->Refusal(key, "must be a whole number from " + std::to_string(static_cast<int64_t>(least)) +
                                 " to " + std::to_string(static_cast<int64_t>(most)) + file->OrOpen());
  };
}

TakeKey CheckNumber() {
  return [](const ForeignKey& key, ForeignFile* file) { RequireNumber(key, *file); };
}

TakeKey CheckText() {
  return [](const ForeignKey& key, ForeignFile* file) { SingleTextOf(key, *file); };
}

TakeKey CheckList() {
  return [](const ForeignKey& key, ForeignFile* file) { TextsOf(key, *file); };
}

TakeKey WholeFor(std::string option, double least) {
  return [check = CheckWhole(least), option = std::move(option)](const ForeignKey& key, ForeignFile* file) {
    check(key, file);
    file->Give(key, option, std::to_string(key.value->get<int64_t>()));
  };
}

TakeKey NumberFor(std::string option) {
  return [option = std::move(option)](const ForeignKey& key, ForeignFile* file) {
    RequireNumber(key, *file);
    file->Give(key, option, file->TextOf(key));
  };
}

TakeKey TextFor(std::string option, std::string told) {
  return [option = std::move(option), told = std::move(told)](const ForeignKey& key, ForeignFile* file) {
    const std::string text = SingleTextOf(key, *file);
    TellUnlessEmpty(key, told, file);
    if (!text.empty()) file->Give(key, option, text);
  };
}

TakeKey ListFor(std::string option) {
  return [option = std::move(option)](const ForeignKey& key, ForeignFile* file) {
    const std::string joined = Joined(TextsOf(key, *file));
    if (!joined.empty()) file->Give(key, option, joined);
  };
}

TakeKey WordFor(std::string option, ForeignWords words, std::string hint) {
  return [option = std::move(option), words = std::move(words), hint = std::move(hint)](const ForeignKey& key,
                                                                                        ForeignFile* file) {
    const std::string text = SingleTextOf(key, *file);
    const auto word = words.find(text);
    if (word == words.end()) {
      std::string known;
      for (const auto& [theirs, ours] : words) known += (known.empty() ? "" : ", ") + theirs;
      file->Refuse(key, option, "'" + text.substr(0, 40) + "' is not one of " + known, hint);
      return;
    }
    if (!word->second.empty()) file->Give(key, option, word->second);
  };
}

TakeKey SwitchFor(std::string option, std::string on, std::string off, std::string told) {
  return [option = std::move(option), on = std::move(on), off = std::move(off), told = std::move(told)](
             const ForeignKey& key, ForeignFile* file) {
    const std::string& value = BooleanOf(key, *file) ? on : off;
    TellUnlessEmpty(key, told, file);
    if (!value.empty()) file->Give(key, option, value);
  };
}

TakeKey Always(bool wanted, std::string told) {
  return [=, told = std::move(told)](const ForeignKey& key, ForeignFile* file) {
    if (BooleanOf(key, *file) != wanted) file->Tell(key, told);
  };
}

TakeKey Only(std::vector<json> wanted, std::string why, std::string hint) {
  return [wanted = std::move(wanted), why = std::move(why), hint = std::move(hint)](const ForeignKey& key,
                                                                                    ForeignFile* file) {
    for (const json& value : wanted) {
      if (*key.value == value) return;
    }
    throw file->Refusal(key, "is " + ShownValue(*key.value) + ": " + why,
                        hint.empty() ? "write " + ShownValue(wanted.front()) + ", or leave it out" : hint);
  };
}

TakeKey Nothing(std::string told) {
  return [told = std::move(told)](const ForeignKey& key, ForeignFile* file) {
    SingleTextOf(key, *file);
    TellUnlessEmpty(key, told, file);
  };
}

TakeKey Unread(std::string told) {
  return [told = std::move(told)](const ForeignKey& key, ForeignFile* file) {
    if (told.empty()) {
      file->Ignore(key);
    } else {
      file->Tell(key, told);
    }
  };
}

TakeKey Missing(std::string why, std::string hint) {
  return [why = std::move(why), hint = std::move(hint)](const ForeignKey& key, ForeignFile* file) {
    if (!IsOff(*key.value)) throw file->Refusal(key, why, hint);
  };
}

void AddRules(ForeignRules* rules, const std::vector<std::string>& names, const TakeKey& take) {
  for (const std::string& name : names) rules->push_back({name, take});
}

}  // namespace trainwright
