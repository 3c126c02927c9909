/// GPT-2: learned positions, LayerNorm before each block, GELU, biases or none (nanoGPT).
/// \source Radford et al. 2019, "Language Models are Unsupervised Multitask Learners"; the names of
/// tensors are those of transformers' GPT2LMHeadModel
#pragma once

#include <cstdint>
#include <optional>

#include "lib/model/gelu_transformer.h"

namespace trainwright {

class Gpt2 final : public GeluTransformer {
 public:
  /// As MakeBody.
  Gpt2(const ModelConfig& config, const Numerics& numerics, at::Device device, std::optional<uint64_t> seed,
       const FineTuning& tuning = {});
};

}  // namespace trainwright
