/// Reading the fields of files that a run has written and anybody may have changed.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <utility>

#include "lib/base/error.h"

namespace trainwright {

/// Whether a field is a whole number, written as one, that fits the type.
template <typename Whole>
bool IsWholeNumber(const nlohmann::json& field) {
  if (field.is_number_unsigned()) return std::in_range<Whole>(field.get<uint64_t>());
  return field.is_number_integer() && std::in_range<Whole>(field.get<int64_t>());
}

/// Reads json[name]. A whole number must be written as one and fit its type: a plain conversion would wrap or
/// cut it.
/// \throws Error{kBadInput} naming `path`; nlohmann::json::exception on a missing field or other type
template <typename Value>
void ReadField(const nlohmann::json& json, const char* name, const std::string& path, Value* value) {
  const nlohmann::json& field = json.at(name);
  if constexpr (std::is_integral_v<Value> && !std::is_same_v<Value, bool>) {
    if (!IsWholeNumber<Value>(field)) {
      throw Error(ErrorCode::kBadInput, path,
                  "its " + std::string(name) + " is no whole number in range: " + field.dump().substr(0, 40));
    }
  }
  field.get_to(*value);
}

}  // namespace trainwright
