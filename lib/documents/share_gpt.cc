#include "lib/documents/share_gpt.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "lib/formats/json_text.h"

namespace trainwright {
namespace {

bool IsFrom(const nlohmann::ordered_json& message, std::string_view name) {
  if (!message.is_object() || message.contains("role")) return false;
  const auto from = message.find("from");
  return from != message.end() && from->is_string() && from->get<std::string>() == name;
}

/// As templates read them; empty where the value is none.
nlohmann::ordered_json CallsOf(const nlohmann::ordered_json& value) {
  nlohmann::ordered_json read = value;
  if (value.is_string()) read = OrderedJsonOf(WithNumbersInRange(value.get<std::string>()));
  nlohmann::ordered_json said = nlohmann::ordered_json::array(), calls = nlohmann::ordered_json::array();
  if (read.is_object()) {
    said.push_back(std::move(read));
  } else if (read.is_array()) {
    said = std::move(read);
  }
  for (nlohmann::ordered_json& call : said) {
    if (!call.is_object() || !call.contains("name") || !call["name"].is_string() ||
        !call.contains("arguments")) {
      return nlohmann::ordered_json::array();
    }
    nlohmann::ordered_json function = nlohmann::ordered_json::object();
    function["name"] = std::move(call["name"]);
    function["arguments"] = std::move(call["arguments"]);
    nlohmann::ordered_json named = nlohmann::ordered_json::object();
    named["type"] = "function";
    named["function"] = std::move(function);
    calls.push_back(std::move(named));
  }
  return calls;
}

}  // namespace

std::optional<DocumentProblem> NameShareGptCalls(const std::string& where, nlohmann::ordered_json* messages) {
  const bool any = std::any_of(messages->begin(), messages->end(), [](const nlohmann::ordered_json& message) {
    return IsFrom(message, "function_call");
  });
  if (!any) return std::nullopt;
  size_t number = 0;
  for (nlohmann::ordered_json& message : *messages) {
    const std::string place = where + "[" + std::to_string(number++) + "]";
    if (IsFrom(message, "observation")) message["from"] = "tool";
    if (!IsFrom(message, "function_call")) continue;
    nlohmann::ordered_json calls = nlohmann::ordered_json::array();
    if (message.contains("value")) calls = CallsOf(message["value"]);
    if (calls.empty()) {
      return DocumentProblem{
          SkipReason::kBadTurns,
          place + ".value is no call {\"name\", \"arguments\"}, no list of some and no text of either",
          {},
          {}};
    }
    message.erase("from");
    message.erase("value");
    message["role"] = "assistant";
    message["content"] = "";  // which templates may join with other texts
    message["tool_calls"] = std::move(calls);
  }
  return std::nullopt;
}

}  // namespace trainwright
