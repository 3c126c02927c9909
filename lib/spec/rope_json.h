/// Rotary positions in a config.json.
///
/// Both spellings: transformers 4.x reads rope_theta, rope_scaling and torch_dtype, 5.x rope_parameters and
/// dtype.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "lib/spec/config_fields.h"
#include "lib/spec/model_config.h"

namespace trainwright {

/// \param config has the sizes
/// \param usual what absent fields mean
/// \throws Error{kBadInput}
RopeParameters ReadRope(const ConfigFields& fields, const ModelConfig& config, const RopeParameters& usual);

/// Of a whole head.
void WriteRope(const ModelConfig& config, nlohmann::ordered_json* out);
/// Of partial_rotary_factor of a head, in GPT-NeoX's spelling of 4.x.
void WriteRopeOfAShare(const ModelConfig& config, nlohmann::ordered_json* out);

}  // namespace trainwright
