/// What a training run will take, reported before it starts: memory by category, steps, tokens, time and
/// disk. Of several ranks memory and time are those of one; what they send each other takes no time here.
///
/// Memory is what lib/memory/training_memory.h says about the largest micro-batch of the first steps. Where
/// that fits, the micro-batch is run and an update made, for the time and for what the allocator took
/// besides, and on a GPU its passes are recorded where the run repeats them as graphs; where on a CPU only a
/// sample does, it is run for the time. A model that does not run on shapes says what its passes take once
/// they ran.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/dist/gradient_exchange.h"
#include "lib/loading/sample_loaders.h"
#include "lib/model/model_family.h"
#include "lib/objective/objective_registry.h"
#include "lib/optim/optimizer_registry.h"
#include "lib/run/train_plan.h"
#include "lib/spec/activation_checkpointing.h"
#include "lib/spec/compute_kinds.h"
#include "lib/spec/memory_lever.h"
#include "lib/spec/memory_parts.h"
#include "lib/spec/model_config.h"
#include "lib/spec/offload_choice.h"

namespace trainwright {

/// How the numbers of activations, time and the total came about.
enum class DryRunMeasurement {
  kFullMicroBatch,  ///< the largest of the first steps was run
  kOneSample,       ///< a single sample was run and time scaled, because the micro-batch does not fit
  kShapes,          ///< of a GPU, where it does not fit: from shapes alone, time is missing
  kNone             ///< not even the weights fit: activations and time are missing
};

/// Whether checkpoints are written from a copy: see --async-save.
enum class Snapshot { kNo, kYes, kWhereItFits };

struct DryRunRequest {
  ModelConfig model;
  TrainPlan plan;
  at::Device device = at::Device(at::kCPU);
  int64_t steps = 0;                ///< still to take
  int64_t checkpoints_kept = 0;     ///< that will lie on the disk at once
  bool model_only = false;          ///< whether these lack what a run resumes from
  int64_t step_records = 0;         ///< that metrics.jsonl will get
  int64_t available_bytes = 0;      ///< of memory; 0: what the machine has for this process
  int64_t gpu_available_bytes = 0;  ///< of a GPU's memory; 0: what it has free
  /// Asks what a GPU has free now; null: the driver is asked.
  std::function<int64_t()> free_gpu_bytes = {};
  /// Makes the passes of a model on a GPU be repeated as graphs, as the run will; null: they are not.
  std::function<void(const Objective& objective, LanguageModel* model)> repeat_passes = {};
  ComputeKinds kinds = {};
  Snapshot snapshot = Snapshot::kNo;
  ActivationCheckpointing checkpointing = ActivationCheckpointing::kNo;
  OffloadChoice offload;
  std::string offload_folder;                 ///< of a CPU's
  OptimizerRegistry optimizers{"optimizer"};  ///< holds that of the plan
  ObjectiveRegistry objectives{"objective"};  ///< holds that of the plan
  int64_t bucket_bytes = GradientExchangeOptions().bucket_bytes;
};

struct DryRunReport {
  int64_t parameter_count = 0;  ///< adapters included
  int64_t trainable_count = 0;
  MemoryParts memory;
  int64_t shapes_bytes = 0;         ///< memory.total() as estimated before anything was run; 0: not known
  std::vector<MemoryLever> levers;  ///< that make its largest part smaller
  DryRunMeasurement measurement = DryRunMeasurement::kNone;
  bool on_gpu = false;
  int64_t available_bytes = 0;      ///< of memory, when the dry run began; 0: unknown
  int64_t gpu_available_bytes = 0;  ///< of the GPU's, likewise
  int64_t steps = 0;
  int64_t tokens_per_step = 0;             ///< mean of the first steps
  int64_t micro_batch_tokens = 0;          ///< of the micro-batch that was run
  double micro_batch_s = 0, update_s = 0;  ///< forward and backward; clipping and optimizer
  double step_time_s = 0;                  ///< of a mean step; 0: not measured
  int64_t checkpoint_bytes = 0, disk_bytes = 0;

  /// Of the host's memory and of the GPU's together; 0: the run fits.
  int64_t missing_bytes() const {
    const auto above = [](int64_t need, int64_t available) {
      return available > 0 && need > available ? need - available : 0;
    };
    if (!on_gpu) return above(memory.total(), available_bytes);
    return above(memory.of_model(), gpu_available_bytes) + above(memory.of_host(), available_bytes);
  }
  bool fits() const { return missing_bytes() == 0; }
};

/// Where the weights and their state do not fit, nothing of the model's size is allocated.
/// \param loaders are where the run will begin; they are read from
/// \throws Error{kInterrupted, kTerminated} after a stop signal, looked at between passes
DryRunReport DryRun(const ModelFamilies& families, const DryRunRequest& request,
                    const SampleLoaders& loaders);

/// Aligned tables for people.
std::string FormatDryRun(const DryRunReport& report);
nlohmann::ordered_json EncodeDryRun(const DryRunReport& report);

}  // namespace trainwright
