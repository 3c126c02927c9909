#include "lib/model/generation_config.h"

#include "lib/model/object_file.h"
#include "lib/spec/shared_fields.h"

namespace trainwright {

nlohmann::ordered_json ReadGenerationConfig(const std::string& folder) {
  return ReadObjectFile(folder + "/" + kGenerationConfigFileName);
}

std::string EncodeGenerationConfig(const ModelConfig& config, const nlohmann::ordered_json& before) {
  nlohmann::ordered_json out = before;
  const bool is_new = before.is_null();
  if (is_new) out["_from_model_config"] = true;
  if (config.bos_id >= 0) out["bos_token_id"] = config.bos_id;
  if (is_new) out["do_sample"] = false;
  if (const auto ends = EndsOrNull(config); !ends.is_null()) out["eos_token_id"] = ends;
  if (is_new) out["max_length"] = config.max_positions;
  if (config.pad_id >= 0) out["pad_token_id"] = config.pad_id;
  return out.dump(2) + "\n";
}

}  // namespace trainwright
