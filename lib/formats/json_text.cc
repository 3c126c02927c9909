#include "lib/formats/json_text.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "lib/base/error.h"
#include "lib/base/signals.h"

namespace trainwright {
namespace {

template <typename Json>
Json ParsedOrDiscarded(std::string_view text) {
  if (IsNestedTooDeep(text)) return Json(nlohmann::json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

/// Whether a number of JSON is more than 64 bits, or a double where it is written as one, can hold.
/// \throws nlohmann::json::parse_error on what is no number
bool IsOutOfRange(std::string_view number) {
  constexpr size_t kDigitsThatAlwaysFit = 18;
  const bool is_integer = number.find_first_of(".eE") == std::string_view::npos;
  if (is_integer && number.size() <= kDigitsThatAlwaysFit) return false;
  try {
    // An integer that does not fit is read as a double.
    return nlohmann::json::parse(number).is_number_float() && is_integer;
  } catch (const nlohmann::json::out_of_range&) {
    return true;
  }
}

/// The place of the quotation mark that ends the string which begins at `at`, or the end of the text.
size_t EndOfString(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return at;
}

/// Where the value at `at` ends: a comma, colon or bracket that is not in it.
size_t EndOfValue(std::string_view text, size_t at) {
  size_t depth = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      at = EndOfString(text, at);
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (depth == 0 && (c == ',' || c == ':' || c == ']' || c == '}')) {
      break;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return std::min(at, text.size());
}

/// Refuses what ParseJson does beyond the grammar. In time linear in the text: a callback of the library's
/// parser looks through all members of an object whenever one of them ends.
class KeyCheck : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit KeyCheck(const std::string& object) : object_(object) {}

  bool null() override { return Pass(); }
  bool boolean(bool /*value*/) override { return Pass(); }
  bool number_integer(number_integer_t /*value*/) override { return Pass(); }
  bool number_unsigned(number_unsigned_t /*value*/) override { return Pass(); }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return Pass(); }
  bool string(string_t& /*value*/) override { return Pass(); }
  bool binary(binary_t& /*value*/) override { return Pass(); }
  bool start_object(size_t /*count*/) override {
    keys_.emplace_back();
    return Open();
  }
  bool key(string_t& name) override {
    if (++seen_ % kKeysAPoll == 0) ThrowIfStopped();
    if (keys_.back().insert(name).second) return Pass();
    throw Error(ErrorCode::kBadInput, object_, "has the key \"" + name + "\" twice");
  }
  bool end_object() override {
    keys_.pop_back();
    return Close();
  }
  bool start_array(size_t /*count*/) override { return Open(); }
  bool end_array() override { return Close(); }
  bool parse_error(size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return false;
  }

 private:
  static constexpr size_t kMaxDepth = 64, kKeysAPoll = 4096;

  bool Pass() const {
    if (depth_ <= kMaxDepth) return true;
    throw Error(ErrorCode::kBadInput, object_, "is JSON that is nested too deeply");
  }
  bool Open() {
    Pass();
    ++depth_;
    return true;
  }
  bool Close() {
    --depth_;
    return true;
  }

  const std::string& object_;
  std::vector<std::unordered_set<std::string>> keys_;  // of the objects that are open
  size_t depth_ = 0, seen_ = 0;
};

}  // namespace

bool IsNestedTooDeep(std::string_view text) {
  size_t depth = 0;
  bool quoted = false;
  for (size_t at = 0; at < text.size(); ++at) {
    switch (text[at]) {
      case '"':
        quoted = !quoted;
        break;
      case '\\':
        ++at;  // whatever is escaped, it ends no string
        break;
      case '[':
      case '{':
        if (!quoted && ++depth > kMostJsonNesting) return true;
        break;
      case ']':
      case '}':
        if (!quoted && depth > 0) --depth;
        break;
      default:
        break;
    }
  }
  return false;
}

void RefuseDeepJson(std::string_view text, const std::string& object) {
  if (IsNestedTooDeep(text)) throw Error(ErrorCode::kBadInput, object, "is JSON that is nested too deeply");
}

nlohmann::json JsonOf(std::string_view text) {
  return ParsedOrDiscarded<nlohmann::json>(text);
}

nlohmann::ordered_json OrderedJsonOf(std::string_view text) {
  return ParsedOrDiscarded<nlohmann::ordered_json>(text);
}

std::string WithNumbersInRange(std::string_view text) {
  std::string in_range;
  size_t copied = 0;
  try {
    for (size_t at = 0; at < text.size(); ++at) {
      const char c = text[at];
      if (c == '"') {
        at = EndOfString(text, at);
      } else if (c == '-' || (c >= '0' && c <= '9')) {
        const size_t end = std::min(text.find_first_not_of("+-.0123456789eE", at), text.size());
        if (IsOutOfRange(text.substr(at, end - at))) {
          in_range.append(text.substr(copied, at - copied));
          in_range.append(std::to_string(std::numeric_limits<uint64_t>::max()));
          copied = end;
        }
        at = end - 1;
      }
    }
  } catch (const nlohmann::json::parse_error&) {
    return std::string(text);  // no JSON, as its parser will say
  }
  in_range.append(text.substr(copied));
  return in_range;
}

std::vector<std::pair<std::string, std::string_view>> MembersAsWritten(std::string_view object) {
  std::vector<std::pair<std::string, std::string_view>> members;
  std::unordered_map<std::string, size_t> places;
  size_t at = object.find('{') + 1;
  const auto skip_space = [&] { at = std::min(object.find_first_not_of(" \t\r\n", at), object.size()); };
  for (skip_space(); at < object.size() && object[at] != '}'; skip_space()) {
    if (object[at] == ',') {
      ++at;
      skip_space();
    }
    const std::string_view quoted = object.substr(at, EndOfValue(object, at) - at);
    at = object.find(':', at + quoted.size()) + 1;
    skip_space();
    std::string_view value = object.substr(at, EndOfValue(object, at) - at);
    at += value.size();
    value = value.substr(0, value.find_last_not_of(" \t\r\n") + 1);
    const auto name = nlohmann::json::parse(quoted).get<std::string>();
    const auto [place, is_new] = places.emplace(name, members.size());
    if (is_new) {
      members.emplace_back(name, value);
    } else {
      members[place->second].second = value;
    }
  }
  return members;
}

nlohmann::json ParseJson(std::string_view text, const std::string& object) {
  using nlohmann::json;
  KeyCheck check(object);
  // What is no JSON is told below.
  json::sax_parse(text, &check);
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    throw Error(ErrorCode::kBadInput, object, "is not valid JSON", "byte " + std::to_string(error.byte));
  } catch (const json::out_of_range&) {
    throw Error(ErrorCode::kBadInput, object, "holds a number that is out of range");
  }
}

std::string CanonicalJson(const nlohmann::json& value) {
  try {
    return value.dump();
  } catch (const nlohmann::json::type_error& error) {
    throw Error(ErrorCode::kInternal, "JSON to write", error.what());
  }
}

nlohmann::ordered_json ValueOrNull(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

std::string JsonTextOf(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string JsonLineOf(const nlohmann::ordered_json& value) {
  return JsonTextOf(value) + "\n";
}

}  // namespace trainwright
