/// Where the memory of a run is, by what holds it, and what to change when there is not enough.
///
/// Nothing is a remainder: every part is counted by what holds it, and the peak beside them by the system (on
/// a GPU, by torch's allocator), so that the difference of the two is what nobody accounts for: what was held
/// for a moment only, within a step or a save.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "lib/model/model_family.h"
#include "lib/optim/optimizer_registry.h"
#include "lib/run/train_plan.h"

namespace trainwright {

/// Bytes.
struct MemoryBreakdown {
  int64_t params = 0;  ///< weights: masters, copies in the short type, frozen ones
  int64_t grads = 0;
  int64_t optimizer = 0;    ///< its state
  int64_t activations = 0;  ///< what the passes keep and their scratch, a slice of logits among it
  int64_t loader = 0;       ///< samples in use and ready
  int64_t snapshot = 0;     ///< the copy that checkpoints are written from
  int64_t runtime = 0;      ///< code and mapped files, and what the process had before it made a model
  int64_t heap =
      0;  ///< on a CPU: what the allocator keeps of what was freed, packed operands of products first
  int64_t total() const {
    return params + grads + optimizer + activations + loader + snapshot + runtime + heap;
  }
  bool operator==(const MemoryBreakdown&) const = default;
};

/// What a model, its gradients and its passes hold now; the rest is left 0.
MemoryBreakdown HeldByModel(LanguageModel& model);
/// What the passes of a micro-batch take, from shapes alone, beside what the model and its moments hold;
/// nothing is allocated.
/// \returns what is known: of families that have no shapes to run on, without activations
MemoryBreakdown NeededByModel(const ModelFamilies& families, const ModelConfig& config, const TrainPlan& plan,
                              const OptimizerRegistry& optimizers, ActivationCheckpointing checkpointing,
                              const OffloadChoice& offload);

/// The parts in order of size and what makes each smaller, the largest weights by name:
/// "activations, 3.1 GB: ...; weights, 1.2 GB, the largest model.embed_tokens.weight [32000, 2048]: ...".
/// \param states, checkpointing, offload in force: what is taken already is not advised
std::string MemoryAdvice(const MemoryBreakdown& memory, const FlatParameters& parameters,
                         OptimizerStates states, ActivationCheckpointing checkpointing,
                         const OffloadChoice& offload, bool auto_oom);

/// The parts, their total and the measured peak, for metrics.jsonl.
nlohmann::ordered_json EncodeMemory(const MemoryBreakdown& memory, int64_t peak_bytes);
/// The same for people, largest first, in a line.
std::string FormatMemory(const MemoryBreakdown& memory, int64_t peak_bytes);

}  // namespace trainwright
