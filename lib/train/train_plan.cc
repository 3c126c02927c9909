#include "lib/train/train_plan.h"

#include <algorithm>
#include <cmath>

#include "lib/base/error.h"
#include "lib/base/units.h"
#include "lib/model/open_model.h"
#include "lib/model/peft_folder.h"
#include "lib/nn/precision_option.h"

namespace trainwright {
namespace {

/// Tokens of a sample that nobody chose: a long context is a model's limit, not what its users train at.
constexpr int64_t kLongestUsualSequence = 2048;
constexpr int64_t kLeastDefaultSteps = 100;
constexpr int64_t kMostSteps = int64_t{1} << 40;
constexpr int64_t kMostBlockChunks = 1 << 16;
constexpr double kLoraLearningRate = 2e-4;

template <typename Number>
void Require(bool holds, const char* flag, Number value, const std::string& problem) {
  if (!holds) throw Error(ErrorCode::kUsage, flag, nlohmann::json(value).dump() + " " + problem);
}

/// "steps 100" and so on for what the user asked; empty when nothing was asked.
std::string LengthRule(const TrainSettings& settings) {
  const int given = settings.steps.has_value() + settings.epochs.has_value() + settings.tokens.has_value();
  if (given > 1) {
    throw Error(ErrorCode::kUsage, "--steps, --epochs, --tokens", "exclude each other", "",
                "give one of them");
  }
  if (settings.steps) return "steps " + std::to_string(*settings.steps);
  if (settings.epochs) return "epochs " + nlohmann::json(*settings.epochs).dump();
  if (settings.tokens) return "tokens " + std::to_string(*settings.tokens);
  return "";
}

[[noreturn]] void RefuseChange(const std::string& flag, const std::string& asked, const std::string& stored) {
  throw Error(ErrorCode::kUsage, flag, asked + " differs from the run's " + stored, "",
              "a resumed run continues its plan: leave out " + flag + ", or start another run with --out");
}

template <typename Value>
void RequireSame(const char* flag, const std::optional<Value>& asked, const Value& stored) {
  if (asked && *asked != stored) {
    RefuseChange(flag, nlohmann::json(*asked).dump(), nlohmann::json(stored).dump());
  }
}

/// For flags whose absence says nothing.
void RequireFlagOfRun(const char* flag, bool asked, bool stored) {
  if (asked && !stored) RefuseChange(flag, "being on", "plan, which has it off");
}

}  // namespace

SampleStreamOptions TrainPlan::stream_options() const {
  return {.sequence_tokens = sequence_tokens,
          .seed = seed,
          .window_chunks = window_chunks,
          .block_chunks = block_chunks,
          .shuffle = true,
          .loss_on = labels_on(),
          .split = eval_split};
}

nlohmann::ordered_json PlanAsOptions(const TrainPlan& plan) {
  const ScheduleOptions& schedule = plan.schedule;
  nlohmann::ordered_json values = {
      {"steps", schedule.total_steps},
      {"batch", plan.batch},
      {"accum", plan.accum},
      {"seq", plan.sequence_tokens},
      {"lr", schedule.peak_lr},
      {"schedule", ScheduleKindName(schedule.kind)},
      {"beta2", plan.optimizer.beta2},
      {"adam-eps", plan.optimizer.epsilon},
      {"weight-decay", plan.optimizer.weight_decay},
      {"optimizer-states", OptimizerStatesName(plan.optimizer.states)},
      {"clip", plan.clip},
      {"objective", plan.objective},
      {"z-loss", plan.z_loss},
      {"label-smoothing", plan.label_smoothing},
      {"drop-last", plan.drop_last},
      {"seed", plan.seed},
      {"mixed-precision", plan.precision == Precision::kFp32 ? "no" : PrecisionName(plan.precision)}};
  if (plan.block_chunks > 1) values["shuffle-block"] = plan.block_chunks;
  if (!plan.data_weights.empty()) values["data-weights"] = plan.data_weights;
  if (plan.objective == kSftObjective) values["loss-on"] = NameOf(plan.loss_on);
  if (plan.eval_split) {
    values.update({{"eval-split", plan.eval_split->asked}, {"eval-split-seed", plan.eval_split->seed}});
  }
  if (const std::optional<LoraOptions>& lora = plan.tuning.lora) {
    values.update({{"lora", lora->rank},
                   {"lora-alpha", lora->alpha},
                   {"lora-dropout", lora->dropout},
                   {"lora-targets", lora->targets},
                   {"quant", plan.tuning.frozen_format == WeightFormat::kNf4 ? "nf4" : "none"}});
  }
  // A fraction of a step is one-cycle's default, which the length gives again.
  if (schedule.warmup_steps == std::floor(schedule.warmup_steps)) {
    values["warmup"] = static_cast<int64_t>(schedule.warmup_steps);
  }
  if (schedule.kind == ScheduleKind::kWsd) values["decay-steps"] = schedule.decay_steps;
  if (schedule.kind != ScheduleKind::kOneCycle) values["min-lr-ratio"] = schedule.final_lr_ratio;
  if (schedule.cycle_beta1) {
    values["cycle-momentum"] = true;
  } else {
    values["beta1"] = plan.optimizer.beta1;
  }
  return values;
}

namespace {

double StepsAnEpoch(const EpochCounts& epoch, const TrainPlan& plan) {
  const auto samples = static_cast<int64_t>(epoch.samples);
  if (!plan.drop_last) return static_cast<double>(samples) / static_cast<double>(plan.samples_per_step());
  const int64_t steps = samples / plan.samples_per_step();
  if (steps == 0) {
    throw Error(ErrorCode::kUsage, "--drop-last",
                "skips everything: an epoch has " + std::to_string(samples) + " samples, a step takes " +
                    std::to_string(plan.samples_per_step()),
                "", "lower --batch or --accum, or leave out --drop-last");
  }
  return static_cast<double>(steps);
}

double WarmupSteps(double ratio, int64_t total_steps) {
  Require(ratio >= 0 && ratio <= 1, "--warmup-ratio", ratio, "must lie in [0, 1]");
  return std::ceil(ratio * static_cast<double>(total_steps));
}

/// The shape of the learning rate over a run whose length is known.
void PlanSchedule(const TrainSettings& settings, const ModelConfig& model, PlannedRun* planned) {
  ScheduleOptions& schedule = planned->plan.schedule;
  const auto because = [&](const char* option, const std::string& headline, const std::string& text) {
    planned->reasons.push_back({option, text, headline});
  };
  const int64_t steps = schedule.total_steps;
  schedule.kind = ParseScheduleKind(settings.schedule.empty() ? "cosine" : settings.schedule, "--schedule");
  const bool wsd = schedule.kind == ScheduleKind::kWsd, one_cycle = schedule.kind == ScheduleKind::kOneCycle;

  if (one_cycle && settings.min_lr_ratio) {
    throw Error(ErrorCode::kUsage, "--min-lr-ratio", "has no meaning with --schedule one-cycle", "",
                "one-cycle ends at a 250,000th of the peak; leave out one of the two");
  }
  schedule.final_lr_ratio =
      one_cycle ? 1 / kOneCycleDiv / kOneCycleFinalDiv : settings.min_lr_ratio.value_or(wsd ? 0.0 : 0.1);
  Require(schedule.final_lr_ratio >= 0 && schedule.final_lr_ratio <= 1, "--min-lr-ratio",
          schedule.final_lr_ratio, "must lie in [0, 1]");

  if (settings.warmup && settings.warmup_ratio) {
    throw Error(ErrorCode::kUsage, "--warmup, --warmup-ratio", "exclude each other", "", "give one of them");
  }
  if (settings.warmup_ratio) {
    schedule.warmup_steps = WarmupSteps(*settings.warmup_ratio, steps);
    because("warmup", "", "the share of the run that --warmup-ratio says, rounded up");
  } else if (settings.warmup) {
    Require(*settings.warmup >= 0 && *settings.warmup <= kMostSteps, "--warmup", *settings.warmup,
            "steps: must be at least 0");
    // A rise that the run does not finish is a plan, of which the run warns; these two have no shape for it.
    if ((wsd || one_cycle) && *settings.warmup > steps) {
      Require(
          false, "--warmup", *settings.warmup,
          "steps: must lie in [0, " + std::to_string(steps) + "], the run's length, with this --schedule");
    }
    schedule.warmup_steps = static_cast<double>(*settings.warmup);
  } else if (one_cycle) {
    schedule.warmup_steps = kOneCycleWarmupRatio * static_cast<double>(steps);
    because("warmup", "", "a tenth of the run, as one-cycle has it");
  } else {
    schedule.warmup_steps =
        static_cast<double>(std::clamp<int64_t>(steps / 20, std::min<int64_t>(steps - 1, 1), 1000));
    because("warmup", "", "a twentieth of the run, at most 1000 steps");
  }

  const auto only_with = [](bool given, bool holds, const char* flag, const char* schedule_name) {
    if (!given || holds) return;
    throw Error(ErrorCode::kUsage, flag, std::string("has a meaning only with --schedule ") + schedule_name);
  };
  only_with(settings.decay_steps.has_value(), wsd, "--decay-steps", "wsd");
  only_with(settings.cycle_momentum, one_cycle, "--cycle-momentum", "one-cycle");
  schedule.cycle_beta1 = settings.cycle_momentum;
  if (wsd) {
    const int64_t after_warmup = steps - static_cast<int64_t>(schedule.warmup_steps);
    if (after_warmup < 1) {
      throw Error(ErrorCode::kUsage, "--warmup",
                  std::to_string(*settings.warmup) + " steps leave none for the decay of --schedule wsd");
    }
    schedule.decay_steps = settings.decay_steps.value_or(
        std::clamp<int64_t>(std::llround(kWsdDecayRatio * static_cast<double>(steps)), 1, after_warmup));
    Require(schedule.decay_steps >= 1 && schedule.decay_steps <= after_warmup, "--decay-steps",
            schedule.decay_steps,
            "steps: must lie in [1, " + std::to_string(after_warmup) + "], the steps after warm-up");
    if (!settings.decay_steps) {
      because("decay-steps", "decay over the last " + std::to_string(schedule.decay_steps) + " steps",
              "a fifth of the run");
    }
  }

  const bool adapters = planned->plan.tuning.lora.has_value();
  schedule.peak_lr = settings.lr.value_or(
      adapters ? kLoraLearningRate
               : std::min(3e-3, 0.5 / static_cast<double>(std::max<int64_t>(1, model.hidden_size))));
  Require(schedule.peak_lr >= 0 && std::isfinite(schedule.peak_lr), "--lr", schedule.peak_lr,
          "must be a number of at least 0");
  if (!settings.lr && adapters) {
    because("lr", "learning rate " + nlohmann::json(schedule.peak_lr).dump(),
            "what adapters are usually given");
  } else if (!settings.lr) {
    because("lr", "learning rate " + nlohmann::json(schedule.peak_lr).dump(),
            "0.5 / hidden size " + std::to_string(model.hidden_size) + ", at most 0.003");
  }
}

void PlanOptimizer(const TrainSettings& settings, TrainPlan* plan) {
  OptimizerOptions& optimizer = plan->optimizer;
  optimizer.beta1 = settings.beta1.value_or(optimizer.beta1);
  optimizer.beta2 = settings.beta2.value_or(optimizer.beta2);
  optimizer.epsilon = settings.adam_eps.value_or(optimizer.epsilon);
  optimizer.weight_decay = settings.weight_decay.value_or(optimizer.weight_decay);
  if (!settings.optimizer_states.empty()) {
    optimizer.states = ParseOptimizerStates(settings.optimizer_states, "--optimizer-states");
  }
  plan->clip = settings.clip.value_or(plan->clip);
  plan->z_loss = settings.z_loss.value_or(0.0);
  plan->label_smoothing = settings.label_smoothing.value_or(0.0);
  if (settings.beta1 && plan->schedule.cycle_beta1) {
    throw Error(ErrorCode::kUsage, "--beta1, --cycle-momentum", "exclude each other", "",
                "--cycle-momentum moves beta1 from 0.95 to 0.85 and back");
  }
  const auto below_one = [](const char* flag, double value) {
    Require(value >= 0 && value < 1, flag, value, "must be at least 0 and below 1");
  };
  const auto not_negative = [](const char* flag, double value) {
    Require(value >= 0 && std::isfinite(value), flag, value, "must be a number of at least 0");
  };
  below_one("--beta1", optimizer.beta1);
  below_one("--beta2", optimizer.beta2);
  not_negative("--adam-eps", optimizer.epsilon);
  not_negative("--weight-decay", optimizer.weight_decay);
  not_negative("--clip", plan->clip);
  not_negative("--z-loss", plan->z_loss);
  below_one("--label-smoothing", plan->label_smoothing);
}

/// \param records of the data
void PlanObjective(const TrainSettings& settings, RecordKind records, PlannedRun* planned) {
  TrainPlan& plan = planned->plan;
  if (records == RecordKind::kContrastive) {
    throw Error(ErrorCode::kBadInput, "--data", "holds contrastive records, of which no objective is made",
                "", "make the stream with pretokenize --records lm or sft");
  }
  const bool data_is_sft = records == RecordKind::kSft;
  if (settings.objective == "auto") {
    plan.objective = RecordKindName(records);
    planned->reasons.push_back(
        {"objective",
         data_is_sft ? "the shards hold conversations (sft records); only their answers are predicted"
                     : "the shards hold text (lm records)",
         data_is_sft ? "objective sft" : ""});
  } else {
    plan.objective = settings.objective;
  }
  if (plan.objective == kSftObjective && !data_is_sft) {
    throw Error(ErrorCode::kBadInput, "--objective sft",
                "the shards hold text (lm records), which does not say what is an answer", "",
                "make the stream with pretokenize --records sft, or train with --objective lm");
  }
  // "all" is what lm does anyway.
  if (plan.objective == kLmObjective && !settings.loss_on.empty() &&
      ParseLossOn(settings.loss_on) != LossOn::kAll) {
    throw Error(ErrorCode::kUsage, "--loss-on", "has a meaning only with --objective sft");
  }
  if (!settings.loss_on.empty()) plan.loss_on = ParseLossOn(settings.loss_on);
}

}  // namespace

FineTuning PlanTuning(const TrainSettings& settings) {
  FineTuning tuning;
  const auto refuse_without = [&](bool given, const char* flag) {
    if (!given) return;
    throw Error(ErrorCode::kUsage, flag, "has a meaning only with adapters", "",
                "add --lora RANK, or leave it out");
  };
  if (!settings.lora && settings.adapter.empty()) {
    refuse_without(settings.lora_alpha.has_value(), "--lora-alpha");
    refuse_without(settings.lora_dropout.has_value(), "--lora-dropout");
    refuse_without(!settings.lora_targets.empty(), "--lora-targets");
    refuse_without(settings.quant == "nf4", "--quant nf4");
    return tuning;
  }
  LoraOptions lora;
  if (settings.adapter.empty()) {
    lora.rank = *settings.lora;
    lora.alpha = settings.lora_alpha.value_or(2 * static_cast<double>(lora.rank));
    lora.dropout = settings.lora_dropout.value_or(0.0);
    if (!settings.lora_targets.empty()) lora.targets = settings.lora_targets;
  } else {
    // Its shape is given; dropout belongs to the training alone.
    lora = ReadPeftConfig(ResolveCheckpoint(settings.adapter)).lora;
    const auto require_same = [&](bool same, const char* flag) {
      if (same) return;
      throw Error(ErrorCode::kUsage, flag, "differs from that of the adapter " + settings.adapter, "",
                  std::string("leave out ") + flag);
    };
    require_same(settings.lora.value_or(lora.rank) == lora.rank, "--lora");
    require_same(settings.lora_alpha.value_or(lora.alpha) == lora.alpha, "--lora-alpha");
    require_same(settings.lora_targets.empty() || settings.lora_targets == lora.targets, "--lora-targets");
    lora.dropout = settings.lora_dropout.value_or(lora.dropout);
  }
  tuning.lora = lora;
  if (settings.quant == "nf4") tuning.frozen_format = WeightFormat::kNf4;
  return tuning;
}

PlannedRun PlanRun(const TrainSettings& settings, const ModelConfig& model, at::Device device,
                   const std::function<EpochCounts(const SampleStreamOptions&)>& count_epoch,
                   RecordKind records, const std::optional<DocumentSplit>& eval_split) {
  PlannedRun planned;
  TrainPlan& plan = planned.plan;
  plan.eval_split = eval_split;
  PlanObjective(settings, records, &planned);
  const auto because = [&](const char* option, const std::string& headline, const std::string& text) {
    planned.reasons.push_back({option, text, headline});
  };

  const bool gpu = !device.is_cpu();
  plan.precision = ParsePrecision(settings.mixed_precision.empty() ? "no" : settings.mixed_precision, device);
  if (settings.mixed_precision == "auto") {
    because("mixed-precision", "precision " + PrecisionName(plan.precision),
            plan.precision == Precision::kBf16 ? "this device multiplies bf16 fast"
                                               : "this device has no fast bf16 products");
  }
  plan.seed = settings.seed.value_or(0);
  plan.tuning = PlanTuning(settings);
  if (plan.tuning.lora && settings.adapter.empty() && !settings.lora_alpha) {
    because("lora-alpha", "", "twice the rank");
  }
  plan.drop_last = settings.drop_last;
  plan.accum = settings.accum.value_or(1);
  Require(plan.accum >= 1, "--accum", plan.accum, "micro-batches: must be at least 1");

  plan.sequence_tokens = settings.seq.value_or(std::min(model.max_positions, kLongestUsualSequence));
  if (!settings.seq) because("seq", "", "the positions of the model, at most 2048");
  Require(plan.sequence_tokens >= 1, "--seq", plan.sequence_tokens, "tokens: must be at least 1");
  if (plan.sequence_tokens > model.max_positions) {
    throw Error(ErrorCode::kUsage, "--seq",
                std::to_string(plan.sequence_tokens) + " is longer than the " +
                    std::to_string(model.max_positions) + " positions of the model",
                "", "use a shorter --seq, or a --model config.json with more max_position_embeddings");
  }
  const int64_t micro_batch_tokens = gpu ? 16384 : 2048;
  plan.batch = settings.batch.value_or(std::max<int64_t>(1, micro_batch_tokens / plan.sequence_tokens));
  Require(plan.batch >= 1, "--batch", plan.batch, "samples: must be at least 1");
  if (!settings.batch) {
    because("batch", "batch " + std::to_string(plan.batch),
            "about " + FormatCount(static_cast<double>(micro_batch_tokens)) + " tokens a micro-batch suit " +
                (gpu ? "a GPU" : "a CPU"));
  }

  const int64_t block_chunks = settings.shuffle_block.value_or(1);
  Require(block_chunks >= 1 && block_chunks <= kMostBlockChunks, "--shuffle-block", block_chunks,
          "chunks: must be from 1 to " + std::to_string(kMostBlockChunks));
  plan.block_chunks = static_cast<uint64_t>(block_chunks);
  plan.window_chunks *= plan.block_chunks;  // as many places of the data in a window
  plan.data_weights = settings.data_weights;

  plan.length_rule = LengthRule(settings);
  int64_t& steps = plan.schedule.total_steps;
  if (settings.steps) {
    Require(*settings.steps >= 1 && *settings.steps <= kMostSteps, "--steps", *settings.steps,
            "must be at least 1");
    steps = *settings.steps;
  } else {
    const EpochCounts epoch = count_epoch(plan.stream_options());
    planned.epoch = epoch;
    const double steps_an_epoch = StepsAnEpoch(epoch, plan);
    double wanted = steps_an_epoch;
    if (settings.epochs) {
      Require(*settings.epochs > 0, "--epochs", *settings.epochs, "must be above 0");
      wanted = *settings.epochs * steps_an_epoch;
    } else if (settings.tokens) {
      Require(*settings.tokens >= 1, "--tokens", *settings.tokens, "must be at least 1");
      wanted = static_cast<double>(*settings.tokens) / static_cast<double>(epoch.tokens) * steps_an_epoch;
    }
    if (!(wanted <= static_cast<double>(kMostSteps))) {
      throw Error(ErrorCode::kUsage, "--epochs, --tokens", "make more steps than this build counts");
    }
    steps = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(wanted)));
    if (plan.length_rule.empty()) {
      plan.length_rule = "default";
      const std::string one_epoch = "one epoch of the data is " + std::to_string(steps) + " steps";
      if (steps < kLeastDefaultSteps) {
        because("steps",
                std::to_string(kLeastDefaultSteps) + " steps, " +
                    FormatFixed(static_cast<double>(kLeastDefaultSteps) / steps_an_epoch, 1) + " epochs",
                one_epoch + ", too few to learn from; --steps, --epochs or --tokens decide otherwise");
        steps = kLeastDefaultSteps;
      } else {
        because("steps", std::to_string(steps) + " steps", one_epoch);
      }
    } else {
      because("steps", "", "as many as " + plan.length_rule + " take, rounded up");
    }
  }

  PlanSchedule(settings, model, &planned);
  PlanOptimizer(settings, &plan);
  return planned;
}

std::vector<std::string> ReconcilePlan(const TrainSettings& settings, TrainPlan* plan) {
  std::vector<std::string> warnings;
  const std::string rule = LengthRule(settings);
  if (!rule.empty() && rule != plan->length_rule && settings.steps != plan->schedule.total_steps) {
    RefuseChange("--" + rule.substr(0, rule.find(' ')), rule.substr(rule.find(' ') + 1),
                 std::to_string(plan->schedule.total_steps) + " steps (" + plan->length_rule + ")");
  }
  RequireSame("--seq", settings.seq, plan->sequence_tokens);
  RequireSame("--lr", settings.lr, plan->schedule.peak_lr);
  RequireSame("--min-lr-ratio", settings.min_lr_ratio, plan->schedule.final_lr_ratio);
  if (settings.warmup && static_cast<double>(*settings.warmup) != plan->schedule.warmup_steps) {
    RefuseChange("--warmup", std::to_string(*settings.warmup), EncodePlan(*plan).at("warmup_steps").dump());
  }
  if (settings.warmup_ratio) {
    const double asked = WarmupSteps(*settings.warmup_ratio, plan->schedule.total_steps);
    if (asked != plan->schedule.warmup_steps) {
      RefuseChange("--warmup-ratio", nlohmann::json(*settings.warmup_ratio).dump(),
                   "warm-up of " + EncodePlan(*plan).at("warmup_steps").dump() + " steps");
    }
  }
  RequireSame("--decay-steps", settings.decay_steps, plan->schedule.decay_steps);
  RequireSame("--beta1", settings.beta1, plan->optimizer.beta1);
  RequireSame("--beta2", settings.beta2, plan->optimizer.beta2);
  RequireSame("--adam-eps", settings.adam_eps, plan->optimizer.epsilon);
  RequireSame("--weight-decay", settings.weight_decay, plan->optimizer.weight_decay);
  if (!settings.optimizer_states.empty() &&
      ParseOptimizerStates(settings.optimizer_states, "--optimizer-states") != plan->optimizer.states) {
    RefuseChange("--optimizer-states", settings.optimizer_states,
                 OptimizerStatesName(plan->optimizer.states));
  }
  RequireSame("--clip", settings.clip, plan->clip);
  if (settings.objective != "auto" && settings.objective != plan->objective) {
    RefuseChange("--objective", settings.objective, plan->objective);
  }
  if (!settings.loss_on.empty() && ParseLossOn(settings.loss_on) != plan->labels_on()) {
    RefuseChange("--loss-on", settings.loss_on, NameOf(plan->labels_on()));
  }
  RequireSame("--z-loss", settings.z_loss, plan->z_loss);
  RequireSame("--label-smoothing", settings.label_smoothing, plan->label_smoothing);
  RequireFlagOfRun("--cycle-momentum", settings.cycle_momentum, plan->schedule.cycle_beta1);
  RequireFlagOfRun("--drop-last", settings.drop_last, plan->drop_last);
  RequireSame("--shuffle-block", settings.shuffle_block, static_cast<int64_t>(plan->block_chunks));
  if (!settings.data_weights.empty() && settings.data_weights != plan->data_weights) {
    RefuseChange("--data-weights", settings.data_weights,
                 plan->data_weights.empty() ? "plan, which has none" : plan->data_weights);
  }
  RequireSame("--seed", settings.seed, plan->seed);
  const std::string split = plan->eval_split ? plan->eval_split->asked : "";
  if (!settings.eval_split.empty() && settings.eval_split != split) {
    RefuseChange("--eval-split", settings.eval_split,
                 split.empty() ? "plan, which holds nothing out" : split);
  }
  if (plan->eval_split && settings.eval_split_seed && *settings.eval_split_seed != plan->eval_split->seed) {
    RefuseChange("--eval-split-seed", std::to_string(*settings.eval_split_seed),
                 std::to_string(plan->eval_split->seed));
  }
  if (plan->eval_split && !settings.eval_data.empty()) {
    RefuseChange("--eval-data", settings.eval_data,
                 "evaluation on what --eval-split " + split + " holds out");
  }
  const LoraOptions lora = plan->tuning.lora.value_or(LoraOptions{});
  RequireSame("--lora", settings.lora, lora.rank);
  RequireSame("--lora-alpha", settings.lora_alpha, lora.alpha);
  RequireSame("--lora-dropout", settings.lora_dropout, lora.dropout);
  const std::string quant = plan->tuning.frozen_format == WeightFormat::kNf4 ? "nf4" : "none";
  if (!settings.lora_targets.empty() && settings.lora_targets != lora.targets) {
    RefuseChange("--lora-targets", settings.lora_targets, lora.targets);
  }
  if (!settings.quant.empty() && settings.quant != quant) RefuseChange("--quant", settings.quant, quant);
  if (!settings.schedule.empty() &&
      ParseScheduleKind(settings.schedule, "--schedule") != plan->schedule.kind) {
    RefuseChange("--schedule", settings.schedule, ScheduleKindName(plan->schedule.kind));
  }
  if (!settings.mixed_precision.empty() && settings.mixed_precision != "auto" &&
      ParsePrecision(settings.mixed_precision, at::Device(at::kCPU)) != plan->precision) {
    RefuseChange("--mixed-precision", settings.mixed_precision, PrecisionName(plan->precision));
  }
  const int64_t samples = plan->samples_per_step();
  const int64_t batch = settings.batch.value_or(
      settings.accum && *settings.accum > 0 ? samples / *settings.accum : plan->batch);
  const int64_t accum = settings.accum.value_or(batch > 0 ? samples / batch : 0);
  if (batch < 1 || accum < 1 || batch * accum != samples) {
    throw Error(ErrorCode::kUsage, "--batch, --accum",
                "do not make the run's " + std::to_string(samples) + " samples a step", "",
                "a resumed run may split its step otherwise, but not change its size");
  }
  if (batch != plan->batch) {
    warnings.push_back("micro-batches of " + std::to_string(batch) + " samples instead of the run's " +
                       std::to_string(plan->batch) +
                       ": the same sums in another order, so results differ by rounding");
    plan->batch = batch;
    plan->accum = accum;
  }
  return warnings;
}

}  // namespace trainwright
