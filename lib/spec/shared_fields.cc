#include "lib/spec/shared_fields.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

namespace trainwright {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int64_t kMostLayers = 1 << 16;

/// transformers' names of the two kinds of GELU; the first is the one that is written.
constexpr const char* kErfNames[] = {"gelu", "gelu_python"};
constexpr const char* kTanhNames[] = {"gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_python_tanh",
                                      "gelu_accurate"};

ordered_json IdOrNull(int64_t id) {
  return id < 0 ? ordered_json() : ordered_json(id);
}

/// 0 is as absent, as in transformers.
double ReadInitializerRange(const ConfigFields& fields) {
  const double range = fields.Number("initializer_range", kUsualInitializerRange);
  if (!(range >= 0)) fields.Refuse("initializer_range", "must be at least 0");
  return range > 0 ? range : kUsualInitializerRange;
}

}  // namespace

ordered_json EndsOrNull(const ModelConfig& config) {
  if (config.more_eos_ids.empty()) return IdOrNull(config.eos_id);
  ordered_json ids = ordered_json::array({config.eos_id});
  for (const int64_t id : config.more_eos_ids) ids.push_back(id);
  return ids;
}

void WriteShared(const ModelConfig& config, const char* architecture, ordered_json* out) {
  (*out)["architectures"] = {architecture};
  (*out)["bos_token_id"] = IdOrNull(config.bos_id);
  (*out)["dtype"] = "float32";
  (*out)["eos_token_id"] = EndsOrNull(config);
  (*out)["initializer_range"] = config.initializer_range;
  if (!config.is_causal) (*out)["is_causal"] = false;
  (*out)["pad_token_id"] = IdOrNull(config.pad_id);
  (*out)["tie_word_embeddings"] = config.tie_embeddings;
  (*out)["torch_dtype"] = "float32";
  (*out)["use_cache"] = true;
  (*out)["vocab_size"] = config.vocab_size;
}

void ReadShared(const ConfigFields& fields, ModelConfig* config) {
  if (!fields.Field("quantization_config").is_null()) {
    fields.RefuseValue("quantization_config", "is not supported: the weights are quantised",
                       "take the model before it was quantised, or let transformers dequantise it "
                       "(model.dequantize(), then save_pretrained)");
  }
  config->vocab_size = fields.RequiredInteger("vocab_size");
  config->bos_id = fields.Id("bos_token_id");
  const std::vector<int64_t> ends = fields.Ids("eos_token_id");
  config->eos_id = ends.empty() ? -1 : ends.front();
  if (ends.size() > 1) config->more_eos_ids.assign(ends.begin() + 1, ends.end());
  config->pad_id = fields.Id("pad_token_id");
  config->initializer_range = ReadInitializerRange(fields);
  config->is_causal = fields.Flag("is_causal", true);
}

void ReadDropouts(const ConfigFields& fields, std::span<const DropoutField> all, ModelConfig* config) {
  for (const auto& [name, absent] : all) {
    const double share = fields.Number(name, absent);
    if (!(share >= 0 && share <= 1)) fields.Refuse(name, "must be from 0 to 1");
    if (share > 0) config->dropouts[name] = share;
  }
}

void WriteDropouts(const ModelConfig& config, std::span<const DropoutField> all, ordered_json* out) {
  for (const DropoutField& field : all) {
    const auto found = config.dropouts.find(field.name);
    (*out)[field.name] = found == config.dropouts.end() ? 0.0 : found->second;
  }
}

int64_t ReadLayers(const ConfigFields& fields, const char* name) {
  const int64_t layers = fields.RequiredInteger(name);
  if (layers > kMostLayers) fields.Refuse(name, "is too large");
  return layers;
}

double ReadNormEpsilon(const ConfigFields& fields, const char* name, double absent) {
  const double epsilon = fields.Number(name, absent);
  if (!(epsilon >= 0)) fields.Refuse(name, "must be at least 0");
  return epsilon;
}

Activation ReadGelu(const ConfigFields& fields, const char* name, Activation absent) {
  const json& value = fields.Field(name);
  const auto is = [&](const char* known) { return value == known; };
  if (value.is_null()) return absent;
  if (std::any_of(std::begin(kErfNames), std::end(kErfNames), is)) return Activation::kGelu;
  if (std::any_of(std::begin(kTanhNames), std::end(kTanhNames), is)) return Activation::kGeluTanh;
  fields.Refuse(name, value.dump() + " is not supported");
}

const char* GeluName(Activation activation) {
  return activation == Activation::kGelu ? kErfNames[0] : kTanhNames[0];
}

}  // namespace trainwright
