#include "lib/train/resolve_steps.h"

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/device/accelerator.h"
#include "lib/model/language_model.h"
#include "lib/model/open_model.h"
#include "lib/nn/linear/fp8.h"
#include "lib/nn/precision.h"
#include "lib/run/loader_plan.h"
#include "lib/run/remembered_options.h"
#include "lib/run/settings_check.h"
#include "lib/spec/family.h"
#include "lib/spec/fp8_parts.h"
#include "lib/train/plan_objective.h"

namespace trainwright {

OpenedLoaders OpenLoaders(const TrainJobContext& context, const ResolvedRun& run, TrainPlan plan,
                          const LoaderOptions& loader) {
  const ObjectiveDescription& objective = context.objectives.Find(plan.objective).description;
  if (!objective.mixes) run.data->RequireAlike();
  SampleStreamOptions options = plan.stream_options();
  options.sets = run.data->sets();
  RelocateOwnFiles(objective.own, run.begun_in, &plan);
  LoaderOptions own = loader;
  own.indexes = run.indexes;
  return ObjectiveOf(plan, context.objectives)->OpenLoaders(&run.data->set(), options, own);
}

EpochCounts CountEpoch(const TrainJobContext& context, const TrainPlan& plan, const ResolvedRun& run) {
  return OpenLoadersApart(context, run, plan).at(kMainLoader)->CountEpoch();
}

void OpenOwnLoaders(const TrainSettings& settings, const TrainJobContext& context, ChoiceLog* log,
                    ResolvedRun* run) {
  PlannedLoader cache;
  PlanDataCache(settings, run->data->set().header().chunks_per_frame, run->plan.samples.block_chunks, &cache);
  run->compute.loader.cache_bytes = cache.options.cache_bytes;
  log->Announce(cache.reasons);
  run->loaders = OpenLoaders(context, *run, run->plan, run->compute.loader);
}

PlanChoices ChoicesOf(const TrainJobContext& context) {
  PlanChoices choices;
  for (const ObjectiveKind& kind : context.objectives.all()) choices.objectives.push_back(kind.description);
  for (const OptimizerKind& kind : context.optimizers.all()) choices.optimizers.push_back(kind.description);
  return choices;
}

void WarnOnce(const TrainJobContext& context, const std::string& message) {
  if (context.world->is_writer()) LogWarning(message);
}

PlanFacts FactsOf(const TrainSettings& settings, const TrainJobContext& context, const ResolvedRun& run) {
  if (settings.objective != "auto") context.objectives.Find(settings.objective);
  if (!settings.optimizer.empty()) context.optimizers.Find(settings.optimizer);
  return {.model = run.model.config,
          .gpu = IsAccelerator(run.compute.device),
          .fast_bf16 = IsWorthwhile(Precision::kBf16, run.compute.device),
          .fast_fp16 = IsWorthwhile(Precision::kFp16, run.compute.device),
          .count_epoch = [&](const TrainPlan& plan) { return CountEpoch(context, plan, run); },
          .records = run.data->records(),
          .require_alike = [&run] { run.data->RequireAlike(); },
          .choices = ChoicesOf(context),
          .ranks = context.world->size()};
}

void CheckTuning(const TrainSettings& settings, const TrainJobContext& context, const ResolvedRun& run) {
  const std::optional<StartModel>& start = run.model.start;
  if (!settings.adapter.empty() && !settings.allow_other_base && start) {
    RequireBaseOfAdapter(ResolveCheckpoint(settings.adapter), start->folder,
                         "name the adapter's base with --init, or take this base by --allow-other-base",
                         start->provenance.at("files"));
  }
  if (run.plan.tuning.lora || run.plan.tuning.rules != ParameterRules()) {
    MakeModel(context.families, run.model.config, Precision::kFp32, at::Device(at::kMeta), std::nullopt,
              AttentionBackend::kAuto, run.plan.tuning);
  }
}

void TakeFp8(const TrainJobContext& context, ResolvedRun* run) {
  const TrainPlan& plan = run->plan;
  const ModelConfig& model = run->model.config;
  run->compute.kinds.fp8 = plan.fp8;
  if (!plan.fp8.any()) return;
  const std::string option = "--fp8 " + Fp8PartsName(plan.fp8);
  if (plan.fp8.mlp && !FamilyOf(model).has_fp8_mlp()) {
    throw Error(ErrorCode::kUsage, option,
                std::string("a model of the family ") + FamilyOf(model).model_type() +
                    " has no MLPs that can be in fp8",
                "", "use --fp8 head, or leave it out");
  }
  if (plan.fp8.head && plan.tuning.embedding && !plan.tuning.embedding->train_head) {
    throw Error(ErrorCode::kUsage, option, "no loss of this run reads the logits: it has no head to compute",
                "", plan.fp8.mlp ? "use --fp8 mlp" : "leave it out");
  }
  if (plan.tuning.frozen_format != WeightFormat::kPlain) {
    throw Error(ErrorCode::kUsage, option + ", --quant", "cannot both be in force", "",
                "leave out one of the two");
  }
  const auto require_multiple = [&](const char* size, int64_t value) {
    if (value % kFp8Multiple == 0) return;
    throw Error(ErrorCode::kUsage, option,
                "takes models whose sizes are multiples of " + std::to_string(kFp8Multiple) + ", and the " +
                    size + " size is " + std::to_string(value),
                "", "leave it out, or choose another model");
  };
  require_multiple("hidden", model.hidden_size);
  if (plan.fp8.mlp) require_multiple("intermediate", model.intermediate_size);
  ChooseNumerics(plan.precision, run->compute.device, run->compute.kinds);
  if (run->compute.device.is_cpu()) {
    WarnOnce(context, option +
                          " on a CPU rounds as a GPU would and multiplies in higher precision: it shows what "
                          "fp8 costs in accuracy, and is slower than without");
  }
}

void CountHeldOut(const TrainSettings& settings, ResolvedRun* run) {
  if (!run->plan.eval_split) return;
  const bool masked = run->plan.labels_on() == LossOn::kAssistant;
  run->held_out = run->data->CountHeldOut(*run->plan.eval_split, masked, settings.skip_bad_chunks > 0);
}

void CheckShards(const TrainSettings& settings, const TrainJobContext& context, const TrainPlan& plan) {
  CheckSharding(settings, plan);
  if (plan.sharding() == Sharding::kNone) return;
  const OptimizerDescription& optimizer = context.optimizers.Find(plan.optimizer.name).description;
  if (optimizer.shardable) return;
  throw Error(ErrorCode::kUsage, "--zero " + std::to_string(plan.zero) + ", --optimizer " + optimizer.name,
              "cannot both be in force: its rule needs more than one rank's part of the weights", "",
              "leave out --zero");
}

}  // namespace trainwright
