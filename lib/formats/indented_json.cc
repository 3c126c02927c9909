#include "lib/formats/indented_json.h"

namespace trainwright {

std::string IndentedJsonOf(const nlohmann::ordered_json& value) {
  constexpr int kIndent = 2;
  return value.dump(kIndent, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace trainwright
