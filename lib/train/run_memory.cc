#include "lib/train/run_memory.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "lib/base/units.h"
#include "lib/device/device_memory.h"
#include "lib/io/process_memory.h"
#include "lib/memory/memory_advice.h"
#include "lib/memory/training_memory.h"
#include "lib/train/plan_objective.h"
#include "lib/train/run_passes.h"

namespace trainwright {
namespace {

std::vector<Sample> FirstStep(const TrainJobContext& context, const ResolvedRun& run, const TrainPlan& plan,
                              const Objective& objective) {
  const OpenedLoaders apart = OpenLoadersApart(context, run, plan);
  return objective.NextStep(LoadersOf(apart), plan.samples_per_step(), plan.drop_last);
}

/// Of a run with its largest micro-batch among a step's samples; of its first step where there are none.
MemoryParts MemoryOfPasses(const TrainJobContext& context, const ResolvedRun& run, const TrainPlan& plan,
                           const std::vector<Sample>& samples) {
  const MemoryRequest training = MemoryOf(context, run, plan);
  try {
    const auto objective = ObjectiveOf(plan, context.objectives);
    const StepBatches batches =
        LargestMicroBatch(*objective, samples.empty() ? FirstStep(context, run, plan, *objective) : samples,
                          plan.micro_batches(), plan.accum);
    MemoryParts memory = TrainingMemory(context.families, training, PassesOf(*objective, batches));
    memory.representations = objective->HeldBytes(ShapeOfStep(plan), run.model.config);
    return memory;
  } catch (const std::exception&) {  // where memory ran out there may be none to read samples
    return StateMemory(context.families, training);
  }
}

}  // namespace

MemoryUser DescribeMemoryUser(const TrainSettings& settings, const TrainJobContext& context,
                              const ResolvedRun& run, const std::optional<SessionPoint>& point) {
  const TrainPlan& plan = point ? point->plan : run.plan;
  const std::optional<int64_t> cap_bytes = context.process.memory_cap_bytes;
  const bool has_texts = context.objectives.Find(plan.objective).description.sample_tokens != nullptr;
  const std::string sizes =
      plan.max_batch_tokens > 0
          ? "micro-batches of up to " + std::to_string(plan.max_batch_tokens) + " tokens"
          : "micro-batches of " + std::to_string(plan.batch) + " samples of " +
                (has_texts ? "texts of " : "") + "up to " + std::to_string(plan.sequence_tokens) + " tokens";
  const std::string cap = cap_bytes ? "--mem-fraction " + nlohmann::json(*settings.mem_fraction).dump() +
                                          ", " + FormatBytes(static_cast<uint64_t>(*cap_bytes))
                                    : "";
  if (run.loaders.empty()) return {"before the first step", "take a smaller --model", cap};
  // What is held tells too little: it is what did not get its memory that is missing there.
  const MemoryRequest training = MemoryOf(context, run, plan);
  MemoryParts memory = MemoryOfPasses(context, run, plan, point ? point->samples : std::vector<Sample>());
  if (point) memory.snapshot = point->snapshot_bytes;
  memory.loader = MostHeldBytes(LoadersOf(run.loaders));
  const std::string hint =
      "in this order: " + MemoryAdvice(context.families, memory, training, settings.auto_oom);
  const std::string when = settings.dry_run ? "dry run, "
                           : point          ? "step " + std::to_string(point->step + 1) + ", "
                                            : "before the first step, ";
  return {when + sizes, hint, cap};
}

MemoryParts HeldMemory(const ResolvedRun& run, const ModelSetup& setup, const Trainer& trainer,
                       int64_t snapshot_bytes, int64_t peak_bytes) {
  const bool on_cpu = run.compute.device.is_cpu();
  MemoryParts memory = HeldByModel(*setup.model);
  memory.optimizer = trainer.optimizer().state_bytes();
  memory.exchange = trainer.exchange_bytes();
  memory.representations = trainer.objective().HeldBytes(ShapeOfStep(trainer.plan()), setup.model->config());
  memory.loader = MostHeldBytes(LoadersOf(run.loaders));
  memory.snapshot = snapshot_bytes;
  // A GPU's libraries take host memory that came after the model.
  // How much of what is pinned counts as resident is the driver's to say.
  memory.process =
      on_cpu ? setup.runtime_bytes + ResidentFileBytes()
             : std::max<int64_t>(0, ResidentBytes() - memory.loader - memory.snapshot - memory.offloaded);
  if (on_cpu) memory.products = ResidentFreeHeap(memory, FreeHeapBytes(), peak_bytes);
  return memory;
}

}  // namespace trainwright
