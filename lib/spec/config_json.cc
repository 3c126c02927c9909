#include "lib/spec/config_json.h"

#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/formats/json_text.h"
#include "lib/spec/config_fields.h"

namespace trainwright {

using nlohmann::json;

std::string EncodeConfigJson(const ModelConfig& config) {
  const FamilyDescription& family = FamilyOf(config);
  json out(family.Encode(config));  // keys in alphabetical order, as transformers writes them
  out["model_type"] = family.model_type();
  return out.dump(2) + "\n";
}

ModelConfig DecodeConfigJson(const FamilyList& families, const std::string& text, const std::string& path) {
  const json object = JsonOf(text);
  if (!object.is_object()) throw Error(ErrorCode::kBadInput, path, "is no JSON object");
  const std::string types = "this build computes the model types " + families.Names();
  const ConfigFields fields(
      object, path,
      types + "; a field that does not change what the model computes can be removed from the file");
  const json& type = fields.Field("model_type");
  ModelConfig config;
  if (type.is_string()) config.family = families.Find(type.get<std::string>());
  if (config.family == nullptr) fields.RefuseValue("model_type", type.dump() + " is not supported", types);
  config.family->Decode(fields, &config);
  fields.RefuseUnread();
  return config;
}

}  // namespace trainwright
