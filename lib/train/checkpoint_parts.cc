#include "lib/train/checkpoint_parts.h"

#include <ATen/ops/empty.h>

#include <utility>
#include <vector>

#include "lib/documents/folder_template.h"
#include "lib/embedding/embedding_folder.h"
#include "lib/model/embedding_projection.h"
#include "lib/model/hf_folder.h"
#include "lib/model/peft_folder.h"
#include "lib/spec/model_files.h"

namespace trainwright {

std::string DescribeLayout(const FlatParameters& parameters) {
  nlohmann::json layout = nlohmann::json::array();
  for (const Parameter& parameter : parameters.all()) {
    if (parameter.trainable) layout.push_back({parameter.name, parameter.offset, parameter.size});
  }
  return layout.dump();
}

std::string DescribeMatrices(const FlatParameters& parameters, const std::vector<OptimizerState>& states) {
  nlohmann::json matrices = nlohmann::json::array();
  for (const Parameter& parameter : parameters.all()) {
    if (parameter.trainable && parameter.shape.size() == 2)
      matrices.push_back({parameter.offset, parameter.shape[0], parameter.shape[1]});
  }
  nlohmann::json by_state = nlohmann::json::object();
  for (const OptimizerState& state : states) {
    if (state.by_element || state.value.sizes() == parameters.values().sizes()) {
      by_state[state.name] = matrices;
    }
  }
  return by_state.dump();
}

namespace {

/// What is trained beside a base is small enough for one rank.
at::Tensor AdapterValues(const FlatParameters& parameters, const WeightsOutput& weights) {
  if (!parameters.masters_sharded()) return weights.values;
  at::Tensor values = at::empty({parameters.elements()}, at::kFloat);
  weights.read_masters(0, values);
  return values;
}

}  // namespace

CheckpointContent DescribeCheckpoint(const LanguageModel& model, const WeightsOutput& weights,
                                     const TokenizerIdentity& tokenizer, TrainState state,
                                     const nlohmann::ordered_json& provenance,
                                     const CheckpointOptions& options) {
  CheckpointContent content;
  content.step = state.trainer.step;
  content.metadata = {{"resumable", !options.model_only}, {"provenance", provenance}};
  std::vector<std::string> compressed;
  const bool adapters = model.parameters().adapters() != nullptr;
  if (weights.compress && !adapters) compressed.push_back(kWeightsFileName);
  if (options.state.on && !options.model_only) compressed.push_back(kStateFileName);
  if (!compressed.empty()) content.metadata["compressed_files"] = compressed;
  content.parts.push_back([&model, weights, &tokenizer, adapters, base_model = options.base_model,
                           embedding = options.embedding,
                           chat_template = options.chat_template](const std::string& folder) {
    if (adapters) {
      WritePeftFolder(folder, model, base_model, AdapterValues(model.parameters(), weights));
      WriteProjection(folder, model.parameters(), weights);
      if (embedding) WriteEmbeddingSpec(folder, model.config(), *embedding);
    } else {
      WriteHfFolder(folder, model, tokenizer, weights);
      if (embedding) WriteEmbeddingFolder(folder, model.config(), *embedding);
    }
    if (chat_template) WriteFolderTemplate(folder, *chat_template, adapters ? base_model : folder);
  });
  if (options.model_only) return content;
  content.parts.push_back([state = std::move(state), compression = options.state](const std::string& folder) {
    WriteTrainState(folder + "/" + kStateFileName, state, compression);
  });
  return content;
}

}  // namespace trainwright
