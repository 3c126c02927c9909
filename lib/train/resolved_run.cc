#include "lib/train/resolved_run.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "lib/base/host.h"
#include "lib/base/log.h"
#include "lib/base/units.h"
#include "lib/device/accelerator.h"
#include "lib/device/device.h"
#include "lib/device/device_memory.h"
#include "lib/dist/rank_threads.h"
#include "lib/io/process_memory.h"
#include "lib/memory/agreed_batch.h"
#include "lib/memory/batch_search.h"
#include "lib/model/open_model.h"
#include "lib/model/peft_folder.h"
#include "lib/nn/precision.h"
#include "lib/run/run_planner.h"
#include "lib/run/run_traps.h"
#include "lib/run/settings_check.h"
#include "lib/spec/family.h"
#include "lib/spec/model_files.h"
#include "lib/spec/usual_sizes.h"
#include "lib/train/batch_fit.h"
#include "lib/train/device_choice.h"
#include "lib/train/plan_objective.h"
#include "lib/train/resolve_steps.h"
#include "lib/train/run_passes.h"

namespace trainwright {
namespace {

constexpr double kManyPasses = 16;  // over the data
constexpr double kFindBatchTimeS = 20;

/// Tells of sets that are named and not read: those of records that the objective's mode has no use for.
void WarnOfUnread(const TrainJobContext& context, const ResolvedRun& run) {
  for (const OrderedSet& set : run.data->sets()) {
    const bool is_read = std::any_of(run.loaders.begin(), run.loaders.end(), [&](const auto& loader) {
      const std::vector<OrderedSet>& sets = loader.second->order().sets();
      return std::any_of(sets.begin(), sets.end(),
                         [&](const OrderedSet& own) { return own.number == set.number; });
    });
    if (is_read) continue;
    WarnOnce(context, run.data->sources().at(set.number).path + ": is not read, for this run takes no " +
                          RecordKindName(set.records) + " records");
  }
}

void WarnOfOtherEmbedding(const TrainSettings& settings, const TrainJobContext& context,
                          const ResolvedRun& run) {
  if (!context.world->is_writer()) return;
  const auto trained = ObjectiveOf(run.plan, context.objectives)->EmbeddingOf(run.data->set());
  const std::string folder =
      settings.adapter.empty() ? run.model.start->folder : ResolveCheckpoint(settings.adapter);
  const std::string warning = WarningOfOtherEmbedding(folder, trained);
  if (!warning.empty()) LogWarning(warning);
}

/// What the run's model is read from: one that is no preset.
std::string ConfigPathOf(const TrainSettings& settings, const ModelChoice& model) {
  return model.start ? model.start->folder + "/" + kConfigFileName : settings.model;
}

/// A model whose config.json asks for attention in both directions is trained to embed, by what --attn says.
void RequireAttention(const TrainSettings& settings, const TrainJobContext& context, const TrainPlan& plan,
                      const ResolvedRun& run) {
  if (run.model.is_causal || ObjectiveOf(plan, context.objectives)->EmbeddingOf(run.data->set())) return;
  RequireCausal(/*is_causal=*/false, ConfigPathOf(settings, run.model));
}

/// Of dropout that transformers would apply.
void WarnOfDropout(const TrainSettings& settings, const TrainJobContext& context, const ModelChoice& model) {
  if (model.config.dropouts.empty()) return;
  std::string list;
  for (const auto& [name, share] : model.config.dropouts) {
    list += (list.empty() ? "" : ", ") + name + " " + nlohmann::json(share).dump();
  }
  WarnOnce(context, ConfigPathOf(settings, model) + ": dropout (" + list +
                        ", as transformers reads it) is not applied");
}

PlannedRun Plan(const TrainSettings& settings, const TrainJobContext& context,
                const std::optional<DocumentSplit>& split, const ResolvedRun& run) {
  PlanFacts facts = FactsOf(settings, context, run);
  facts.eval_split = split;
  if (!settings.adapter.empty()) {
    const std::string adapter = ResolveCheckpoint(settings.adapter);
    const PeftConfig config = ReadPeftConfig(adapter);
    RequireModelOfAdapter(adapter, config, run.model.config);
    facts.adapter = config.lora;
  }
  return PlanRun(settings, facts);
}

std::string WhyThisBatch(const BatchSearch& search) {
  if (search.chosen && search.stop == BatchStop::kMemory) return "the fastest of those that fit";
  if (search.chosen) return "larger ones are no faster";
  return search.stop == BatchStop::kMemory ? "larger ones do not fit" : "the largest that was tried in time";
}

/// --find-batch: the settings with the micro-batch that was found.
TrainSettings FindBatch(const TrainSettings& asked, const TrainJobContext& context, const TrainPlan& plan,
                        const ResolvedRun& run, ChoiceLog* log) {
  ReleaseHeldInfo();  // it takes its time
  const ComputeChoice& compute = run.compute;
  const bool on_cpu = compute.device.is_cpu();
  int64_t memory_bytes = on_cpu ? AvailableMemoryBytes() : FreeDeviceBytes(compute.device);
  // All have looked before one takes of it.
  memory_bytes /= RanksThatShare(context.world, on_cpu ? MachineIdentity() : GpuIdentity(compute.device));
  if (context.process.memory_cap_bytes) memory_bytes = *context.process.memory_cap_bytes;
  const std::shared_ptr<const Objective> objective = ObjectiveOf(plan, context.objectives);
  if (memory_bytes > 0) {
    const int64_t held_bytes = objective->HeldBytes(ShapeOfStep(plan), run.model.config);
    memory_bytes = std::max<int64_t>(1, memory_bytes - held_bytes);
  }
  const bool keeps_step = asked.batch || asked.accum;
  const BatchSearch search =
      SearchBatch(context.families,
                  {.training = MemoryOf(context, run, plan),
                   .passes = LongestMicroBatches(objective, LoadersOf(OpenLoadersApart(context, run, plan)),
                                                 keeps_step ? plan.samples_per_rank() : 0),
                   .time_s = kFindBatchTimeS,
                   .memory_bytes = memory_bytes,
                   .offload_folder = compute.offload_folder});
  const BatchPoint found = AgreeOnBatch(context.world, search);
  int64_t batch = found.batch;
  TrainSettings settings = asked;
  if (batch == 0) {
    WarnOnce(context,
             "--find-batch: not one sample could be tried; batch " + std::to_string(plan.batch) + " stays");
    return settings;
  }
  const bool is_own = (search.chosen ? *search.chosen : search.points.back()).batch == batch;
  std::string reason = FormatCount(found.tokens.median) + " tokens/s, " +
                       (is_own ? WhyThisBatch(search) : "larger ones do not suit every rank");
  if (keeps_step) {
    const int64_t samples = plan.samples_per_rank();
    const int64_t most = plan.exact_world > 0 ? samples * plan.ranks / plan.exact_world : samples;
    batch = std::min(batch, most);
    while (most % batch != 0) --batch;
    settings.accum = samples / batch;
    reason += "; --accum " + std::to_string(*settings.accum) + " keeps the " +
              std::to_string(plan.samples_per_step()) + " samples a step";
  }
  settings.batch = batch;
  if (!keeps_step && plan.exact_world == 0) {
    settings.accum = AccumOfMeasuredBatch(batch, plan.ranks);
    reason += "; --accum " + std::to_string(*settings.accum) + " makes a step of at least " +
              std::to_string(kLeastSamplesAStep) + " samples";
  }
  log->Announce({{"batch", reason, "batch " + std::to_string(batch)}});
  return settings;
}

/// The settings with a micro-batch that fits the GPU, where nobody chose one.
TrainSettings FitGpu(const TrainSettings& asked, const TrainJobContext& context, const TrainPlan& plan,
                     const ResolvedRun& run, ChoiceLog* log) {
  if (run.device_share_bytes == 0 || !ObjectiveOf(plan, context.objectives)->takes_label_passes())
    return asked;
  MemoryRequest request = MemoryOf(context, run, plan);
  request.kinds.fp8 = plan.fp8;
  const int64_t state_bytes = StateMemory(context.families, request).of_model();
  return FitBatch(asked, context.families, request, plan, MemoryToFit(run.device_share_bytes, state_bytes),
                  log);
}

/// Whether an epoch is meant to have all tokens in its samples: none are drawn, and no set comes more often.
bool TakesAllTokens(const TrainJobContext& context, const ResolvedRun& run) {
  const std::vector<OrderedSet>& sets = run.data->sets();
  const bool weighted =
      std::any_of(sets.begin(), sets.end(), [](const OrderedSet& set) { return set.weight != set.chunks; });
  return !weighted && run.stream().rules() == nullptr &&
         context.objectives.Find(run.plan.objective).description.goes_by_seq();
}

/// So that a sample without room ends a run before its first step, and not at the step that draws it: where
/// the limit alone does not tell, the data is read through once.
void RequireRoomForSamples(const TrainJobContext& context, ResolvedRun* run) {
  const MicroBatchRule rule = run->plan.micro_batches();
  if (rule.max_tokens == 0 || rule.max_tokens >= run->plan.sequence_tokens) return;
  if (!run->epoch) run->epoch = CountEpoch(context, run->plan, *run);
  RequireRoom(rule, static_cast<int64_t>(run->epoch->longest_tokens));
}

}  // namespace

OpenedLoaders OpenLoadersApart(const TrainJobContext& context, const ResolvedRun& run,
                               const TrainPlan& plan) {
  return OpenLoaders(context, run, plan,
                     {.workers = 0, .skip_bad_chunks = run.compute.loader.skip_bad_chunks});
}

int64_t LeastDeviceShare(const TrainJobContext& context, c10::Device device) {
  if (device.is_cpu()) return 0;
  int64_t own_bytes = WholeDeviceBytes(device) / RanksThatShare(context.world, GpuIdentity(device));
  if (context.process.memory_cap_bytes) {
    const int64_t cap_bytes = *context.process.memory_cap_bytes;
    own_bytes = own_bytes > 0 ? std::min(own_bytes, cap_bytes) : cap_bytes;
  }
  return LeastOfRanks(context.world, own_bytes);
}

std::string EvaluationNameOf(const TrainSettings& settings, const ResolvedRun& run) {
  const std::string data = run.data->EvaluationName(run.plan.eval_split, settings.eval_tokens.value_or(0));
  if (data.empty()) return "";
  return data + ", --seq " + std::to_string(run.plan.sequence_tokens) + ", --objective " + run.plan.objective;
}

bool LacksEvaluation(const ResolvedRun& run, const TrainingHistory& history, int64_t step) {
  if (run.data->evaluated(run.plan.eval_split) == nullptr) return false;
  if (history.compares_anew()) return true;
  if (!run.resume) return step == 0;
  if (run.resume->of_parent) return !history.evaluation_nats(step);
  const int64_t eval_every = run.cadence.eval_every;
  const bool due = step >= run.plan.schedule.total_steps || (eval_every > 0 && step % eval_every == 0);
  return history.evaluation_is_left(step) || (due && !history.evaluation_nats(step));
}

MemoryRequest MemoryOf(const TrainJobContext& context, const ResolvedRun& run, const TrainPlan& plan) {
  const ComputeChoice& compute = run.compute;
  return {.model = run.model.config,
          .precision = plan.precision,
          .device = compute.device,
          .tuning = plan.tuning,
          .optimizer = plan.optimizer,
          .checkpointing = compute.checkpointing,
          .tbptt = plan.tbptt,
          .offload = compute.offload,
          .kinds = compute.kinds,
          .optimizers = context.optimizers,
          .ranks = plan.ranks,
          .sharding = plan.sharding(),
          .gives_gradients_away = plan.gives_gradients_away(),
          .exchange = {.bucket_bytes = compute.bucket_bytes, .exact_leaves = plan.exact_world},
          .objective_levers = ObjectiveLevers(plan, context.objectives)};
}

void ResolveNewRun(const TrainSettings& settings, const TrainJobContext& context, ChoiceLog* log,
                   ResolvedRun* run) {
  const ShardSet& set = run->data->set();
  run->model = ChooseModel(context.families.descriptions(), settings, set.header().tokenizer,
                           IsAccelerator(run->compute.device));
  run->data->RequireWeighable(settings.data_weights);
  log->Announce(run->data->WeighSets(settings.data_weights));
  std::optional<DocumentSplit> split;
  RequireSplitOfSeed(settings);
  if (!settings.eval_split.empty()) {
    split = ParseDocumentSplit(settings.eval_split, settings.eval_split_seed.value_or(0), &set,
                               settings.skip_bad_chunks > 0);
  }
  PlannedRun planned = Plan(settings, context, split, *run);
  RequireResidualStream(settings, planned.plan, run->model.config);
  RequireAttention(settings, context, planned.plan, *run);
  if (settings.find_batch) {
    run->plan = planned.plan;
    TakeFp8(context, run);
    ChooseHeadSlices(settings, context, log, run);
    planned = Plan(FindBatch(settings, context, planned.plan, *run, log), context, split, *run);
  } else if (const TrainSettings fitted = FitGpu(settings, context, planned.plan, *run, log);
             fitted.batch != settings.batch) {
    planned = Plan(fitted, context, split, *run);
  }
  run->plan = planned.plan;
  CheckStepDivision(settings, run->plan);
  CheckShards(settings, context, run->plan);
  if (!settings.find_batch) TakeFp8(context, run);
  run->cadence = PlanCadence(settings, run->plan.schedule.total_steps);
  CountHeldOut(settings, run);
  run->epoch = planned.epoch;
  RequireRoomForSamples(context, run);
  // Where the data is read many times, reading it once more to say so is cheap.
  const double most_tokens = static_cast<double>(run->plan.schedule.total_steps) *
                             static_cast<double>(run->plan.samples_per_step()) *
                             static_cast<double>(run->plan.sequence_tokens);
  if (!run->epoch && most_tokens > kManyPasses * static_cast<double>(set.totals().tokens)) {
    run->epoch = CountEpoch(context, run->plan, *run);
  }
  CheckTuning(settings, context, *run);
  for (const RecordKind records : run->data->records()) {
    const TakenRecords* taken = context.objectives.Find(run->plan.objective).description.FindRecords(records);
    if (taken == nullptr || taken->warning.empty()) continue;
    WarnOnce(context, DataNames(settings) + ": " + taken->warning);
  }
  OpenOwnLoaders(settings, context, log, run);
  WarnOfUnread(context, *run);
  WarnOfDropout(settings, context, run->model);
  if (run->model.start) WarnOfOtherEmbedding(settings, context, *run);
  if (run->model.reason) run->opening_reasons.push_back(*run->model.reason);
  run->opening_reasons.insert(run->opening_reasons.end(), planned.reasons.begin(), planned.reasons.end());
}

std::vector<std::string> TrapsOf(const TrainSettings& settings, const TrainJobContext& context,
                                 const ResolvedRun& run) {
  const TrainPlan& plan = run.plan;
  RunSetup setup = {.total_steps = plan.schedule.total_steps,
                    .warmup_steps = plan.schedule.warmup_steps,
                    .peak_lr = plan.schedule.peak_lr,
                    .warmup_is_wanted = settings.warmup || settings.warmup_ratio,
                    .batch = plan.batch,
                    .accum = plan.accum,
                    .ranks = plan.ranks,
                    .log_every = settings.log_every.value_or(1),
                    .save_every = run.cadence.save_every,
                    .eval_every = settings.eval_every,
                    .has_eval_data = run.data->evaluated(plan.eval_split) != nullptr,
                    .resume = run.resume && run.resume->state.trainer.step > 0,
                    .save_model_only = settings.save_model_only,
                    .fp16_on_cpu = plan.precision == Precision::kFp16 && run.compute.device.is_cpu(),
                    .emulates_bf16 = plan.precision == Precision::kBf16 &&
                                     !HasFastProducts(Precision::kBf16, run.compute.device),
                    .data_chunks = run.data->set().chunks(),
                    .data_tokens = run.data->set().totals().tokens,
                    .sequence_tokens = plan.sequence_tokens,
                    .stated_positions = run.model.config.max_positions,
                    .preset = settings.preset,
                    .preset_batch = context.preset_batch,
                    .preset_accum = context.preset_accum};
  // A tenth of the run is nobody's choice, and short runs have none.
  if (settings.save_every.empty()) setup.save_every = {};
  if (run.epoch) {
    setup.epoch_samples = static_cast<int64_t>(run.epoch->samples);
    if (TakesAllTokens(context, run)) setup.epoch_tokens = run.epoch->tokens;
    setup.held_out_tokens = run.held_out.held_out_tokens;
    setup.unreadable_chunks = run.epoch->unreadable_chunks;
    if (setup.unreadable_chunks > 0) setup.data_tokens = run.epoch->stored_tokens;
    setup.passes = static_cast<double>(plan.schedule.total_steps) *
                   static_cast<double>(plan.samples_per_step()) / static_cast<double>(run.epoch->samples);
  }
  return FindTraps(setup);
}

}  // namespace trainwright
