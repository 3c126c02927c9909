/// What a training run will take, told before it starts: memory by category, steps, tokens, time and disk.
///
/// On a CPU nothing is guessed from formulas of its own: the real model and optimizer are made, the largest
/// micro-batch of the first steps is run and an update made, and then each object says what it holds. Only
/// where that would not fit into memory is a smaller micro-batch measured and scaled.
///
/// Of a GPU the same objects say it before anything is put there, from shapes alone: the model runs on
/// torch's meta device, which allocates and computes nothing. Only attention's scratch is a formula
/// (AttentionWorkspaceBytes). Where that fits, the micro-batch is run on the GPU too, for the time and for
/// what its allocator took besides.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "lib/loading/packed_batch.h"
#include "lib/loading/sample_stream.h"
#include "lib/model/model_family.h"
#include "lib/objective/objective_registry.h"
#include "lib/optim/optimizer_registry.h"
#include "lib/run/train_plan.h"
#include "lib/spec/activation_checkpointing.h"
#include "lib/spec/model_config.h"
#include "lib/spec/offload_choice.h"

namespace trainwright {

/// Bytes at the peak of training.
struct MemoryNeeds {
  int64_t parameters = 0, gradients = 0, optimizer = 0;
  int64_t compute_copy = 0;  ///< trained weights in the short type
  int64_t frozen = 0;        ///< weights that are not trained
  int64_t activations = 0;   ///< what the backward pass needs, and its temporaries
  int64_t logits = 0;        ///< a slice of logits and its neighbours
  int64_t attention = 0;     ///< scratch of a GPU's attention kernel
  int64_t snapshot = 0;      ///< the copy that checkpoints are written from in the background
  int64_t loader = 0;        ///< samples in use and ready
  int64_t products = 0;      ///< peak of what is left: packed operands of products, the allocator's slack
  int64_t process = 0;       ///< code, libraries and the data set's tables, before a model was made
  /// What lies where the model computes; the rest is always the host's.
  int64_t of_model() const {
    return parameters + gradients + optimizer + compute_copy + frozen + activations + logits + attention +
           products;
  }
  int64_t of_host() const { return snapshot + loader + process; }
  int64_t total() const { return of_model() + of_host(); }
};

/// How the numbers of activations, time and the total came about.
enum class Measurement {
  kFullMicroBatch,  ///< the largest of the first steps was run
  kOneSample,       ///< a single sample was run and scaled, because the micro-batch does not fit
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
  int64_t step_records = 0;         ///< that metrics.jsonl will get
  int64_t available_bytes = 0;      ///< of memory; 0: what the machine has for this process
  int64_t gpu_available_bytes = 0;  ///< of a GPU's memory; 0: what it has free
  AttentionBackend attention = AttentionBackend::kAuto;
  Snapshot snapshot = Snapshot::kNo;
  ActivationCheckpointing checkpointing = ActivationCheckpointing::kNo;
  OffloadChoice offload;
  std::string offload_folder;                 ///< of a CPU's
  OptimizerRegistry optimizers{"optimizer"};  ///< holds that of the plan
  ObjectiveRegistry objectives{"objective"};  ///< holds that of the plan
};

struct DryRunReport {
  int64_t parameter_count = 0;  ///< adapters included
  int64_t trainable_count = 0;
  MemoryNeeds memory;
  Measurement measurement = Measurement::kNone;
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

/// A part of the memory that a run takes, and how it becomes smaller.
struct MemoryPart {
  const char* name;  ///< as in the encoded report
  int64_t size_bytes;
  const char* advice;  ///< names the flags to change
};
/// The part that takes most among those that flags change (the process itself is not); of equal ones the
/// first in MemoryNeeds.
MemoryPart LargestPart(const MemoryNeeds& needs);

/// What the model, its optimizer and a micro-batch take on a GPU (of_model() without `products`), told
/// without one.
/// \param request its device is a GPU; its model, plan and attention count
MemoryNeeds GpuNeeds(const ModelFamilies& families, const DryRunRequest& request,
                     const PackedBatch& micro_batch);

/// Where the weights and their state do not fit, nothing of the model's size is allocated.
/// \param stream stands where the run will begin; it is read from
DryRunReport DryRun(const ModelFamilies& families, const DryRunRequest& request, SampleStream* stream);

/// Aligned tables for people.
std::string FormatDryRun(const DryRunReport& report);
nlohmann::ordered_json EncodeDryRun(const DryRunReport& report);

}  // namespace trainwright
