/// GPT-NeoX: rotary positions of a part of each head, LayerNorm, GELU, attention and MLP beside each other or
/// one after the other. \source Black et al. 2022, arXiv:2204.06745; the names of tensors are those of
/// transformers' GPTNeoXForCausalLM, whose query_key_value holds the rows of each head's query, key and value
/// together
#pragma once

#include <cstdint>
#include <optional>

#include "lib/model/gelu_transformer.h"

namespace trainwright {

class Neox final : public GeluTransformer {
 public:
  /// As MakeBody.
  Neox(const ModelConfig& config, const Numerics& numerics, at::Device device, std::optional<uint64_t> seed,
       const FineTuning& tuning = {});
};

}  // namespace trainwright
