#include "lib/jinja/json_value.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trainwright::jinja {

namespace {

constexpr uint32_t kItemDepth = 1;  // of the items of a variable that is a list

bool IsWordOfMarks(const nlohmann::ordered_json& json) {
  static constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  return json.is_string() &&
         json.get_ref<const std::string&>().find_first_not_of(kLetters) == std::string::npos;
}

}  // namespace

Value ValueOfJson(Machine& machine, const nlohmann::ordered_json& json, bool is_data, uint32_t depth) {
  if (depth > kMostNesting) throw VariableProblem("a variable is nested too deep");
  machine.Step();
  switch (json.type()) {
    case nlohmann::json::value_t::boolean:
      return Value::Bool(json.get<bool>());
    case nlohmann::json::value_t::number_unsigned:
      if (json.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
        throw VariableProblem("a number of the variables does not fit 64 bits: not supported");
      }
      return Value::Int(json.get<int64_t>());
    case nlohmann::json::value_t::number_integer:
      return Value::Int(json.get<int64_t>());
    case nlohmann::json::value_t::number_float:
      return Value::Float(json.get<double>());
    case nlohmann::json::value_t::string:
      machine.WorkOnBytes(json.get_ref<const std::string&>().size());
      return machine.Text(TracedText(json.get_ref<const std::string&>(), is_data));
    case nlohmann::json::value_t::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const auto& item : json) items.push_back(ValueOfJson(machine, item, is_data, depth + 1));
      return machine.List(std::move(items));
    }
    case nlohmann::json::value_t::object: {
      Dict dict;
      machine.Charge(json.size() * sizeof(Value) * 2);
      for (const auto& item : json.items()) {
        const bool is_role = depth == kItemDepth && item.key() == "role" && IsWordOfMarks(item.value());
        dict.Set(machine.Text(TracedText(item.key(), is_data)),
                 ValueOfJson(machine, item.value(), is_data && !is_role, depth + 1));
      }
      return Value::OfDict(std::move(dict));
    }
    default:
      return Value::None();
  }
}

}  // namespace trainwright::jinja
