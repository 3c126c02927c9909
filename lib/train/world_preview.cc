#include "lib/train/world_preview.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/units.h"
#include "lib/memory/training_memory.h"
#include "lib/scaling/pass_costs.h"
#include "lib/scaling/world_estimates.h"
#include "lib/scaling/world_report.h"
#include "lib/spec/family.h"
#include "lib/train/plan_objective.h"
#include "lib/train/run_passes.h"

namespace trainwright {
namespace {

/// The adapters that are advised where nothing else fits.
constexpr int64_t kAdvisedLoraRank = 16;

FineTuning AdvisedAdapters(const FineTuning& asked) {
  return {.lora = LoraOptions{.rank = kAdvisedLoraRank, .alpha = 2 * kAdvisedLoraRank},
          .frozen_format = WeightFormat::kNf4,
          .embedding = asked.embedding};
}

std::vector<int64_t> SegmentsOf(const ModelFamilies& families, const MemoryRequest& training) {
  const auto shapes = ShapesOf(families, training);
  std::vector<int64_t> elements;
  for (const GradientBuffer::Segment& segment : shapes->parameters().gradient_buffer().segments()) {
    elements.push_back(segment.end - segment.begin);
  }
  return elements;
}

/// Of a run in one process, which makes none: what FlatParameters::Shard makes copies of.
std::vector<ElementRange> Fp32CopiesOf(const ModelFamilies& families, const MemoryRequest& training) {
  std::vector<ElementRange> copies;
  if (training.precision == Precision::kFp32) return copies;
  for (const Parameter& parameter : ShapesOf(families, training)->parameters().all()) {
    if (!parameter.trainable || parameter.of_products) continue;
    copies.push_back({.begin = parameter.offset, .end = parameter.offset + parameter.size});
  }
  return copies;
}

TokenCounts CountsOf(const StepWork& work) {
  return {.tokens = work.tokens, .labels = work.labels, .attention_pairs = work.attention_pairs};
}

/// Of a micro-batch as long as it can be.
PassCosts FlopsOf(const Objective& objective, const ResolvedRun& run, const PackedBatch& micro_batch,
                  const WorldRequest& request) {
  const ModelConfig& config = run.model.config;
  PassCosts flops = CountPassFlops(config, run.plan.tuning, request.passes.checkpointing,
                                   CountsOf(objective.WorkOf(micro_batch, config)),
                                   std::max<size_t>(1, request.plan.segment_elements.size()));
  if (run.plan.accum == 1) return flops;
  TokenCounts again = CountsOf(objective.ForwardAgain(micro_batch, config));
  again.labels = 0;  // the head takes no part in it
  const auto micro_batches = static_cast<double>(run.plan.accum);
  flops.forward += CountPassFlops(config, {}, ActivationCheckpointing::kNo, again, 1).forward *
                   (micro_batches - 1) / micro_batches;
  return flops;
}

/// Sets what a rank computes, and where it is known from.
void TellCosts(const WorldSettings& world, const Objective& objective, const ResolvedRun& run,
               const DryRunReport* measured, WorldRequest* request) {
  const PackedBatch micro_batch =
      objective.LongestBatch(request->passes.batch, request->passes.sequence_tokens);
  request->batch_tokens = micro_batch.num_tokens();
  const PassCosts flops = FlopsOf(objective, run, micro_batch, *request);
  StepCosts& costs = request->costs;
  if (world.device_tflops) {
    costs.passes_s = flops.ScaledTo(flops.total() / (*world.device_tflops * 1e12));
    request->computing = "A rank does " + FormatFixed(*world.device_tflops, 1) +
                         "e12 operations a second, those that are done again included; the update's time is "
                         "not counted.";
  } else if (measured != nullptr && measured->micro_batch_s > 0 && measured->micro_batch_tokens > 0) {
    costs.passes_s = flops.ScaledTo(measured->micro_batch_s * static_cast<double>(request->batch_tokens) /
                                    static_cast<double>(measured->micro_batch_tokens));
    costs.update_s = measured->update_s;
    request->computing = "A rank computes as fast as measured here: a micro-batch of " +
                         FormatCount(static_cast<double>(measured->micro_batch_tokens)) + " tokens in " +
                         FormatDuration(measured->micro_batch_s) + ", an update in " +
                         FormatDuration(measured->update_s) + ".";
  } else {
    costs.passes_s = flops.ScaledTo(0);
    request->computing = "How fast a rank computes is not known: --device-tflops says it.";
  }
}

/// How long samples are taken to be.
void TellLengths(const TrainJobContext& context, const TrainPlan& plan, WorldRequest* request) {
  const ObjectiveDescription& objective = context.objectives.Find(plan.objective).description;
  const std::string tokens = std::to_string(plan.sequence_tokens);
  if (!objective.sample_tokens) {
    request->samples = "every sample has " + tokens + " tokens";
    return;
  }
  request->length_flags = objective.sample_flags;
  request->samples = "every text is as long as " + objective.sample_flags + " allow, which is " +
                     std::to_string(request->batch_tokens / plan.batch) + " tokens a sample";
}

/// Sets what a rank gives to others besides gradients and weights, and keeps of that.
/// \param objective outlives the request
void TellVectors(const Objective& objective, const ModelConfig& model, const TrainPlan& plan,
                 WorldRequest* request) {
  const auto shape_on = [plan](int64_t ranks, int64_t batch) {
    return StepShape{.samples_of_rank = plan.samples_per_rank(),
                     .samples_of_step = plan.samples_per_rank() * ranks,
                     .ranks = ranks,
                     .micro_batch = batch};
  };
  // What one rank gives is the same among any number of them.
  request->plan.gathered_bytes = objective.GatheredBytes(shape_on(2, plan.batch), model);
  request->vectors_of = [&objective, &model, shape_on](int64_t ranks, const PassesChoice& passes) {
    return objective.HeldBytes(shape_on(ranks, passes.batch), model);
  };
}

/// Sets what a rank has, and what a run of one process takes of it.
/// \param objective outlives the request
void TellMemory(const WorldSettings& world, const ModelFamilies& families, MemoryRequest training,
                const Objective& objective, int64_t samples_of_rank, const DryRunReport* measured,
                WorldRequest* request) {
  const bool on_gpu = !training.device.is_cpu();
  MemoryParts host;
  if (measured != nullptr) {
    host = {.snapshot = measured->memory.snapshot,
            .loader = measured->memory.loader,
            .process = measured->memory.process};
  }
  if (world.memory_bytes > 0) {
    request->memory_bytes = world.memory_bytes;
    request->device = "a GPU with " + FormatBytes(static_cast<uint64_t>(world.memory_bytes));
  } else {
    TRAINWRIGHT_CHECK(measured != nullptr);
    request->memory_bytes = on_gpu ? measured->gpu_available_bytes : measured->available_bytes;
    request->device = on_gpu ? "a GPU like this machine's" : "a machine like this one";
  }
  request->counts_host = !on_gpu;
  request->memory_of = [&, training, samples_of_rank, host](const PassesChoice& passes) {
    MemoryRequest asked = training;
    asked.checkpointing = passes.checkpointing;
    if (passes.adapters) asked.tuning = AdvisedAdapters(training.tuning);
    const StepBatches longest =
        StepBatchesOf(objective, objective.LongestBatch(passes.batch, passes.sequence_tokens),
                      samples_of_rank / passes.batch);
    MemoryParts parts = TrainingMemory(families, asked, PassesOf(objective, longest));
    parts.snapshot = host.snapshot;
    parts.loader = host.loader;
    parts.process = host.process;
    return parts;
  };
}

}  // namespace

bool IsOnPaperAlone(const WorldSettings& world) {
  return world.memory_bytes > 0 && world.device_tflops.has_value();
}

WorldPreview PreviewWorlds(const WorldSettings& world, const TrainJobContext& context, const ResolvedRun& run,
                           const DryRunReport* measured) {
  const TrainPlan& plan = run.plan;
  MemoryRequest training = MemoryOf(context, run, plan);
  training.ranks = 1;
  training.sharding = Sharding::kNone;
  if (world.memory_bytes > 0 && training.device.is_cpu()) {
    training.device = at::Device(at::kCUDA);
    training.kinds.attention = training.kinds.equal_spans = AttentionBackend::kAuto;
    training.kinds.head_slice_logits = 0;
  }
  WorldRequest request = {
      .worlds = world.worlds,
      .link = world.link,
      .plan = {.sharding = static_cast<Sharding>(plan.zero),
               .accumulation = plan.zero_accumulation,
               .accum = plan.accum,
               .bucket_bytes = world.bucket_bytes,
               .exact_leaves = plan.exact_world,
               .fp32_copies = Fp32CopiesOf(context.families, training),
               .segment_elements = SegmentsOf(context.families, training)},
      .passes = {.batch = plan.batch,
                 .sequence_tokens = plan.sequence_tokens,
                 .checkpointing = run.compute.checkpointing},
      .knows_adapters =
          !plan.tuning.lora && !FamilyOf(run.model.config).LayerMatrices(run.model.config).empty()};
  const std::unique_ptr<Objective> objective = ObjectiveOf(plan, context.objectives);
  TellMemory(world, context.families, training, *objective, plan.samples_per_rank(), measured, &request);
  TellCosts(world, *objective, run, measured, &request);
  TellLengths(context, plan, &request);
  TellVectors(*objective, run.model.config, plan, &request);
  const MemoryParts alone = request.memory_of(request.passes);
  if (alone.compute_copy > 0) request.plan.weight_bytes = 4 * alone.compute_copy / alone.parameters;
  const WorldEstimates estimates = EstimateWorlds(request);
  return {.text = FormatWorlds(request, estimates),
          .json = EncodeWorlds(request, estimates),
          .fits = estimates.fits()};
}

}  // namespace trainwright
