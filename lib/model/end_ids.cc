#include "lib/model/end_ids.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/formats/json_text.h"
#include "lib/io/byte_source.h"

namespace trainwright {
namespace {

constexpr uint64_t kMaxConfigBytes = 1 << 24;
constexpr char kKey[] = "eos_token_id";

/// An empty object when there is no such file.
nlohmann::json ConfigAt(const std::string& path) {
  if (!std::filesystem::exists(path)) return nlohmann::json::object();
  nlohmann::json config = JsonOf(AsText(ReadWholeFile(path, kMaxConfigBytes)));
  if (!config.is_object()) throw Error(ErrorCode::kBadInput, path, "is no JSON object");
  return config;
}

bool Has(const nlohmann::json& config) {
  return config.contains(kKey) && !config[kKey].is_null();
}

}  // namespace

std::vector<uint32_t> EndIdsOf(const std::string& folder) {
  std::string path = folder + "/generation_config.json";
  nlohmann::json config = ConfigAt(path);
  if (!Has(config)) {
    path = folder + "/config.json";
    config = ConfigAt(path);
  }
  if (!Has(config)) return {};
  std::vector<uint32_t> ids;
  const auto add = [&](const nlohmann::json& id) {
    if (!id.is_number_integer()) {
      throw Error(ErrorCode::kBadInput, path, std::string(kKey) + " is neither an id nor a list of ids");
    }
    const auto value = id.get<int64_t>();
    if (value >= 0 && value < UINT32_MAX) ids.push_back(static_cast<uint32_t>(value));
  };
  if (!config[kKey].is_array()) {
    add(config[kKey]);
  } else {
    for (const nlohmann::json& id : config[kKey]) add(id);
  }
  return ids;
}

}  // namespace trainwright
