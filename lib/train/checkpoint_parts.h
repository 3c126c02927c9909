/// What the files of a run's checkpoint hold: model, adapters, tokenizer and training state as the parts of a
/// CheckpointContent.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/checkpoint/checkpoint.h"
#include "lib/documents/chat_template.h"
#include "lib/embedding/embedding_spec.h"
#include "lib/formats/tokenizer_identity.h"
#include "lib/model/language_model.h"
#include "lib/model/weights_io.h"
#include "lib/train/train_state.h"

namespace trainwright {

/// The layout text of a model.
std::string DescribeLayout(const FlatParameters& parameters);
/// TrainState::matrices of a model: its two-dimensional parameters, in each state that is laid out as they
/// are.
std::string DescribeMatrices(const FlatParameters& parameters, const std::vector<OptimizerState>& states);

struct CheckpointOptions {
  StateCompression state;
  bool model_only = false;  ///< without the state: no run resumes from it
  /// Of a model with adapters: the folder of its base, which adapter_config.json names.
  std::string base_model = {};
  std::optional<EmbeddingSpec> embedding = {};         ///< of a model that embeds texts
  std::optional<ChatTemplate> chat_template = {};      ///< in Jinja, for conversations with the model
  nlohmann::ordered_json generation_before = nullptr;  ///< as of EncodeGenerationConfig
};

/// The content of a run's checkpoint after state.trainer.step. What it refers to must outlive its writing.
/// \param weights where it has values, another thread may train the model meanwhile
/// \param provenance goes into metadata.json
CheckpointContent DescribeCheckpoint(const LanguageModel& model, const WeightsOutput& weights,
                                     const TokenizerIdentity& tokenizer, TrainState state,
                                     const nlohmann::ordered_json& provenance,
                                     const CheckpointOptions& options = {});

}  // namespace trainwright
