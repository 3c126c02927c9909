/// A small model of bytes for tests of evaluation and generation.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "lib/model/hf_folder.h"
#include "lib/model/language_model.h"
#include "lib/spec/llama_family.h"
#include "lib/tok/tokenizer.h"
#include "tests/model/families.h"

namespace trainwright::test {

inline std::unique_ptr<LanguageModel> BytesModel(int64_t context = 64,
                                                 Precision precision = Precision::kFp32) {
  ModelConfig config;
  config.family = &LlamaFamily();
  config.vocab_size = 258;
  config.hidden_size = 32;
  config.intermediate_size = 64;
  config.num_layers = 2;
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.head_dim = 8;
  config.max_positions = context;
  config.tie_embeddings = true;
  auto model = MakeModel(test::Families(), config, precision, at::kCPU, 11);
  // Large weights: predictions that differ by context, so that greedy decoding does not settle at once.
  for (const Parameter& parameter : model->parameters().all()) {
    at::Tensor value = parameter.value;
    if (parameter.decay) value.mul_(12);
  }
  model->parameters().RefreshCompute();
  return model;
}

/// A folder as train leaves it.
inline void WriteModel(const std::string& folder) {
  std::filesystem::create_directories(folder);
  WriteHfFolder(folder, *BytesModel(), LoadTokenizer("bytes")->identity());
}

}  // namespace trainwright::test
