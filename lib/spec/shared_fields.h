/// Fields of config.json that several families have.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>

#include "lib/spec/config_fields.h"
#include "lib/spec/model_config.h"

namespace trainwright {

/// "eos_token_id": an id, the list of those that end a text, or null.
nlohmann::ordered_json EndsOrNull(const ModelConfig& config);
/// What transformers writes for every family.
/// \param architecture the class of transformers: "LlamaForCausalLM"
void WriteShared(const ModelConfig& config, const char* architecture, nlohmann::ordered_json* out);
/// The vocabulary and its special tokens, the deviation of initial weights, and whether attention is causal.
/// \throws Error{kBadInput}, as all that follow do
void ReadShared(const ConfigFields& fields, ModelConfig* config);

/// A share of activations that transformers drops while it trains.
struct DropoutField {
  const char* name;
  double absent;  ///< transformers' value where the file has none
};
void ReadDropouts(const ConfigFields& fields, std::span<const DropoutField> all, ModelConfig* config);
void WriteDropouts(const ModelConfig& config, std::span<const DropoutField> all, nlohmann::ordered_json* out);

/// A number of layers, of which there is a sane one.
int64_t ReadLayers(const ConfigFields& fields, const char* name);
/// What a norm adds to a variance: below 0 it makes no number of small ones.
double ReadNormEpsilon(const ConfigFields& fields, const char* name, double absent);

/// Of transformers' names of the two kinds of GELU.
Activation ReadGelu(const ConfigFields& fields, const char* name, Activation absent);
/// The name that is written.
const char* GeluName(Activation activation);

}  // namespace trainwright
