/// A model small enough to count its operations by hand.
#pragma once

#include "lib/spec/llama_family.h"
#include "lib/spec/model_config.h"

namespace trainwright::test {

/// A Llama of two layers, 8 wide, 4 heads of 2 with 2 of keys, 16 in the MLP: q and o are 8x8, k and v 8x4,
/// the MLP's three 8x16, 576 in all.
inline ModelConfig TwoLayers() {
  ModelConfig config;
  config.family = &LlamaFamily();
  config.vocab_size = 10;
  config.hidden_size = 8;
  config.intermediate_size = 16;
  config.num_layers = 2;
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.head_dim = 2;
  config.max_positions = 16;
  return config;
}

}  // namespace trainwright::test
