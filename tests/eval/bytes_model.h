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
#include "tests/support/support.h"

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

/// The files of sentence-transformers beside a model: the last token is pooled.
/// \param prompts of its configuration, as JSON
inline void WriteSentenceTransformer(const std::string& folder, const std::string& prompts) {
  std::filesystem::create_directories(folder + "/1_Pooling");
  WriteFile(folder + "/modules.json",
            R"json([{"path": "", "type": "sentence_transformers.models.Transformer"},
                {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])json");
  WriteFile(folder + "/1_Pooling/config.json", R"json({"pooling_mode_lasttoken": true})json");
  WriteFile(folder + "/config_sentence_transformers.json",
            "{\"prompts\": " + prompts + ", \"default_prompt_name\": null}");
}

}  // namespace trainwright::test
