#include "lib/train/dry_run.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/base/signals.h"
#include "lib/base/units.h"
#include "lib/device/device_memory.h"
#include "lib/device/host_read.h"
#include "lib/io/process_memory.h"
#include "lib/memory/memory_advice.h"
#include "lib/memory/training_memory.h"
#include "lib/model/initialize.h"
#include "lib/optim/clip.h"
#include "lib/optim/device_step.h"
#include "lib/report/table.h"
#include "lib/train/plan_objective.h"
#include "lib/train/run_passes.h"

namespace trainwright {
namespace {

constexpr int64_t kMostStepsRead = 64, kMostTokensRead = int64_t{1} << 21;
/// A step's record in metrics.jsonl and in TensorBoard's events.
constexpr int64_t kStepRecordBytes = 830;
/// What grows with neither model nor steps: of a checkpoint, and of the run directory.
constexpr int64_t kCheckpointFilesBytes = int64_t{1} << 14, kRunFilesBytes = int64_t{1} << 15;

/// What the first steps hold.
struct FirstSteps {
  StepBatches largest;     ///< micro-batch
  StepBatches one_sample;  ///< the largest sample of it
  int64_t steps = 0, tokens = 0;
};

/// Of the only micro-batch.
int64_t TokensOf(const StepBatches& batches) {
  return batches.micro_batches.empty() ? 0 : batches.micro_batches.front().num_tokens();
}

/// Of all ranks.
std::vector<std::span<const Sample>> MicroBatchesOfStep(const TrainPlan& plan,
                                                        std::span<const Sample> samples) {
  std::vector<std::span<const Sample>> all;
  const auto own = static_cast<size_t>(plan.samples_per_rank());
  for (size_t begin = 0; begin < samples.size(); begin += own) {
    const auto of_rank = DivideSamples(samples.subspan(begin, own), plan.micro_batches());
    all.insert(all.end(), of_rank.begin(), of_rank.end());
  }
  return all;
}

FirstSteps ReadFirstSteps(const TrainPlan& plan, const Objective& objective, int64_t steps,
                          const SampleLoaders& loaders) {
  FirstSteps first;
  while (first.steps < std::min(steps, kMostStepsRead) && first.tokens < kMostTokensRead) {
    const std::vector<Sample> samples = objective.NextStep(loaders, plan.samples_per_step(), plan.drop_last);
    for (const std::span<const Sample> own : MicroBatchesOfStep(plan, samples)) {
      StepBatches micro_batch = OneMicroBatch(objective, own, plan.accum);
      first.tokens += TokensOf(micro_batch);
      if (TokensOf(micro_batch) <= TokensOf(first.largest)) continue;
      first.largest = std::move(micro_batch);
      const auto largest_sample = std::max_element(
          own.begin(), own.end(), [](const Sample& a, const Sample& b) { return a.tokens() < b.tokens(); });
      first.one_sample = OneMicroBatch(objective, {largest_sample, 1}, plan.accum);
    }
    ++first.steps;
  }
  return first;
}

MemoryRequest MemoryOf(const DryRunRequest& request) {
  const TrainPlan& plan = request.plan;
  return {.model = request.model,
          .precision = plan.precision,
          .device = request.device,
          .tuning = plan.tuning,
          .optimizer = plan.optimizer,
          .checkpointing = request.checkpointing,
          .tbptt = plan.tbptt,
          .offload = request.offload,
          .kinds = request.kinds,
          .optimizers = request.optimizers,
          .ranks = plan.ranks,
          .sharding = plan.sharding(),
          .gives_gradients_away = plan.gives_gradients_away(),
          .exchange = {.bucket_bytes = request.bucket_bytes, .exact_leaves = plan.exact_world},
          .objective_levers = ObjectiveLevers(plan, request.objectives)};
}

/// What all ranks together put into a checkpoint.
/// \param frozen_count parameters that are not trained
int64_t CheckpointStateBytes(const ModelFamilies& families, const DryRunRequest& request,
                             int64_t frozen_count) {
  MemoryRequest whole = MemoryOf(request);
  whole.sharding = Sharding::kNone;
  const MemoryParts memory = StateMemory(families, whole);
  // Files have fp32; those of adapters lack the base.
  const int64_t frozen_bytes = request.plan.tuning.lora ? 0 : 4 * frozen_count;
  const int64_t model_bytes = memory.parameters + frozen_bytes;
  // The moving average is a model of its own, too.
  const int64_t models = request.plan.optimizer.average_decay > 0 ? 2 : 1;
  return models * model_bytes + (request.model_only ? 0 : memory.optimizer);
}

/// A run's model, optimizer and objective, as a session makes them but for the values of the weights.
struct RealTrainer {
  RealTrainer(const ModelFamilies& families, const DryRunRequest& request)
      : model(MakeModel(families, request.model, request.plan.precision, request.device,
                        /*seed=*/std::nullopt, request.kinds, request.plan.tuning)),
        objective(ObjectiveOf(request.plan, request.objectives)) {
    FillWithStandIns(&model->parameters());
    model->Offload(request.offload, request.offload_folder);
    if (const TrainPlan& plan = request.plan; plan.sharding() != Sharding::kNone) {
      FlatParameters& parameters = model->parameters();
      // Nobody takes gradients that would be given away.
      parameters.Shard(ShardLayout(parameters.elements(), /*rank=*/0, plan.ranks),
                       /*gives_gradients_away=*/false);
    }
    optimizer =
        MakeOptimizer(request.optimizers, &model->parameters(), request.plan.optimizer, request.plan.seed);
    model->set_activation_checkpointing(request.checkpointing);
    model->set_tbptt(request.plan.tbptt);
    model->parameters().ZeroGradients();
    ReturnFreeHeap();  // as a session does
  }
  std::unique_ptr<LanguageModel> model;
  std::unique_ptr<Objective> objective;
  std::unique_ptr<Optimizer> optimizer;
};

/// What of a model's memory is taken here, too: nothing is exchanged, no gradient given away, and no step
/// begun.
int64_t OfMeasuredModel(const MemoryParts& memory, const RealTrainer& trainer) {
  const FlatParameters& parameters = trainer.model->parameters();
  return memory.of_model() - memory.exchange - memory.representations - memory.gradients +
         parameters.gradient_buffer().memory_bytes();
}

/// Runs a micro-batch that was run once until its passes are recorded as a graph, or will not be. That run
/// had gradients that were not written yet and so was of another shape: of this one the first goes kernel by
/// kernel, and the second may be timed so.
/// \returns what recording left less free on the GPU, 0 where nothing was recorded
int64_t RecordPasses(const DryRunRequest& request, const LanguageModel& model,
                     const std::function<void()>& run) {
  const auto free_bytes = [&] {
    return request.free_gpu_bytes ? request.free_gpu_bytes() : FreeDeviceBytes(request.device);
  };
  constexpr int kMostRuns = 3;
  const PassGraphCounts* counts = model.graph_counts();
  for (int i = 0; i < kMostRuns && counts != nullptr && counts->off.empty(); ++i) {
    // Recording itself gives the driver what the allocator keeps free.
    if (!request.free_gpu_bytes) EmptyDeviceCache(request.device);
    const int64_t free_before = free_bytes();
    run();
    if (counts->recorded > 0) return std::max<int64_t>(0, free_before - free_bytes());
  }
  return 0;
}

/// A GPU's numbers, from the run of a micro-batch and an update there.
void MeasureOnGpu(const ModelFamilies& families, const DryRunRequest& request, const StepBatches& batches,
                  DryRunReport* report) {
  const TrainPlan& plan = request.plan;
  RealTrainer trainer(families, request);
  DeviceStep step(request.device, trainer.objective->terms().size());
  step.Set({}, 0, {});
  HostReader reader;
  const auto seconds = [&](const auto& work) {
    ThrowIfStopped();
    const auto start = std::chrono::steady_clock::now();
    work();
    step.Read(&reader);  // waits for the GPU
    return SecondsSince(start);
  };
  const auto run = [&] {
    trainer.objective->Run({.model = trainer.model.get(), .batches = &batches}, &step);
  };
  if (request.repeat_passes) request.repeat_passes(*trainer.objective, trainer.model.get());
  seconds(run);  // grows the buffers
  report->memory.graphs = RecordPasses(request, *trainer.model, [&] { seconds(run); });
  report->micro_batch_s = seconds(run);
  report->micro_batch_tokens = TokensOf(batches);
  report->update_s = seconds([&] {
    step.Finish(/*step=*/1, batches.denominators, plan.clip, /*scaled=*/false,
                /*learning_rate=*/0.0, plan.optimizer.beta1, trainer.optimizer.get());
  });
  report->measurement = DryRunMeasurement::kFullMicroBatch;
  // The peak has what was known of these before. Graphs are told by themselves.
  int64_t& products = report->memory.products;
  const int64_t accounted_bytes = OfMeasuredModel(report->memory, trainer) - report->memory.graphs;
  products = std::max(products, PeakDeviceBytes(request.device) - accounted_bytes + products);
}

/// The same of a CPU: of the whole micro-batch where it fits, else of a sample.
void MeasureOnCpu(const ModelFamilies& families, const DryRunRequest& request, const FirstSteps& first,
                  DryRunReport* report) {
  const TrainPlan& plan = request.plan;
  MemoryParts& memory = report->memory;
  RealTrainer trainer(families, request);
  const bool whole = report->fits();
  const StepBatches& measured = whole ? first.largest : first.one_sample;
  const MicroBatchPasses passes = PassesOf(*trainer.objective, measured);
  ThrowIfStopped();
  passes.run(trainer.model.get());  // grows the buffers
  ThrowIfStopped();
  auto start = std::chrono::steady_clock::now();
  passes.run(trainer.model.get());
  report->micro_batch_s = SecondsSince(start);
  report->micro_batch_tokens = TokensOf(measured);
  ThrowIfStopped();
  start = std::chrono::steady_clock::now();
  const ClipResult clipped = DecideClip(&trainer.model->parameters(), 1.0, plan.clip);
  trainer.optimizer->Step(0.0, plan.optimizer.beta1, clipped.factor);
  report->update_s = SecondsSince(start);
  ThrowIfStopped();
  report->measurement = whole ? DryRunMeasurement::kFullMicroBatch : DryRunMeasurement::kOneSample;
  if (!whole) return;
  // The peak adds what nobody accounts for. What it lacks was not touched here, and the run may touch it:
  // what the allocator keeps of what was freed differs from process to process.
  const int64_t accounted_bytes = OfMeasuredModel(memory, trainer) + memory.of_host();
  memory.products += std::max<int64_t>(0, PeakResidentBytes() - accounted_bytes);
}

const char* MeasurementName(DryRunMeasurement measurement) {
  switch (measurement) {
    case DryRunMeasurement::kFullMicroBatch:
      return "micro-batch";
    case DryRunMeasurement::kOneSample:
      return "one sample, scaled";
    case DryRunMeasurement::kShapes:
      return "shapes";
    case DryRunMeasurement::kNone:
      return "none";
  }
  return "";
}

/// Whether what does not depend on the micro-batch does.
bool StateFits(const DryRunReport& report) {
  DryRunReport state = report;
  state.memory.activations = state.memory.logits = state.memory.products = 0;
  state.memory.representations = 0;
  return state.fits();
}

std::string Bytes(int64_t size) {
  return FormatBytes(static_cast<uint64_t>(size));
}

/// Whether a part is known, and can be of such a run.
bool IsTold(const MemoryPart& part, const DryRunReport& report) {
  const auto is = [&](int64_t MemoryParts::*size_bytes) { return part.size_bytes == size_bytes; };
  if (is(&MemoryParts::frozen)) return report.memory.frozen > 0;
  if (is(&MemoryParts::exchange)) return report.memory.exchange > 0;
  if (is(&MemoryParts::representations)) return report.memory.representations > 0;
  if (is(&MemoryParts::graphs)) return report.memory.graphs > 0;
  if (is(&MemoryParts::offloaded)) return report.memory.offloaded > 0;
  if (is(&MemoryParts::attention)) return report.on_gpu;
  if (is(&MemoryParts::products)) {
    return report.measurement == DryRunMeasurement::kFullMicroBatch ||
           (report.on_gpu && report.memory.products > 0);
  }
  if (is(&MemoryParts::activations) || is(&MemoryParts::logits)) {
    return report.measurement != DryRunMeasurement::kNone;
  }
  return true;
}

Table MemoryTable(const DryRunReport& report) {
  const MemoryParts& memory = report.memory;
  Table table({"memory", "size"});
  const auto add_parts = [&](bool of_host) {
    for (const MemoryPart& part : AllMemoryParts()) {
      if (part.of_host == of_host && IsTold(part, report)) {
        table.AddRow({part.label, Bytes(memory.*part.size_bytes)});
      }
    }
  };
  add_parts(/*of_host=*/false);
  if (report.on_gpu) {
    table.AddRow({"on the GPU", Bytes(memory.of_model())});
    if (report.gpu_available_bytes > 0) {
      table.AddRow({"free on the GPU", Bytes(report.gpu_available_bytes)});
    }
  }
  add_parts(/*of_host=*/true);
  if (report.on_gpu) {
    table.AddRow({"on the host", Bytes(memory.of_host())});
  } else {
    table.AddRow({report.measurement == DryRunMeasurement::kNone ? "total without activations" : "total",
                  Bytes(memory.total())});
  }
  if (report.available_bytes > 0) table.AddRow({"available", Bytes(report.available_bytes)});
  return table;
}

Table RunTable(const DryRunReport& report) {
  const int64_t tokens = report.steps * report.tokens_per_step;
  Table run({"run", ""});
  run.AddRow({"parameters", std::to_string(report.parameter_count) + ", trained " +
                                std::to_string(report.trainable_count)});
  run.AddRow({"steps", std::to_string(report.steps)});
  run.AddRow({"tokens", "about " + FormatCount(static_cast<double>(tokens)) + ", " +
                            FormatCount(static_cast<double>(report.tokens_per_step)) + " a step"});
  if (report.step_time_s > 0) {
    run.AddRow({"time", FormatDuration(report.step_time_s * static_cast<double>(report.steps)) + ", " +
                            FormatDuration(report.step_time_s) + " a step"});
    const std::string measured_tokens = FormatCount(static_cast<double>(report.micro_batch_tokens));
    run.AddRow({"", "measured: one micro-batch of " + measured_tokens + " tokens in " +
                        FormatDuration(report.micro_batch_s) + ", one update in " +
                        FormatDuration(report.update_s)});
    run.AddRow({"", "evaluations and checkpoints come on top"});
  } else {
    run.AddRow({"time", "not measured: the model does not fit into memory"});
  }
  run.AddRow({"disk", Bytes(report.disk_bytes) + ", a checkpoint " + Bytes(report.checkpoint_bytes)});
  return run;
}

/// What parts of the memory are known before anything is run, and how much there is.
void TellMemory(const ModelFamilies& families, const DryRunRequest& request, const Objective& objective,
                const FirstSteps& first, const SampleLoaders& loaders, DryRunReport* report) {
  const MemoryRequest training = MemoryOf(request);
  MemoryParts& memory = report->memory;
  memory = StateMemory(families, training);
  memory.loader = MostHeldBytes(loaders);
  memory.process = std::max<int64_t>(0, ResidentBytes() - memory.loader);
  report->on_gpu = !request.device.is_cpu();
  report->available_bytes = request.available_bytes;
  if (report->available_bytes == 0) {
    // Free for this process: what it has already, and what the machine would give.
    const int64_t free_bytes = AvailableMemoryBytes();
    report->available_bytes = free_bytes > 0 ? free_bytes + ResidentBytes() : 0;
  }
  if (report->on_gpu) {
    report->gpu_available_bytes =
        request.gpu_available_bytes > 0 ? request.gpu_available_bytes : FreeDeviceBytes(request.device);
    report->measurement = DryRunMeasurement::kShapes;
  } else if (!report->fits()) {
    return;
  }
  if (TokensOf(first.largest) == 0) return;
  const MemoryParts whole = TrainingMemory(families, training, PassesOf(objective, first.largest));
  memory.gradients = whole.gradients;
  memory.activations = whole.activations;
  memory.logits = whole.logits;
  memory.representations = objective.HeldBytes(ShapeOfStep(request.plan), request.model);
  memory.attention = whole.attention;
  memory.products = whole.products;
  memory.offloaded = whole.offloaded;
  report->shapes_bytes = memory.total();
}

}  // namespace

DryRunReport DryRun(const ModelFamilies& families, const DryRunRequest& request,
                    const SampleLoaders& loaders) {
  DryRunReport report;
  const TrainPlan& plan = request.plan;
  const auto objective = ObjectiveOf(plan, request.objectives);
  const FirstSteps first = ReadFirstSteps(plan, *objective, request.steps, loaders);
  report.steps = request.steps;
  report.tokens_per_step = first.tokens / std::max<int64_t>(1, first.steps);
  report.parameter_count = report.trainable_count = CountParameters(request.model);
  if (plan.tuning.lora || !plan.tuning.rules.freeze.empty()) {
    const auto shapes = ShapesOf(families, MemoryOf(request));
    report.trainable_count = shapes->parameters().trainable_count();
    report.parameter_count = shapes->parameters().count();
  }

  MemoryParts& memory = report.memory;
  TellMemory(families, request, *objective, first, loaders, &report);
  const bool any_left = TokensOf(first.largest) > 0;
  if (report.on_gpu) {
    if (any_left && report.fits()) MeasureOnGpu(families, request, first.largest, &report);
  } else if (any_left && StateFits(report)) {
    MeasureOnCpu(families, request, first, &report);
  }
  if (report.micro_batch_tokens > 0) {
    const double tokens_of_rank =
        static_cast<double>(report.tokens_per_step) / static_cast<double>(plan.ranks);
    report.step_time_s =
        report.micro_batch_s * tokens_of_rank / static_cast<double>(report.micro_batch_tokens) +
        report.update_s;
  }
  if (request.snapshot != Snapshot::kNo) {
    memory.snapshot = SnapshotBytes(families, MemoryOf(request));
    if (request.snapshot == Snapshot::kWhereItFits && !report.fits()) memory.snapshot = 0;
  }
  report.levers = LeversLeft(MemoryOf(request), /*auto_oom=*/true, LargestPart(memory).levers);
  report.checkpoint_bytes =
      CheckpointStateBytes(families, request, report.parameter_count - report.trainable_count) +
      kCheckpointFilesBytes;
  report.disk_bytes = report.checkpoint_bytes * request.checkpoints_kept +
                      kStepRecordBytes * request.step_records + kRunFilesBytes;
  return report;
}

std::string FormatDryRun(const DryRunReport& report) {
  std::string text = MemoryTable(report).ToString() + "\n" + RunTable(report).ToString();
  if (!report.fits()) {
    const MemoryPart& largest = LargestPart(report.memory);
    text += "\nThe run does not fit into the memory that is available: " + Bytes(report.missing_bytes()) +
            " are missing. Most goes to " + largest.name + " (" + Bytes(report.memory.*largest.size_bytes) +
            "): " + JoinMemoryLevers(report.levers) + ".";
    if (report.measurement == DryRunMeasurement::kOneSample) {
      text += " One sample was run; time is scaled from it.";
    }
    text += "\n";
  }
  if (report.measurement == DryRunMeasurement::kShapes) {
    text +=
        "\nNothing was run on the GPU: these are the sizes of tensors. What cuBLAS and the allocator take "
        "besides is known only after a run.\n";
  }
  return text;
}

nlohmann::ordered_json EncodeDryRun(const DryRunReport& report) {
  const MemoryParts& memory = report.memory;
  nlohmann::ordered_json bytes = EncodeMemoryParts(memory);
  bytes.update({{"total", memory.total()},
                {"available", report.available_bytes},
                {"on_gpu", report.on_gpu ? memory.of_model() : 0},
                {"gpu_available", report.gpu_available_bytes}});
  return {{"dry_run", true},
          {"parameters", report.parameter_count},
          {"trainable_parameters", report.trainable_count},
          {"memory_bytes", bytes},
          {"shapes_bytes", report.shapes_bytes},
          {"fits", report.fits()},
          {"largest_part", LargestPart(memory).name},
          {"measured", MeasurementName(report.measurement)},
          {"steps", report.steps},
          {"tokens", report.steps * report.tokens_per_step},
          {"step_time_s", report.step_time_s},
          {"time_s", report.step_time_s * static_cast<double>(report.steps)},
          {"checkpoint_bytes", report.checkpoint_bytes},
          {"disk_bytes", report.disk_bytes}};
}

}  // namespace trainwright
