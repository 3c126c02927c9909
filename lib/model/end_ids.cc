#include "lib/model/end_ids.h"

#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/model/generation_config.h"
#include "lib/model/object_file.h"
#include "lib/spec/model_files.h"

namespace trainwright {
namespace {

constexpr char kKey[] = "eos_token_id";

/// \param config an object, or null
bool Has(const nlohmann::ordered_json& config) {
  return config.contains(kKey) && !config[kKey].is_null();
}

}  // namespace

std::vector<uint32_t> EndIdsOf(const std::string& folder) {
  std::string path = folder + "/" + kGenerationConfigFileName;
  nlohmann::ordered_json config = ReadObjectFile(path);
  if (!Has(config)) {
    path = folder + "/" + kConfigFileName;
    config = ReadObjectFile(path);
  }
  if (!Has(config)) return {};
  std::vector<uint32_t> ids;
  const auto add = [&](const nlohmann::ordered_json& id) {
    if (!id.is_number_integer()) {
      throw Error(ErrorCode::kBadInput, path, std::string(kKey) + " is neither an id nor a list of ids");
    }
    const auto value = id.get<int64_t>();
    if (value >= 0 && value < UINT32_MAX) ids.push_back(static_cast<uint32_t>(value));
  };
  if (!config[kKey].is_array()) {
    add(config[kKey]);
  } else {
    for (const nlohmann::ordered_json& id : config[kKey]) add(id);
  }
  return ids;
}

}  // namespace trainwright
