/// Files of a model folder that hold one JSON object.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace trainwright {

/// The object, with members in their order; null where there is no such file.
/// \throws Error{kBadInput} where it holds something else; Error{kIo}
nlohmann::ordered_json ReadObjectFile(const std::string& path);

}  // namespace trainwright
