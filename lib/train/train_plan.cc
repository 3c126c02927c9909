#include "lib/train/train_plan.h"

#include <algorithm>
#include <cmath>

#include "lib/base/error.h"
#include "lib/base/units.h"
#include "lib/eval/checkpoint.h"

namespace trainwright {
namespace {

constexpr int64_t kLeastDefaultSteps = 100;
constexpr int64_t kMostSteps = int64_t{1} << 40;

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

Precision PrecisionNamed(const std::string& name) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kFp16}) {
    if (PrecisionName(precision) == name) return precision;
  }
  throw Error(ErrorCode::kBadInput, "precision", "unknown name '" + name + "'");
}

template <typename Value>
void ReadField(const nlohmann::json& json, const char* name, Value* value) {
  json.at(name).get_to(*value);
}

}  // namespace

SampleStreamOptions TrainPlan::stream_options() const {
  return {.sequence_tokens = sequence_tokens, .seed = seed, .window_chunks = window_chunks, .shuffle = true};
}

nlohmann::ordered_json EncodePlan(const TrainPlan& plan) {
  return {{"batch", plan.batch},
          {"accum", plan.accum},
          {"sequence_tokens", plan.sequence_tokens},
          {"window_chunks", plan.window_chunks},
          {"seed", plan.seed},
          {"precision", PrecisionName(plan.precision)},
          {"total_steps", plan.schedule.total_steps},
          {"length_rule", plan.length_rule},
          {"schedule", ScheduleKindName(plan.schedule.kind)},
          {"lr", plan.schedule.peak_lr},
          {"min_lr_ratio", plan.schedule.final_lr_ratio},
          {"warmup_steps", plan.schedule.warmup_steps},
          {"beta1", plan.optimizer.beta1},
          {"beta2", plan.optimizer.beta2},
          {"epsilon", plan.optimizer.epsilon},
          {"weight_decay", plan.optimizer.weight_decay},
          {"clip", plan.clip}};
}

TrainPlan DecodePlan(const nlohmann::json& json, const std::string& path) {
  TrainPlan plan;
  try {
    ReadField(json, "batch", &plan.batch);
    ReadField(json, "accum", &plan.accum);
    ReadField(json, "sequence_tokens", &plan.sequence_tokens);
    ReadField(json, "window_chunks", &plan.window_chunks);
    ReadField(json, "seed", &plan.seed);
    plan.precision = PrecisionNamed(json.at("precision").get<std::string>());
    ReadField(json, "total_steps", &plan.schedule.total_steps);
    ReadField(json, "length_rule", &plan.length_rule);
    plan.schedule.kind = ParseScheduleKind(json.at("schedule").get<std::string>(), "schedule");
    ReadField(json, "lr", &plan.schedule.peak_lr);
    ReadField(json, "min_lr_ratio", &plan.schedule.final_lr_ratio);
    ReadField(json, "warmup_steps", &plan.schedule.warmup_steps);
    ReadField(json, "beta1", &plan.optimizer.beta1);
    ReadField(json, "beta2", &plan.optimizer.beta2);
    ReadField(json, "epsilon", &plan.optimizer.epsilon);
    ReadField(json, "weight_decay", &plan.optimizer.weight_decay);
    ReadField(json, "clip", &plan.clip);
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kBadInput, path, std::string("its training plan cannot be read: ") + error.what());
  } catch (const Error& error) {
    throw Error(ErrorCode::kBadInput, path, std::string("its training plan cannot be read: ") + error.what());
  }
  if (plan.batch < 1 || plan.accum < 1 || plan.sequence_tokens < 1 || plan.window_chunks < 1 ||
      plan.schedule.total_steps < 1) {
    throw Error(ErrorCode::kBadInput, path, "its training plan holds a size below 1");
  }
  return plan;
}

PlannedRun PlanRun(const TrainSettings& settings, const ModelConfig& model, at::Device device,
                   const std::function<EpochCounts(const SampleStreamOptions&)>& count_epoch) {
  PlannedRun planned;
  TrainPlan& plan = planned.plan;
  const auto because = [&](const std::string& reason) { planned.reasons.push_back(reason); };

  const bool gpu = !device.is_cpu();
  plan.precision = ParsePrecision(settings.mixed_precision.empty() ? "no" : settings.mixed_precision, device);
  if (settings.mixed_precision == "auto") {
    because("precision " + PrecisionName(plan.precision) + ": this device " +
            (plan.precision == Precision::kBf16 ? "multiplies bf16 fast" : "has no fast bf16 products"));
  }
  plan.seed = settings.seed.value_or(0);
  plan.accum = settings.accum.value_or(1);
  Require(plan.accum >= 1, "--accum", plan.accum, "micro-batches: must be at least 1");

  plan.sequence_tokens = settings.seq.value_or(model.max_positions);
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
    because("batch " + std::to_string(plan.batch) + ": about " + FormatCount(micro_batch_tokens) +
            " tokens a micro-batch suit " + (gpu ? "a GPU" : "a CPU"));
  }

  plan.length_rule = LengthRule(settings);
  int64_t& steps = plan.schedule.total_steps;
  if (settings.steps) {
    Require(*settings.steps >= 1 && *settings.steps <= kMostSteps, "--steps", *settings.steps,
            "must be at least 1");
    steps = *settings.steps;
  } else {
    const EpochCounts epoch = count_epoch(plan.stream_options());
    const double steps_an_epoch =
        static_cast<double>(epoch.samples) / static_cast<double>(plan.samples_per_step());
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
        because(std::to_string(kLeastDefaultSteps) + " steps, " +
                FormatFixed(static_cast<double>(kLeastDefaultSteps) / steps_an_epoch, 1) + " epochs: " +
                one_epoch + ", too few to learn from; --steps, --epochs or --tokens decide otherwise");
        steps = kLeastDefaultSteps;
      } else {
        because(std::to_string(steps) + " steps: " + one_epoch);
      }
    }
  }

  plan.schedule.kind =
      ParseScheduleKind(settings.schedule.empty() ? "cosine" : settings.schedule, "--schedule");
  plan.schedule.final_lr_ratio = settings.min_lr_ratio.value_or(0.1);
  Require(plan.schedule.final_lr_ratio >= 0 && plan.schedule.final_lr_ratio <= 1, "--min-lr-ratio",
          plan.schedule.final_lr_ratio, "must lie in [0, 1]");
  plan.schedule.warmup_steps =
      settings.warmup.value_or(std::clamp<int64_t>(steps / 20, std::min<int64_t>(steps - 1, 1), 1000));
  Require(plan.schedule.warmup_steps >= 0 && plan.schedule.warmup_steps <= steps, "--warmup",
          plan.schedule.warmup_steps,
          "steps: must lie in [0, " + std::to_string(steps) + "], the run's length");
  plan.schedule.peak_lr = settings.lr.value_or(
      std::min(3e-3, 0.5 / static_cast<double>(std::max<int64_t>(1, model.hidden_size))));
  Require(plan.schedule.peak_lr >= 0 && std::isfinite(plan.schedule.peak_lr), "--lr", plan.schedule.peak_lr,
          "must be a number of at least 0");
  if (!settings.lr) {
    because("learning rate " + nlohmann::json(plan.schedule.peak_lr).dump() + ": 0.5 / hidden size " +
            std::to_string(model.hidden_size) + ", at most 0.003");
  }
  plan.optimizer.weight_decay = settings.weight_decay.value_or(plan.optimizer.weight_decay);
  Require(plan.optimizer.weight_decay >= 0, "--weight-decay", plan.optimizer.weight_decay,
          "must be at least 0");
  plan.clip = settings.clip.value_or(plan.clip);
  Require(plan.clip >= 0, "--clip", plan.clip, "must be at least 0");
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
  RequireSame("--warmup", settings.warmup, plan->schedule.warmup_steps);
  RequireSame("--weight-decay", settings.weight_decay, plan->optimizer.weight_decay);
  RequireSame("--clip", settings.clip, plan->clip);
  RequireSame("--seed", settings.seed, plan->seed);
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
