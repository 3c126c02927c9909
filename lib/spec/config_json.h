/// config.json of Hugging Face's transformers, in and out, for the families that a program knows.
#pragma once

#include <string>

#include "lib/spec/family_list.h"
#include "lib/spec/model_config.h"

namespace trainwright {

/// config.json as transformers 4.x and 5.x read it. A GPT-2 without biases says so by nanoGPT's field `bias`;
/// transformers ignores it and finds zero biases in the weights.
std::string EncodeConfigJson(const ModelConfig& config);

/// Reads transformers' config.json, the 4.x and 5.x spellings (rope_theta and rope_scaling / rope_parameters,
/// rotary_pct / partial_rotary_factor, torch_dtype / dtype). A field that is absent has the value that
/// transformers gives it.
///
/// A field that is known not to change what a model computes is ignored, but for dropout and the deviation
/// of initial weights, which a file that is written from the config has again. is_causal is kept, too: who
/// predicts tokens refuses false by RequireCausal (family.h). Every other field that its family does not
/// compute is refused by name, unless it is null, false, zero or empty.
/// \throws Error{kBadInput} naming `path` and the field
ModelConfig DecodeConfigJson(const FamilyList& families, const std::string& text, const std::string& path);

}  // namespace trainwright
