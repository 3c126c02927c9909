#include "lib/train/checkpoint_parts.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "lib/documents/folder_template.h"
#include "lib/embedding/embedding_folder.h"
#include "lib/model/embedding_projection.h"
#include "lib/model/hf_folder.h"
#include "lib/model/peft_folder.h"
#include "lib/optim/optimizer.h"
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
  if (!weights.reads_all && !parameters.masters_sharded()) return weights.values;
  at::Tensor values = at::empty({parameters.elements()}, at::kFloat);
  weights.read_masters(0, values);
  return values;
}

/// Where the moving average of the weights is among a state's tensors; nothing where it has none, or no
/// update was made.
std::optional<size_t> FindAverage(const TrainState& state) {
  const std::vector<OptimizerState>& states = state.trainer.optimizer;
  const auto found = std::find_if(states.begin(), states.end(),
                                  [](const OptimizerState& own) { return own.name == kAverageState; });
  if (found == states.end() || state.trainer.updates == 0) return std::nullopt;
  return static_cast<size_t>(found - states.begin());
}

/// Writes a state by_element in the place of the weights. One that is spread over the ranks is read as it is
/// written.
WeightsOutput OutputOf(const ShardedStates& sharded, size_t index, const at::Tensor& value,
                       WeightsOutput output) {
  if (!sharded.read) {
    output.values = value.cpu();
    return output;
  }
  output.reads_all = true;
  output.read_masters = [read = sharded.read, index](int64_t begin, at::Tensor out) {
    read(index, begin, std::move(out));
  };
  return output;
}

/// What a folder of a model is made of besides its weights.
struct FolderParts {
  std::string base_model;
  std::optional<EmbeddingSpec> embedding;
  std::optional<ChatTemplate> chat_template;
  nlohmann::ordered_json generation_before;
};

void WriteModelFolder(const std::string& folder, const LanguageModel& model, const WeightsOutput& weights,
                      const TokenizerIdentity& tokenizer, const FolderParts& parts) {
  const bool adapters = model.parameters().adapters() != nullptr;
  if (adapters) {
    WritePeftFolder(folder, model, parts.base_model, AdapterValues(model.parameters(), weights));
    WriteProjection(folder, model.parameters(), weights);
    if (parts.embedding) WriteEmbeddingSpec(folder, model.config(), *parts.embedding);
  } else {
    WriteHfFolder(folder, model, tokenizer, weights, parts.generation_before);
  }
  if (parts.chat_template) {
    WriteFolderTemplate(folder, *parts.chat_template, adapters ? parts.base_model : folder);
  }
  // Behind it: where texts to embed and conversations ask the tokenizer for different marks, the former win,
  // for the provenance has those of the latter.
  if (parts.embedding && !adapters) WriteEmbeddingFolder(folder, model.config(), *parts.embedding);
}

/// It says all that the checkpoint does of how its weights came about, so that tools take it for the model
/// that was trained.
nlohmann::ordered_json MetadataOfAverage(int64_t step, const nlohmann::ordered_json& provenance,
                                         bool compressed) {
  nlohmann::ordered_json metadata;
  if (compressed) metadata["compressed_files"] = nlohmann::ordered_json::array({kWeightsFileName});
  metadata["provenance"] = {{"made_by", "ema"}, {"step", step}};
  metadata["provenance"].update(provenance);
  return metadata;
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
  if (weights.compress && !adapters) {
    compressed.push_back(kWeightsFileName);
    if (FindAverage(state)) compressed.push_back(std::string(kAverageState) + "/" + kWeightsFileName);
  }
  if (options.state.on && !options.model_only) compressed.push_back(kStateFileName);
  if (!compressed.empty()) content.metadata["compressed_files"] = compressed;
  const FolderParts parts = {options.base_model, options.embedding, options.chat_template,
                             options.generation_before};
  content.parts.push_back([&model, weights, &tokenizer, parts](const std::string& folder) {
    WriteModelFolder(folder, model, weights, tokenizer, parts);
  });
  if (const std::optional<size_t> average = FindAverage(state)) {
    content.models[kAverageState] =
        MetadataOfAverage(content.step, provenance, !adapters && weights.compress);
    content.parts.push_back([&model, weights, &tokenizer, parts, index = *average, sharded = state.sharded,
                             value = state.trainer.optimizer[*average].value](const std::string& folder) {
      const std::string of_average = folder + "/" + kAverageState;
      std::filesystem::create_directories(of_average);
      WriteModelFolder(of_average, model, OutputOf(sharded, index, value, weights), tokenizer, parts);
    });
  }
  if (options.model_only) return content;
  content.parts.push_back([state = std::move(state), compression = options.state](const std::string& folder) {
    WriteTrainState(folder + "/" + kStateFileName, state, compression);
  });
  return content;
}

}  // namespace trainwright
