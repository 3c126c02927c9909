#include "lib/formats/json_text.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "lib/base/error.h"

namespace trainwright {
namespace {

template <typename Json>
Json ParsedOrDiscarded(std::string_view text) {
  if (IsNestedTooDeep(text)) return Json(nlohmann::json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

/// Where the value at `at` ends: a comma, colon or bracket that is not in it.
size_t EndOfValue(std::string_view text, size_t at) {
  size_t depth = 0;
  for (bool quoted = false; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted) {
      if (c == '\\') ++at;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
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
  constexpr int kMaxDepth = 64;
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto check = [&](int depth, json::parse_event_t event, json& value) {
    if (depth > kMaxDepth) throw Error(ErrorCode::kBadInput, object, "is JSON that is nested too deeply");
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second) {
      throw Error(ErrorCode::kBadInput, object, "has the key \"" + value.get<std::string>() + "\" twice");
    }
    return true;
  };
  try {
    return json::parse(text, check);
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

std::string JsonTextOf(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string JsonLineOf(const nlohmann::ordered_json& value) {
  return JsonTextOf(value) + "\n";
}

}  // namespace trainwright
