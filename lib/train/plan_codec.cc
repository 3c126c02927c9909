#include <cmath>

#include "lib/base/error.h"
#include "lib/formats/json_fields.h"
#include "lib/train/train_plan.h"

namespace trainwright {
namespace {

constexpr int64_t kMostTokens = int64_t{1} << 31, kMostSteps = int64_t{1} << 40;

Precision PrecisionNamed(const std::string& name) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kFp16}) {
    if (PrecisionName(precision) == name) return precision;
  }
  throw Error(ErrorCode::kBadInput, "precision", "unknown name '" + name + "'");
}

/// 3 rather than 3.0 for what is a whole number but for one-cycle's default.
nlohmann::ordered_json EncodeSteps(double steps) {
  if (steps == std::floor(steps)) return static_cast<int64_t>(steps);
  return steps;
}

constexpr char kPlain[] = "none", kNf4[] = "nf4";

nlohmann::ordered_json EncodeLora(const std::optional<LoraOptions>& lora) {
  if (!lora) return nullptr;
  return {{"rank", lora->rank},
          {"alpha", lora->alpha},
          {"dropout", lora->dropout},
          {"targets", lora->targets},
          {"rank_stabilized", lora->rank_stabilized}};
}

FineTuning DecodeTuning(const nlohmann::json& json, const std::string& path) {
  FineTuning tuning;
  const auto quant = json.at("quant").get<std::string>();
  if (quant != kPlain && quant != kNf4) {
    throw Error(ErrorCode::kBadInput, "quant", "unknown name '" + quant + "'");
  }
  tuning.frozen_format = quant == kNf4 ? WeightFormat::kNf4 : WeightFormat::kPlain;
  const nlohmann::json& encoded = json.at("lora");
  if (encoded.is_null()) return tuning;
  LoraOptions lora;
  ReadField(encoded, "rank", path, &lora.rank);
  ReadField(encoded, "alpha", path, &lora.alpha);
  ReadField(encoded, "dropout", path, &lora.dropout);
  ReadField(encoded, "targets", path, &lora.targets);
  ReadField(encoded, "rank_stabilized", path, &lora.rank_stabilized);
  tuning.lora = lora;
  return tuning;
}

nlohmann::ordered_json EncodeSplit(const std::optional<DocumentSplit>& split) {
  if (!split) return nullptr;
  return {{"asked", split->asked}, {"seed", split->seed}, {"bound", split->bound}};
}

std::optional<DocumentSplit> DecodeSplit(const nlohmann::json& json, const std::string& path) {
  if (json.is_null()) return std::nullopt;
  DocumentSplit split;
  ReadField(json, "asked", path, &split.asked);
  ReadField(json, "seed", path, &split.seed);
  ReadField(json, "bound", path, &split.bound);
  return split;
}

}  // namespace

nlohmann::ordered_json EncodePlan(const TrainPlan& plan) {
  nlohmann::ordered_json json = {{"batch", plan.batch},
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
                                 {"warmup_steps", EncodeSteps(plan.schedule.warmup_steps)},
                                 {"decay_steps", plan.schedule.decay_steps},
                                 {"cycle_momentum", plan.schedule.cycle_beta1},
                                 {"beta1", plan.optimizer.beta1},
                                 {"beta2", plan.optimizer.beta2},
                                 {"epsilon", plan.optimizer.epsilon},
                                 {"weight_decay", plan.optimizer.weight_decay},
                                 {"optimizer_states", OptimizerStatesName(plan.optimizer.states)},
                                 {"clip", plan.clip},
                                 {"objective", plan.objective},
                                 {"loss_on", NameOf(plan.loss_on)},
                                 {"z_loss", plan.z_loss},
                                 {"label_smoothing", plan.label_smoothing},
                                 {"drop_last", plan.drop_last},
                                 {"eval_split", EncodeSplit(plan.eval_split)},
                                 {"lora", EncodeLora(plan.tuning.lora)},
                                 {"quant", plan.tuning.frozen_format == WeightFormat::kNf4 ? kNf4 : kPlain}};
  if (plan.block_chunks > 1) json["block_chunks"] = plan.block_chunks;
  if (!plan.data_weights.empty()) json["data_weights"] = plan.data_weights;
  if (plan.optimizer.name != kDefaultOptimizer) json["optimizer"] = plan.optimizer.name;
  if (!plan.optimizer.own.empty()) json["optimizer_options"] = plan.optimizer.own;
  if (!plan.objective_own.empty()) json["objective_options"] = plan.objective_own;
  return json;
}

TrainPlan DecodePlan(const nlohmann::json& json, const std::string& path) {
  TrainPlan plan;
  try {
    ReadField(json, "batch", path, &plan.batch);
    ReadField(json, "accum", path, &plan.accum);
    ReadField(json, "sequence_tokens", path, &plan.sequence_tokens);
    ReadField(json, "window_chunks", path, &plan.window_chunks);
    ReadField(json, "seed", path, &plan.seed);
    plan.precision = PrecisionNamed(json.at("precision").get<std::string>());
    ReadField(json, "total_steps", path, &plan.schedule.total_steps);
    ReadField(json, "length_rule", path, &plan.length_rule);
    plan.schedule.kind = ParseScheduleKind(json.at("schedule").get<std::string>(), "schedule");
    ReadField(json, "lr", path, &plan.schedule.peak_lr);
    ReadField(json, "min_lr_ratio", path, &plan.schedule.final_lr_ratio);
    ReadField(json, "warmup_steps", path, &plan.schedule.warmup_steps);
    ReadField(json, "beta1", path, &plan.optimizer.beta1);
    ReadField(json, "beta2", path, &plan.optimizer.beta2);
    ReadField(json, "epsilon", path, &plan.optimizer.epsilon);
    ReadField(json, "weight_decay", path, &plan.optimizer.weight_decay);
    plan.optimizer.states =
        ParseOptimizerStates(json.at("optimizer_states").get<std::string>(), "optimizer_states");
    ReadField(json, "clip", path, &plan.clip);
    ReadField(json, "decay_steps", path, &plan.schedule.decay_steps);
    ReadField(json, "cycle_momentum", path, &plan.schedule.cycle_beta1);
    ReadField(json, "objective", path, &plan.objective);
    plan.loss_on = ParseLossOn(json.at("loss_on").get<std::string>());
    ReadField(json, "z_loss", path, &plan.z_loss);
    ReadField(json, "label_smoothing", path, &plan.label_smoothing);
    ReadField(json, "drop_last", path, &plan.drop_last);
    plan.eval_split = DecodeSplit(json.at("eval_split"), path);
    plan.tuning = DecodeTuning(json, path);
    if (json.contains("block_chunks")) ReadField(json, "block_chunks", path, &plan.block_chunks);
    if (json.contains("data_weights")) ReadField(json, "data_weights", path, &plan.data_weights);
    if (json.contains("optimizer")) ReadField(json, "optimizer", path, &plan.optimizer.name);
    if (json.contains("optimizer_options")) {
      plan.optimizer.own = json.at("optimizer_options").get<std::map<std::string, double>>();
    }
    if (json.contains("objective_options")) {
      plan.objective_own = json.at("objective_options").get<std::map<std::string, double>>();
    }
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kBadInput, path, std::string("its training plan cannot be read: ") + error.what());
  } catch (const Error& error) {
    throw Error(ErrorCode::kBadInput, path, std::string("its training plan cannot be read: ") + error.what());
  }
  const auto require = [&](bool holds, const char* problem) {
    if (!holds) throw Error(ErrorCode::kBadInput, path, std::string("its training plan holds ") + problem);
  };
  require(plan.batch >= 1 && plan.accum >= 1 && plan.sequence_tokens >= 1 && plan.window_chunks >= 1 &&
              plan.block_chunks >= 1 && plan.schedule.total_steps >= 1,
          "a size below 1");
  // Far above any run, and low enough that products of two are no overflow.
  require(plan.batch <= kMostTokens && plan.accum <= kMostTokens && plan.sequence_tokens <= kMostTokens &&
              plan.schedule.total_steps <= kMostSteps && plan.schedule.decay_steps >= 0 &&
              plan.schedule.decay_steps <= kMostSteps,
          "a size that no run has");
  return plan;
}

}  // namespace trainwright
