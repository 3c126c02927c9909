/// What a session's checkpoints hold: weights, training state, and how the run goes for metadata.json.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/dist/shard_reader.h"
#include "lib/documents/chat_template.h"
#include "lib/embedding/embedding_spec.h"
#include "lib/model/language_model.h"
#include "lib/run/training_history.h"
#include "lib/train/resolved_run.h"
#include "lib/train/run_listener.h"
#include "lib/train/saver.h"
#include "lib/train/trainer.h"

namespace trainwright {

/// What of a checkpoint is fixed while one process works on a run.
struct CheckpointFacts {
  nlohmann::ordered_json provenance;  ///< goes into metadata.json
  std::string base_folder;            ///< of adapters
  bool compress_state = false, compress_model = false, model_only = false;
  std::chrono::steady_clock::time_point start;         ///< of the process
  int64_t first_step = 0, tokens_before = 0;           ///< of the run when the process began
  std::optional<EmbeddingSpec> embedding = {};         ///< of an objective that trains a model to embed
  std::optional<ChatTemplate> chat_template = {};      ///< in Jinja, for conversations with the model
  nlohmann::ordered_json generation_before = nullptr;  ///< as of EncodeGenerationConfig
};

/// What a rank has of a checkpoint's tensors that are sharded: the masters, and each of the optimizer's
/// states after them. Undefined are those that each rank has whole.
std::vector<at::Tensor> ShardsOfCheckpoint(const LanguageModel& model, const Optimizer& optimizer);

class RunCheckpointSource final : public CheckpointSource {
 public:
  /// All that is pointed to outlives it.
  /// \param shards null where nothing is sharded; else checkpoints are written within its work on
  ///     ShardsOfCheckpoint
  RunCheckpointSource(const ResolvedRun* run, LanguageModel* model, Trainer* trainer,
                      const TrainingHistory* history, const RunListener* listener, CheckpointFacts facts,
                      ShardReader* shards = nullptr);
  std::vector<at::Tensor> LiveTensors() override;
  bool allows_copies() const override { return shards_ == nullptr; }
  CheckpointContent Describe(const std::vector<at::Tensor>& tensors, bool are_copies) override;
  void DescribeEvaluation(nlohmann::ordered_json* metadata) const override;

 private:
  /// Fields of metadata.json that say how the run goes, with what is volatile of them.
  nlohmann::ordered_json DescribeRun() const;
  void DescribeEnd(nlohmann::ordered_json* metadata) const;

  const ResolvedRun* run_;
  LanguageModel* model_;
  Trainer* trainer_;
  const TrainingHistory* history_;
  const RunListener* listener_;
  CheckpointFacts facts_;
  ShardReader* shards_;
  std::string layout_, matrices_;  // of the state
};

}  // namespace trainwright
