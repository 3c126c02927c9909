#include "lib/train/run_preview.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "lib/checkpoint/async_save.h"
#include "lib/io/process_memory.h"
#include "lib/memory/training_memory.h"
#include "lib/nn/linear/gemm_kernels.h"
#include "lib/nn/peak_rate.h"
#include "lib/run/explanation.h"
#include "lib/run/plan_codec.h"
#include "lib/run/world_settings.h"
#include "lib/spec/family_options.h"
#include "lib/spec/objective_names.h"
#include "lib/spec/scan_kind.h"
#include "lib/train/compile_choice.h"
#include "lib/train/dry_run.h"
#include "lib/train/world_preview.h"

namespace trainwright {
namespace {

constexpr int kDoesNotFit = 1;  // the exit status of an answer that is no

int64_t StepsTaken(const ResolvedRun& run) {
  return run.resume ? run.resume->state.trainer.step : 0;
}

/// Values in effect by option, and why they are: what PlanAsOptions does not tell.
struct Effective {
  nlohmann::ordered_json values;
  std::vector<ChoiceReason> reasons;
  void Because(const char* option, const std::string& reason) { reasons.push_back({option, reason, ""}); }
};

void ExplainCadence(const TrainSettings& settings, const ResolvedRun& run, Effective* effective) {
  const SaveInterval& save_every = run.cadence.save_every;
  if (save_every.time_s > 0 || save_every.epochs) {
    effective->values["save-every"] = settings.save_every;
  } else {
    effective->values["save-every"] = save_every.steps;
  }
  if (run.data->evaluated(run.plan.eval_split) == nullptr) return;
  effective->values["eval-every"] = run.cadence.eval_every;
}

void ExplainPeakRate(const TrainSettings& settings, const ResolvedRun& run, Effective* effective) {
  const at::Device device = run.compute.device;
  const Precision precision = run.plan.precision;
  if (const auto peak_tflops = PeakTflops(settings, device, precision)) {
    effective->values["peak-tflops"] = *peak_tflops;
  }
  if (settings.peak_tflops) return;
  const std::string gpu = GpuName(device);
  const auto published = PublishedPeakRate(gpu, precision);
  effective->Because("peak-tflops", published
                                        ? PrecisionName(precision) + " of " + gpu + ": " + published->source
                                        : "not known for this device, so mfu is null");
}

void ExplainAsyncSave(const TrainSettings& settings, const TrainJobContext& context, const ResolvedRun& run,
                      Effective* effective) {
  if (settings.async_save != "auto") {
    effective->values["async-save"] = settings.async_save;
    return;
  }
  if (run.plan.sharding() != Sharding::kNone) {
    effective->values["async-save"] = "off";
    effective->Because("async-save",
                       "with --zero the ranks send their parts of a checkpoint as it is written");
    return;
  }
  // What the passes will take is not counted: a run decides after its first steps, on what they left.
  const MemoryRequest request = MemoryOf(context, run, run.plan);
  const MemoryParts state = StateMemory(context.families, request);
  const int64_t host_bytes = run.compute.device.is_cpu() ? state.of_model() : state.offloaded;
  const AsyncSaveChoice choice = ChooseAsyncSave(SnapshotBytes(context.families, request),
                                                 std::max<int64_t>(1, AvailableMemoryBytes() - host_bytes));
  effective->values["async-save"] = choice.background ? "on" : "off";
  effective->Because("async-save", choice.reason);
}

/// Of threads that nobody gave.
std::string WhyThreads(const ResolvedRun& run) {
  const bool kept = run.resume && !run.resume->of_parent && run.plan.exact_world > 0 &&
                    run.resume->state.compute.threads == run.compute.identity.threads;
  if (kept) return "as the run had: the bits of --exact-world depend on them";
  return run.plan.ranks > 1 ? "a rank's share of the physical cores"
                            : "the physical cores this process may use";
}

/// Of kernels that nobody named.
std::string WhyKernels(const TrainSettings& settings, const ResolvedRun& run) {
  if (!run.compute.device.is_cpu()) return "has no effect on a GPU";
  if (settings.resume) return "as the run had";
  if (!WhyNotCpuGemms({.fp32 = CpuGemms::Fp32::kBlocks}).empty()) return "all that the processor has";
  return settings.deterministic || settings.exact_world.value_or(0) > 0
             ? "usual for the processor, for no clock may decide"
             : "the fastest, as measured once for this machine";
}

/// What of the model's shape options say.
void ExplainFamily(const ResolvedRun& run, Effective* effective) {
  const FamilyDescription& family = FamilyOf(run.model.config);
  const OwnOptions values = family.OptionsOf(run.model.config);
  for (const OwnOption& option : family.options()) {
    effective->values[option.flag()] = values.at(option.name).ToString();
  }
  if (family.scans()) effective->values["ten-scan"] = ScanKindName(run.compute.kinds.scan);
}

void ExplainDefaults(const TrainSettings& settings, const ResolvedRun& run, const std::string& run_folder,
                     Effective* effective) {
  constexpr char kTenth[] = "a tenth of the run, 10 to 500 steps";
  if (settings.device == "auto") effective->Because("device", "auto takes the GPU if there is one");
  if (settings.threads == 0) effective->Because("threads", WhyThreads(run));
  if (settings.kernels == "auto") effective->Because("kernels", WhyKernels(settings, run));
  if (settings.save_every.empty()) effective->Because("save-every", kTenth);
  if (run.data->evaluated(run.plan.eval_split) != nullptr && !settings.eval_every) {
    effective->Because("eval-every", kTenth);
  }
  if (settings.out.empty()) {
    effective->Because("out", !run_folder.empty() ? "the newest run in runs/"
                                                  : "the first free runs/MODEL-NNN when training starts");
  }
  if (settings.cache_dir.empty()) effective->Because("cache-dir", "$TMPDIR, or /var/tmp");
}

Effective ExplainRun(const TrainSettings& settings, const TrainJobContext& context, const ResolvedRun& run,
                     const std::string& run_folder) {
  const LoaderOptions& loader = run.compute.loader;
  Effective effective = {.values = PlanAsOptions(run.plan)};
  effective.values.update({{"model", settings.model.empty() ? run.model.name : settings.model},
                           {"device", run.compute.identity.device},
                           {"threads", run.compute.identity.threads},
                           {"seq", run.plan.sequence_tokens},
                           {"workers", loader.workers},
                           {"prefetch", loader.prefetch},
                           {"pin", run.compute.pin ? "on" : "off"},
                           {"data-cache", loader.cache_bytes},
                           {"shuffle-block", run.plan.samples.block_chunks},
                           {"packing", PackingName(run.plan.samples.packing)},
                           {"data", DataNames(settings)},
                           {"attn-backend", AttentionBackendName(run.compute.kinds.attention)},
                           {"cache-dir", SpoolFolder(settings)}});
  if (run.compute.device.is_cpu()) effective.values["kernels"] = CpuGemmsName(ChosenCpuGemms());
  ExplainFamily(run, &effective);
  ExplainCadence(settings, run, &effective);
  if (!run_folder.empty()) effective.values["out"] = run_folder;
  ExplainPeakRate(settings, run, &effective);
  ExplainDefaults(settings, run, run_folder, &effective);
  ExplainAsyncSave(settings, context, run, &effective);
  if (!settings.prefetch) effective.Because("prefetch", "1 on a CPU, 2 on a GPU");
  return effective;
}

/// Without what only other objectives and families have, unless someone said it.
std::vector<OptionValue> OptionsOfRun(const TrainJobContext& context, const ResolvedRun& run) {
  std::vector<OptionValue> left = context.options;
  const auto erase = [&](const std::string& group) {
    std::erase_if(left, [&](const OptionValue& option) {
      return option.origin == OptionOrigin::kDefault && option.group == group;
    });
  };
  for (const ObjectiveKind& other : context.objectives.all()) {
    if (other.name() != run.plan.objective) erase(FlagGroupOf(other.name()));
  }
  for (const FamilyDescription* other : context.families.descriptions().all()) {
    if (other != run.model.config.family) erase(FlagGroupOf(*other));
  }
  return left;
}

Snapshot SnapshotOf(const TrainSettings& settings, const TrainPlan& plan, bool saves_between) {
  if (settings.async_save == "on") return Snapshot::kYes;
  const bool none = settings.async_save == "off" || !saves_between || plan.sharding() != Sharding::kNone;
  return none ? Snapshot::kNo : Snapshot::kWhereItFits;
}

DryRunReport MeasureRun(const TrainSettings& settings, const TrainJobContext& context,
                        const ResolvedRun& run) {
  const SaveInterval& save_every = run.cadence.save_every;
  const int64_t steps = run.plan.schedule.total_steps - StepsTaken(run);
  // How many checkpoints a time or epochs make is not known before the run: at most one a step.
  const int64_t interval_steps = save_every.time_s > 0 || save_every.epochs ? 1 : save_every.steps;
  const int64_t checkpoints = interval_steps > 0 ? (steps + interval_steps - 1) / interval_steps : 1;
  const int64_t most_kept = settings.keep > 0 ? settings.keep + settings.keep_best : checkpoints;
  const bool saves_between = run.cadence.SavesBetween(StepsTaken(run), run.plan.schedule.total_steps);
  return DryRun(context.families,
                {.model = run.model.config,
                 .plan = run.plan,
                 .device = run.compute.device,
                 .steps = steps,
                 .checkpoints_kept = std::min(most_kept, checkpoints),
                 .model_only = settings.save_model_only,
                 .step_records = steps / LogEvery(settings, run.compute.device),
                 .repeat_passes =
                     [&run](const Objective& objective, LanguageModel* model) {
                       RepeatPasses(run.compute.compile, run, objective,
                                    MakeGraphRecorder(run.compute.device), model);
                     },
                 .kinds = run.compute.kinds,
                 .snapshot = SnapshotOf(settings, run.plan, saves_between),
                 .checkpointing = run.compute.checkpointing,
                 .offload = run.compute.offload,
                 .offload_folder = run.compute.offload_folder,
                 .optimizers = context.optimizers,
                 .objectives = context.objectives,
                 .bucket_bytes = run.compute.bucket_bytes},
                LoadersOf(run.loaders));
}

/// --dry-run.
/// \returns the exit status
int TellDryRun(const TrainSettings& settings, const TrainJobContext& context, const ResolvedRun& run,
               std::string* text, nlohmann::ordered_json* summary) {
  const std::optional<WorldSettings> world = ParseWorldSettings(settings);
  std::optional<DryRunReport> report;
  bool fits = true;
  if (!world || !IsOnPaperAlone(*world)) {
    report = MeasureRun(settings, context, run);
    *text += FormatDryRun(*report);
    summary->update(EncodeDryRun(*report));
    fits = report->fits();
  }
  *text += run.data->FormatSources(run.plan);
  if (world) {
    WorldPreview preview = PreviewWorlds(*world, context, run, report ? &*report : nullptr);
    *text += (report ? "\n" : "") + preview.text;
    summary->update({{"dry_run", true}, {"world", std::move(preview.json)}});
    fits = preview.fits;
  }
  return fits ? 0 : kDoesNotFit;
}

}  // namespace

int PreviewRun(const TrainSettings& settings, const TrainJobContext& context, const ChoiceLog& log,
               const std::string& run_folder, const ResolvedRun& run, nlohmann::ordered_json* summary) {
  std::string text;
  int status = 0;
  if (settings.explain) {
    const Effective effective = ExplainRun(settings, context, run, run_folder);
    std::vector<ChoiceReason> reasons = log.reasons();
    reasons.insert(reasons.end(), effective.reasons.begin(), effective.reasons.end());
    nlohmann::ordered_json stored = run.resume ? run.resume->stored_options : nlohmann::ordered_json();
    if (!stored.is_null()) stored["model"] = "the checkpoint's";
    const std::vector<ExplainedOption> options =
        ExplainOptions(OptionsOfRun(context, run), effective.values, reasons, stored);
    text += FormatExplanation(options);
    (*summary)["options"] = EncodeExplanation(options);
  }
  if (settings.dry_run) {
    if (!text.empty()) text += "\n";
    status = TellDryRun(settings, context, run, &text, summary);
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return status;
}

}  // namespace trainwright
