/// What training takes, estimated before it starts and from shapes alone: the one model of --dry-run,
/// --find-batch, gpu-probe's advice and what is advised where memory ran out.
///
/// Nothing is guessed from formulas of its own: the real model and optimizer run on torch's meta device,
/// which allocates and computes nothing, and each object says what it holds. Only attention's scratch on a
/// GPU is a formula (AttentionWorkspaceBytes), and what GEMMs leave behind on a CPU is estimated. The
/// host's parts are the caller's to add, but for what a GPU offloads.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "lib/dist/gradient_exchange.h"
#include "lib/model/model_family.h"
#include "lib/nn/precision.h"
#include "lib/optim/optimizer_registry.h"
#include "lib/spec/activation_checkpointing.h"
#include "lib/spec/compute_kinds.h"
#include "lib/spec/fine_tuning.h"
#include "lib/spec/memory_parts.h"
#include "lib/spec/model_config.h"
#include "lib/spec/offload_choice.h"
#include "lib/spec/optimizer_options.h"
#include "lib/spec/sharding.h"

namespace trainwright {

/// What of a run the memory depends on, beside its micro-batches.
struct MemoryRequest {
  ModelConfig model;
  Precision precision = Precision::kFp32;
  at::Device device = at::Device(at::kCPU);
  FineTuning tuning = {};
  OptimizerOptions optimizer = {};
  ActivationCheckpointing checkpointing = ActivationCheckpointing::kNo;
  int64_t tbptt = 0;  ///< see LanguageModel::set_tbptt
  OffloadChoice offload = {};
  ComputeKinds kinds = {};
  OptimizerRegistry optimizers{"optimizer"};  ///< holds that of `optimizer`
  int64_t ranks = 1;
  Sharding sharding = Sharding::kNone;    ///< among the ranks; what the one holds that has most is reported
  bool gives_gradients_away = false;      ///< see FlatParameters::Shard
  GradientExchangeOptions exchange = {};  ///< between ranks, and of leaves
  /// What the objective says that its options could do; see ObjectiveDescription::memory_levers.
  std::vector<MemoryLever> objective_levers = {};
};

/// The passes of a micro-batch.
struct MicroBatchPasses {
  std::function<void(LanguageModel*)> run;  ///< on a model that computes, or on shapes alone
  std::vector<int32_t> span_starts;         ///< of what they compute on, the number of its tokens last

  int64_t num_tokens() const { return span_starts.empty() ? 0 : span_starts.back(); }
};

/// Samples of one length, each a span, with a label for every token.
ModelInput EqualSamples(int64_t samples, int64_t sequence_tokens);

/// The model of a request without memory for anything: its tensors have shapes alone, and its passes do
/// nothing else.
std::unique_ptr<LanguageModel> ShapesOf(const ModelFamilies& families, const MemoryRequest& request);

/// Weights and the state that goes with them; the parts of the passes are 0.
MemoryParts StateMemory(const ModelFamilies& families, const MemoryRequest& request);
/// What copies of a checkpoint's tensors take of the host's memory, pinned where they are a GPU's.
int64_t SnapshotBytes(const ModelFamilies& families, const MemoryRequest& request);
/// With the passes of a micro-batch, those of a language model's loss where only its input is given. On a GPU
/// `products` is the workspace of the GEMMs with epilogues, where the model has some; what the library takes
/// for others only a run there shows.
/// \throws Error{kDevice} on a GPU of a family that has no kernels for it
MemoryParts TrainingMemory(const ModelFamilies& families, const MemoryRequest& request,
                           const MicroBatchPasses& passes);
MemoryParts TrainingMemory(const ModelFamilies& families, const MemoryRequest& request,
                           const ModelInput& micro_batch);
/// What a model, its gradients and its passes hold now.
MemoryParts HeldByModel(LanguageModel& model);

}  // namespace trainwright
