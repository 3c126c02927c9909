#include "lib/train/dry_run.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/base/units.h"
#include "lib/checkpoint/async_save.h"
#include "lib/device/device_memory.h"
#include "lib/device/host_read.h"
#include "lib/io/process_memory.h"
#include "lib/nn/attention/torch_attention.h"
#include "lib/nn/precision.h"
#include "lib/optim/clip.h"
#include "lib/optim/device_step.h"
#include "lib/report/table.h"
#include "lib/train/plan_objective.h"

namespace trainwright {
namespace {

constexpr int64_t kMostStepsRead = 64, kMostTokensRead = int64_t{1} << 21;
/// A step's record in metrics.jsonl and in TensorBoard's events.
constexpr int64_t kStepRecordBytes = 715;
/// What grows with neither model nor steps: of a checkpoint, and of the run directory.
constexpr int64_t kCheckpointFilesBytes = int64_t{1} << 14, kRunFilesBytes = int64_t{1} << 15;

/// What the first steps hold.
struct FirstSteps {
  PackedBatch largest;     ///< micro-batch
  PackedBatch one_sample;  ///< the largest sample of it
  int64_t steps = 0, tokens = 0;
};

FirstSteps ReadFirstSteps(const TrainPlan& plan, const Objective& objective, int64_t steps,
                          SampleLoader* stream) {
  FirstSteps first;
  while (first.steps < std::min(steps, kMostStepsRead) && first.tokens < kMostTokensRead) {
    const std::vector<Sample> samples = stream->NextStep(plan.samples_per_step(), plan.drop_last);
    for (int64_t begin = 0; begin < plan.samples_per_step(); begin += plan.batch) {
      const auto own =
          std::span(samples).subspan(static_cast<size_t>(begin), static_cast<size_t>(plan.batch));
      PackedBatch micro_batch = objective.Pack(own);
      first.tokens += micro_batch.num_tokens();
      if (micro_batch.num_tokens() <= first.largest.num_tokens()) continue;
      first.largest = std::move(micro_batch);
      const auto largest_sample = std::max_element(
          own.begin(), own.end(), [](const Sample& a, const Sample& b) { return a.tokens() < b.tokens(); });
      first.one_sample = objective.Pack({largest_sample, 1});
    }
    ++first.steps;
  }
  return first;
}

/// The model without memory for anything: its tensors have shapes alone. They are those of a GPU.
std::unique_ptr<LanguageModel> ShapesOf(const ModelFamilies& families, const DryRunRequest& request) {
  auto shapes =
      MakeModel(families, request.model, request.plan.precision, at::Device(at::kMeta), std::nullopt,
                request.device.is_cpu() ? AttentionBackend::kAuto : request.attention, request.plan.tuning);
  shapes->Offload(request.offload, request.offload_folder);
  return shapes;
}

std::unique_ptr<Optimizer> OptimizerOf(const DryRunRequest& request, FlatParameters* parameters) {
  return MakeOptimizer(request.optimizers, parameters, request.plan.optimizer, request.plan.seed);
}

/// What the weights and the state that goes with them take, without allocating it.
MemoryNeeds StateNeeds(const DryRunRequest& request, LanguageModel* shapes) {
  FlatParameters& parameters = shapes->parameters();
  MemoryNeeds needs;
  needs.parameters = static_cast<int64_t>(parameters.values().nbytes());
  needs.gradients = parameters.gradient_buffer().memory_bytes();
  needs.optimizer = OptimizerOf(request, &parameters)->state_bytes();
  if (!parameters.compute().is_same(parameters.values())) {
    const Numerics numerics = ChooseNumerics(request.plan.precision, request.device);
    needs.compute_copy =
        parameters.compute().numel() * static_cast<int64_t>(at::elementSize(numerics.storage));
  }
  const auto element_size =
      static_cast<int64_t>(at::elementSize(ChooseNumerics(request.plan.precision, request.device).storage));
  for (const Parameter& parameter : parameters.all()) {
    if (parameter.trainable) continue;
    needs.frozen += parameter.quantized           ? parameter.nf4.bytes()
                    : parameter.shape.size() == 2 ? parameter.size * element_size
                                                  : parameter.size * static_cast<int64_t>(sizeof(float));
  }
  return needs;
}

StepBatches BatchesOf(const Objective& objective, const PackedBatch& batch) {
  StepBatches batches = {.micro_batches = {batch}, .denominators = objective.Count(batch)};
  for (int64_t& denominator : batches.denominators) denominator = std::max<int64_t>(1, denominator);
  return batches;
}

void RunMicroBatch(const Objective& objective, LanguageModel* model, const StepBatches& batches,
                   LossSums* sums, bool pin = true) {
  objective.Run({.model = model, .batches = &batches, .pin = pin}, sums);
}

/// Of a pass whose loss nobody wants.
class NoLossSums final : public LossSums {
 public:
  void Add(const std::vector<double>&) override {}
  void AddOnDevice(const at::Tensor&) override {}
};

/// A GPU's numbers, from the run of a micro-batch and an update there.
void MeasureOnGpu(const ModelFamilies& families, const DryRunRequest& request, const PackedBatch& micro_batch,
                  DryRunReport* report) {
  const TrainPlan& plan = request.plan;
  const auto model = MakeModel(families, request.model, plan.precision, request.device, plan.seed,
                               request.attention, plan.tuning);
  model->Offload(request.offload, request.offload_folder);
  const auto optimizer = OptimizerOf(request, &model->parameters());
  model->set_activation_checkpointing(request.checkpointing);
  model->parameters().ZeroGradients();
  const auto objective = ObjectiveOf(request.plan, request.objectives);
  const StepBatches batches = BatchesOf(*objective, micro_batch);
  DeviceStep step(request.device, objective->terms().size());
  step.Set({}, 0);
  HostReader reader;
  const auto seconds = [&](const auto& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    step.Read(&reader);  // waits for the GPU
    return SecondsSince(start);
  };
  const auto run = [&] { RunMicroBatch(*objective, model.get(), batches, &step); };
  seconds(run);  // grows the buffers
  report->micro_batch_s = seconds(run);
  report->micro_batch_tokens = micro_batch.num_tokens();
  report->update_s = seconds([&] {
    step.Finish(/*step=*/1, batches.denominators, plan.clip, /*scaled=*/false, /*learning_rate=*/0.0,
                plan.optimizer.beta1, optimizer.get());
  });
  report->measurement = Measurement::kFullMicroBatch;
  report->memory.products = std::max<int64_t>(0, PeakDeviceBytes(request.device) - report->memory.of_model());
}

const char* MeasurementName(Measurement measurement) {
  switch (measurement) {
    case Measurement::kFullMicroBatch:
      return "micro-batch";
    case Measurement::kOneSample:
      return "one sample, scaled";
    case Measurement::kShapes:
      return "shapes";
    case Measurement::kNone:
      return "none";
  }
  return "";
}

}  // namespace

MemoryNeeds GpuNeeds(const ModelFamilies& families, const DryRunRequest& request,
                     const PackedBatch& micro_batch) {
  RequireGpuSupport(request.model);
  const auto shapes = ShapesOf(families, request);
  MemoryNeeds needs = StateNeeds(request, shapes.get());
  shapes->set_activation_checkpointing(request.checkpointing);
  const auto objective = ObjectiveOf(request.plan, request.objectives);
  NoLossSums sums;
  RunMicroBatch(*objective, shapes.get(), BatchesOf(*objective, micro_batch), &sums, /*pin=*/false);
  const ModelMemory held = shapes->memory();
  needs.activations = held.activation_bytes;
  needs.logits = held.logits_bytes;
  const ModelConfig& model = request.model;
  if (model.num_heads == 0) return needs;
  const Numerics numerics = ChooseNumerics(request.plan.precision, request.device, request.attention);
  const AttentionShape shape = {micro_batch.num_tokens(), model.num_heads, model.num_kv_heads, model.head_dim,
                                WindowOf(model, 0)};
  needs.attention = AttentionWorkspaceBytes(
      ResolveAttentionBackend(numerics.attention, model.head_dim, numerics.storage, request.device), shape,
      numerics.storage, micro_batch.span_starts);
  return needs;
}

DryRunReport DryRun(const ModelFamilies& families, const DryRunRequest& request, SampleLoader* stream) {
  DryRunReport report;
  const TrainPlan& plan = request.plan;
  const auto objective = ObjectiveOf(request.plan, request.objectives);
  const FirstSteps first = ReadFirstSteps(plan, *objective, request.steps, stream);
  report.steps = request.steps;
  report.tokens_per_step = first.tokens / std::max<int64_t>(1, first.steps);

  MemoryNeeds& needs = report.memory;
  report.on_gpu = !request.device.is_cpu();
  needs = report.on_gpu ? GpuNeeds(families, request, first.largest)
                        : StateNeeds(request, ShapesOf(families, request).get());
  report.parameter_count = report.trainable_count = CountParameters(request.model);
  if (plan.tuning.lora) {
    report.trainable_count = ShapesOf(families, request)->parameters().trainable_count();
    report.parameter_count += report.trainable_count;
  }
  needs.loader = stream->loader_counts().most_held_bytes;
  needs.process = std::max<int64_t>(0, ResidentBytes() - needs.loader);
  report.available_bytes = request.available_bytes;
  if (report.available_bytes == 0) {
    // Free for this process: what it has already, and what the machine would give.
    const int64_t free_bytes = AvailableMemoryBytes();
    report.available_bytes = free_bytes > 0 ? free_bytes + ResidentBytes() : 0;
  }
  if (report.on_gpu) {
    report.gpu_available_bytes =
        request.gpu_available_bytes > 0 ? request.gpu_available_bytes : FreeDeviceBytes(request.device);
    report.measurement = Measurement::kShapes;
    if (report.fits()) MeasureOnGpu(families, request, first.largest, &report);
  } else if (report.fits()) {
    const auto model = MakeModel(families, request.model, plan.precision, request.device, plan.seed,
                                 request.attention, plan.tuning);
    model->Offload(request.offload, request.offload_folder);
    const auto optimizer = OptimizerOf(request, &model->parameters());
    model->set_activation_checkpointing(request.checkpointing);
    model->parameters().ZeroGradients();
    NoLossSums sums;
    const auto run = [&](const PackedBatch& batch) {
      RunMicroBatch(*objective, model.get(), BatchesOf(*objective, batch), &sums);
    };
    run(first.one_sample);
    ModelMemory held = model->memory();
    const double scale =
        static_cast<double>(first.largest.num_tokens()) / static_cast<double>(first.one_sample.num_tokens());
    needs.activations = static_cast<int64_t>(scale * static_cast<double>(held.activation_bytes));
    needs.logits = static_cast<int64_t>(scale * static_cast<double>(held.logits_bytes));
    const bool whole = report.fits();
    const PackedBatch& measured = whole ? first.largest : first.one_sample;
    if (whole) run(measured);  // grows the buffers
    auto start = std::chrono::steady_clock::now();
    run(measured);
    report.micro_batch_s = SecondsSince(start);
    report.micro_batch_tokens = measured.num_tokens();
    start = std::chrono::steady_clock::now();
    const ClipResult clipped = DecideClip(&model->parameters(), 1.0, plan.clip);
    optimizer->Step(0.0, plan.optimizer.beta1, clipped.factor);
    report.update_s = SecondsSince(start);
    report.measurement = whole ? Measurement::kFullMicroBatch : Measurement::kOneSample;
    if (whole) {
      held = model->memory();
      needs.activations = held.activation_bytes;
      needs.logits = held.logits_bytes;
      needs.products = std::max<int64_t>(0, PeakResidentBytes() - needs.total());
    }
  }
  if (report.micro_batch_tokens > 0) {
    report.step_time_s = report.micro_batch_s * static_cast<double>(report.tokens_per_step) /
                             static_cast<double>(report.micro_batch_tokens) +
                         report.update_s;
  }
  if (request.snapshot != Snapshot::kNo) {
    needs.snapshot = SnapshotBytes(needs.parameters / static_cast<int64_t>(sizeof(float)), needs.optimizer);
    if (request.snapshot == Snapshot::kWhereItFits && !report.fits()) needs.snapshot = 0;
  }
  // Weights, and two moments in the flat layout.
  report.checkpoint_bytes = needs.parameters + needs.optimizer + kCheckpointFilesBytes;
  report.disk_bytes = report.checkpoint_bytes * request.checkpoints_kept +
                      kStepRecordBytes * request.step_records + kRunFilesBytes;
  return report;
}

MemoryPart LargestPart(const MemoryNeeds& needs) {
  static constexpr char kModel[] = "choose a smaller --model";
  static constexpr char kFrozen[] = "use --quant nf4, or a smaller model";
  static constexpr char kBatch[] =
      "lower --batch, and raise --accum by as much for the same step; or lower --seq";
  static constexpr char kActivations[] =
      "take --checkpoint-activations full; lower --batch, and raise --accum by as much for the same step; or "
      "lower --seq";
  const MemoryPart parts[] = {
      {"parameters", needs.parameters, kModel},
      {"gradients", needs.gradients, "take --offload gradients, or choose a smaller --model"},
      {"optimizer", needs.optimizer, "take --optimizer-states bf16, or choose a smaller --model"},
      {"compute_copy", needs.compute_copy, kModel},
      {"frozen", needs.frozen, kFrozen},
      {"activations", needs.activations, kActivations},
      {"logits", needs.logits, kBatch},
      {"attention", needs.attention, kBatch},
      {"snapshot", needs.snapshot, "take --async-save off"},
      {"loader", needs.loader, "lower --workers or --prefetch"},
      {"products", needs.products, kBatch},
  };
  return *std::max_element(std::begin(parts), std::end(parts), [](const MemoryPart& a, const MemoryPart& b) {
    return a.size_bytes < b.size_bytes;
  });
}

std::string FormatDryRun(const DryRunReport& report) {
  const auto bytes = [](int64_t size) { return FormatBytes(static_cast<uint64_t>(size)); };
  const MemoryNeeds& needs = report.memory;
  Table memory({"memory", "size"});
  memory.AddRow({"parameters", bytes(needs.parameters)});
  memory.AddRow({"gradients", bytes(needs.gradients)});
  memory.AddRow({"optimizer's moments", bytes(needs.optimizer)});
  memory.AddRow({"compute copy of the weights", bytes(needs.compute_copy)});
  if (needs.frozen > 0) memory.AddRow({"frozen weights", bytes(needs.frozen)});
  if (report.measurement != Measurement::kNone) {
    memory.AddRow({"activations", bytes(needs.activations)});
    memory.AddRow({"slice of logits", bytes(needs.logits)});
  }
  if (report.on_gpu) memory.AddRow({"attention's scratch", bytes(needs.attention)});
  if (report.measurement == Measurement::kFullMicroBatch) {
    memory.AddRow({"operands of products, allocator", bytes(needs.products)});
  }
  if (report.on_gpu) {
    memory.AddRow({"on the GPU", bytes(needs.of_model())});
    if (report.gpu_available_bytes > 0) {
      memory.AddRow({"free on the GPU", bytes(report.gpu_available_bytes)});
    }
  }
  memory.AddRow({"copy that checkpoints are written from", bytes(needs.snapshot)});
  memory.AddRow({"loader", bytes(needs.loader)});
  memory.AddRow({"process and libraries", bytes(needs.process)});
  if (report.on_gpu) {
    memory.AddRow({"on the host", bytes(needs.of_host())});
  } else {
    memory.AddRow({report.measurement == Measurement::kNone ? "total without activations" : "total",
                   bytes(needs.total())});
  }
  if (report.available_bytes > 0) memory.AddRow({"available", bytes(report.available_bytes)});

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
  run.AddRow({"disk", bytes(report.disk_bytes) + ", a checkpoint " + bytes(report.checkpoint_bytes)});
  std::string text = memory.ToString() + "\n" + run.ToString();
  if (!report.fits()) {
    const MemoryPart largest = LargestPart(needs);
    text += "\nThe run does not fit into the memory that is available: " + bytes(report.missing_bytes()) +
            " are missing. Most goes to " + largest.name + " (" + bytes(largest.size_bytes) +
            "): " + largest.advice + ".";
    if (report.measurement == Measurement::kOneSample) {
      text += " One sample was run; activations are scaled from it.";
    }
    text += "\n";
  }
  if (report.measurement == Measurement::kShapes) {
    text +=
        "\nNothing was run on the GPU: these are the sizes of tensors. What cuBLAS and the allocator take "
        "besides is known only after a run.\n";
  }
  return text;
}

nlohmann::ordered_json EncodeDryRun(const DryRunReport& report) {
  const MemoryNeeds& needs = report.memory;
  return {{"dry_run", true},
          {"parameters", report.parameter_count},
          {"trainable_parameters", report.trainable_count},
          {"memory_bytes",
           {{"parameters", needs.parameters},
            {"gradients", needs.gradients},
            {"optimizer", needs.optimizer},
            {"compute_copy", needs.compute_copy},
            {"frozen", needs.frozen},
            {"activations", needs.activations},
            {"logits", needs.logits},
            {"attention", needs.attention},
            {"snapshot", needs.snapshot},
            {"loader", needs.loader},
            {"products", needs.products},
            {"process", needs.process},
            {"total", needs.total()},
            {"available", report.available_bytes},
            {"on_gpu", report.on_gpu ? needs.of_model() : 0},
            {"gpu_available", report.gpu_available_bytes}}},
          {"fits", report.fits()},
          {"largest_part", LargestPart(needs).name},
          {"measured", MeasurementName(report.measurement)},
          {"steps", report.steps},
          {"tokens", report.steps * report.tokens_per_step},
          {"step_time_s", report.step_time_s},
          {"time_s", report.step_time_s * static_cast<double>(report.steps)},
          {"checkpoint_bytes", report.checkpoint_bytes},
          {"disk_bytes", report.disk_bytes}};
}

}  // namespace trainwright
