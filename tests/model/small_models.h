/// Small models of each family for tests.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "lib/base/rng.h"
#include "lib/model/language_model.h"
#include "lib/spec/gpt2_family.h"
#include "lib/spec/llama_family.h"
#include "lib/spec/mistral_family.h"
#include "lib/spec/neox_family.h"
#include "lib/spec/qwen2_family.h"
#include "tests/model/families.h"

namespace trainwright::test {

inline const Numerics kFp32Numerics{Precision::kFp32, at::kFloat};

inline ModelConfig SmallConfig() {
  ModelConfig config;
  config.family = &LlamaFamily();
  config.vocab_size = 300;
  config.hidden_size = 48;
  config.intermediate_size = 80;
  config.num_layers = 3;
  config.num_heads = config.num_kv_heads = 6;
  config.head_dim = 8;
  config.max_positions = 256;
  return config;
}

/// Three query heads share a key head.
inline ModelConfig SmallLlama() {
  ModelConfig config = SmallConfig();
  config.num_kv_heads = 2;
  return config;
}

inline ModelConfig SmallGpt2(bool bias = true) {
  ModelConfig config = SmallConfig();
  config.family = &Gpt2Family();
  config.activation = bias ? Activation::kGeluTanh : Activation::kGelu;
  if (bias) config.biases = Biases::All();
  config.tie_embeddings = true;
  return config;
}

/// Windows shorter than most documents of the tests.
inline ModelConfig SmallMistral() {
  ModelConfig config = SmallLlama();
  config.family = &MistralFamily();
  config.layer_windows.assign(3, 13);
  return config;
}

/// The last layer has a window.
inline ModelConfig SmallQwen2() {
  ModelConfig config = SmallLlama();
  config.family = &Qwen2Family();
  config.biases.qkv = true;
  config.layer_windows = {0, 0, 20};
  return config;
}

inline ModelConfig SmallBiasedLlama() {
  ModelConfig config = SmallLlama();
  config.biases.qkv = config.biases.attention_out = config.biases.mlp = true;
  return config;
}

/// Frequencies that change with each length beyond 40.
inline ModelConfig SmallDynamicLlama() {
  ModelConfig config = SmallLlama();
  config.rope.type = RopeType::kDynamic;
  config.rope.factor = 3;
  config.rope.original_positions = config.max_positions = 40;
  return config;
}

inline ModelConfig SmallNeox(bool parallel = true) {
  ModelConfig config = SmallConfig();
  config.family = &NeoxFamily();
  config.activation = Activation::kGelu;
  config.biases = Biases::All();
  config.parallel_residual = parallel;
  config.rope.partial_rotary_factor = 0.5;
  return config;
}

/// A model on the CPU whose weights are large enough that every term of the maths shows, norms and biases
/// too.
inline std::unique_ptr<LanguageModel> Lively(std::shared_ptr<Body> body) {
  auto model = std::make_unique<LanguageModel>(std::move(body));
  for (const Parameter& parameter : model->parameters().all()) {
    at::Tensor value = parameter.value;
    const Rng rng(5, "lively/" + parameter.name);
    auto* data = value.mutable_data_ptr<float>();
    for (int64_t i = 0; i < parameter.size; ++i) {
      if (parameter.decay) {
        data[i] *= 5;
      } else {
        data[i] += static_cast<float>(0.2 * rng.Normal(static_cast<uint64_t>(i)));
      }
    }
  }
  model->parameters().RefreshCompute();
  return model;
}

inline std::unique_ptr<LanguageModel> LivelyModel(const ModelConfig& config, const Numerics& numerics) {
  return Lively(MakeBody(config, numerics, at::Device(at::kCPU), 5));
}

}  // namespace trainwright::test
