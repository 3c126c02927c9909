#include "lib/spec/own_options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

namespace trainwright {
namespace {

std::string NamesOf(const OwnOptions& options) {
  std::string names;
  for (const auto& [name, value] : options) names += (names.empty() ? "" : ", ") + name;
  return names;
}

/// Nullopt: the text is no finite number.
std::optional<double> NumberIn(const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [parsed, status] = std::from_chars(text.data(), end, value);
  if (status != std::errc() || parsed != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// \throws Error{code} on a name that `names` lacks
void RequireNames(const OwnOptions& said, const OwnOptions& names, ErrorCode code, const std::string& whose) {
  for (const auto& [name, value] : said) {
    if (names.contains(name)) continue;
    throw Error(code, whose, "has no option '" + name + "' of its own", "",
                names.empty() ? "it has none" : "it has " + NamesOf(names));
  }
}

Error BadValue(const std::string& name, const OwnValue& value, const std::string& hint, ErrorCode code,
               const std::string& whose) {
  return Error(code, whose, "its option '" + name + "' cannot be '" + value.ToString() + "'", "", hint);
}

/// The same, in the words of the command line where they were said there.
Error BadValue(const OwnOption& option, const OwnValue& value, const std::string& hint, ErrorCode code,
               const std::string& whose) {
  if (code != ErrorCode::kUsage || !option.has_flag()) return BadValue(option.name, value, hint, code, whose);
  return Error(code, "--" + option.flag(), "cannot be '" + value.ToString() + "'", "", hint);
}

std::string RangeOf(const OwnOption& option) {
  const std::string number = option.whole ? "a whole number" : "a number";
  const bool least = std::isfinite(option.least), most = std::isfinite(option.most);
  if (least && most) {
    return number + " from " + OwnValue(option.least).ToString() + " to " + OwnValue(option.most).ToString();
  }
  if (least) return number + " of at least " + OwnValue(option.least).ToString();
  return most ? number + " of at most " + OwnValue(option.most).ToString() : number;
}

bool IsInRange(const OwnOption& option, double number) {
  return number >= option.least && number <= option.most && (!option.whole || number == std::floor(number));
}

/// The value of an option as the option has it.
/// \throws Error{code} on one that it cannot have
OwnValue Checked(const OwnOption& option, const OwnValue& value, ErrorCode code, const std::string& whose) {
  if (option.initial.is_number()) {
    const std::optional<double> number = value.is_number() ? value.number() : NumberIn(value.text());
    if (!number || !IsInRange(option, *number)) {
      throw BadValue(option, value, RangeOf(option), code, whose);
    }
    return *number;
  }
  OwnValue text = value.ToString();
  const std::vector<std::string>& choices = option.choices;
  if (choices.empty() || std::find(choices.begin(), choices.end(), text.text()) != choices.end()) return text;
  std::string names;
  for (const std::string& choice : choices) names += (names.empty() ? "one of " : ", ") + choice;
  throw BadValue(option, value, names, code, whose);
}

}  // namespace

std::string OwnValue::ToString() const {
  if (!is_number()) return text();
  constexpr double kMostDigits = 1e15;
  if (number() == std::floor(number()) && std::fabs(number()) < kMostDigits) {
    return std::to_string(static_cast<int64_t>(number()));
  }
  char buffer[32];  // the shortest that reads back as the same number takes 24
  const auto [end, status] = std::to_chars(buffer, buffer + sizeof(buffer), number());
  TRAINWRIGHT_CHECK(status == std::errc());
  return std::string(buffer, end);
}

void PrintTo(const OwnValue& value, std::ostream* out) {
  *out << value.ToString();
}

std::string OwnOption::flag() const {
  std::string text = name;
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

const OwnOption* FindOwnOption(const std::vector<OwnOption>& described, const std::string& name) {
  const auto found = std::find_if(described.begin(), described.end(),
                                  [&](const OwnOption& option) { return option.name == name; });
  return found == described.end() ? nullptr : &*found;
}

OwnOptions ParseOwnOptions(const std::vector<std::string>& asked, const std::string& flag, OwnTexts texts) {
  OwnOptions options;
  for (const std::string& text : asked) {
    const size_t equals = text.find('=');
    const bool named = equals != std::string::npos && equals > 0;
    const std::string value = named ? text.substr(equals + 1) : "";
    const bool takes_texts = texts == OwnTexts::kTaken;
    const std::optional<double> number = takes_texts ? std::nullopt : NumberIn(value);
    if (!named || (!number && !takes_texts)) {
      throw Error(ErrorCode::kUsage, flag,
                  "'" + text + "' is not " + (takes_texts ? "NAME=VALUE" : "NAME=NUMBER"));
    }
    if (!options.emplace(text.substr(0, equals), number ? OwnValue(*number) : OwnValue(value)).second) {
      throw Error(ErrorCode::kUsage, flag, "gives '" + text.substr(0, equals) + "' twice");
    }
  }
  return options;
}

std::vector<std::string> FormatOwnOptions(const OwnOptions& options) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : options) texts.push_back(name + "=" + value.ToString());
  return texts;
}

bool IsSameOwnValue(const OwnValue& asked, const OwnValue& complete) {
  if (!complete.is_number()) return asked.ToString() == complete.text();
  return asked.is_number() ? asked == complete : NumberIn(asked.text()) == complete.number();
}

nlohmann::ordered_json EncodeOwnOptions(const OwnOptions& options) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [name, value] : options) {
    if (value.is_number()) {
      json[name] = value.number();
    } else {
      json[name] = value.text();
    }
  }
  return json;
}

OwnOptions DecodeOwnOptions(const nlohmann::json& json, const std::string& name) {
  const auto refuse = [&](const nlohmann::json& part) {
    throw Error(ErrorCode::kBadInput, name,
                "is no object of numbers and texts: " + part.dump().substr(0, 40));
  };
  if (!json.is_object()) refuse(json);
  OwnOptions options;
  for (const auto& [own, value] : json.items()) {
    if (value.is_number()) {
      options[own] = value.get<double>();
    } else if (value.is_string()) {
      options[own] = value.get<std::string>();
    } else {
      refuse(value);
    }
  }
  return options;
}

OwnOptions WithDefaults(const OwnOptions& said, const OwnOptions& defaults, ErrorCode code,
                        const std::string& whose) {
  RequireNames(said, defaults, code, whose);
  OwnOptions options = said;
  for (const auto& [name, value] : said) {
    if (defaults.at(name).is_number() && !value.is_number()) {
      throw BadValue(name, value, "a number", code, whose);
    }
  }
  options.insert(defaults.begin(), defaults.end());
  return options;
}

OwnOptions WithDescribed(const OwnOptions& said, const std::vector<OwnOption>& described, ErrorCode code,
                         const std::string& whose) {
  OwnOptions options;
  for (const OwnOption& option : described) options[option.name] = option.initial;
  RequireNames(said, options, code, whose);
  for (const OwnOption& option : described) {
    const auto found = said.find(option.name);
    if (found != said.end()) options[option.name] = Checked(option, found->second, code, whose);
  }
  return options;
}

}  // namespace trainwright
