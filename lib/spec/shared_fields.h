/// Fields of config.json that several families have.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "lib/spec/config_fields.h"
#include "lib/spec/model_config.h"

namespace trainwright {

/// "eos_token_id": an id, the list of those that end a text, or null.
nlohmann::ordered_json EndsOrNull(const ModelConfig& config);
/// What transformers writes for every family.
/// \param architecture the class of transformers: "LlamaForCausalLM"
void WriteShared(const ModelConfig& config, const char* architecture, nlohmann::ordered_json* out);
/// The vocabulary and its special tokens.
/// \throws Error{kBadInput}, as all that follow do
void ReadShared(const ConfigFields& fields, ModelConfig* config);
/// A number of layers, of which there is a sane one.
int64_t ReadLayers(const ConfigFields& fields, const char* name);
/// What a norm adds to a variance: below 0 it makes no number of small ones.
double ReadNormEpsilon(const ConfigFields& fields, const char* name, double absent);

/// Of transformers' names of the two kinds of GELU.
Activation ReadGelu(const ConfigFields& fields, const char* name, Activation absent);
/// The name that is written.
const char* GeluName(Activation activation);

}  // namespace trainwright
