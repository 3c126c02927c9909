/// What is not known is null in JSON, never 0.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

namespace trainwright {

template <typename Value>
nlohmann::ordered_json OrNull(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

}  // namespace trainwright
