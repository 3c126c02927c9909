/// Small models of each family for tests.
#pragma once

#include <memory>
#include <string>

#include "lib/base/rng.h"
#include "lib/model/gpt2.h"
#include "lib/model/llama.h"

namespace trainwright::test {

inline const Numerics kFp32Numerics{Precision::kFp32, at::kFloat};

inline ModelConfig SmallConfig() {
  ModelConfig config;
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
  config.family = ModelFamily::kGpt2;
  config.activation = bias ? Activation::kGeluTanh : Activation::kGelu;
  config.bias = bias;
  config.tie_embeddings = true;
  return config;
}

/// A model on the CPU whose weights are large enough that every term of the maths shows, norms and biases
/// too.
inline std::unique_ptr<LanguageModel> LivelyModel(const ModelConfig& config, const Numerics& numerics) {
  const at::Device cpu(at::kCPU);
  std::unique_ptr<LanguageModel> model;
  if (config.family == ModelFamily::kGpt2) {
    model = std::make_unique<Gpt2>(config, numerics, cpu, 5);
  } else {
    model = std::make_unique<Llama>(config, numerics, cpu, 5);
  }
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

}  // namespace trainwright::test
