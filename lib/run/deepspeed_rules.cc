#include "lib/run/deepspeed_rules.h"

#include <cstdint>
#include <utility>

#include "lib/run/foreign_optimizer.h"
#include "lib/run/foreign_rules.h"
#include "lib/spec/optimizer_options.h"

namespace trainwright {
namespace deepspeed {  // their keys share names
namespace {

using nlohmann::json;

// Of a bucket: what --ddp-bucket-mb takes, in fp32 elements.
constexpr double kLeastElements = 1 << 8, kMostElements = double{1ull << 38};
constexpr char kNoEffect[] = "has no effect here";

ForeignRules StepRules() {
  return {
      {"train_batch_size",
       [](const ForeignKey& key, ForeignFile* file) {
         CheckWhole(1, kMostSamples)(key, file);
         file->GiveOther(key, std::to_string(key.value->get<int64_t>()));
       }},
      {"train_micro_batch_size_per_gpu", WholeFor("batch")},
      {"gradient_accumulation_steps", WholeFor("accum")},
      {"gradient_clipping", NumberFor("clip")},
      {"prescale_gradients", Only({false}, "gradients are added up and then divided")},
      {"communication_data_type", Only({"fp32"}, "gradients travel in fp32")},
      {"steps_per_print", Nothing(std::string(kNoEffect) + ": --log-every says which steps get a record")},
      {"wall_clock_breakdown",
       Always(false, std::string(kNoEffect) + ": metrics.jsonl says what a step's time goes into")},
      {"zero_allow_untested_optimizer", Nothing()},
      {"zero_force_ds_cpu_optimizer", Nothing()},
      {"compile", Unread(std::string(kNoEffect) + ": --compile says what is compiled")}};
}

/// Of 3 nothing is left to take: the file was refused for it before.
void TakeStage(const ForeignKey& key, ForeignFile* file) {
  CheckWhole(0, 3)(key, file);
  file->Give(key, "zero", std::to_string(key.value->get<int64_t>()));
}

void TakeOffload(const ForeignKey& key, ForeignFile* file) {
  Only({"none", "cpu"}, "there is no such place for the optimizer's state")(key, file);
  if (*key.value == "cpu") {
    file->Tell(key,
               "the optimizer's state lies where the run computes: --zero divides it among ranks, "
               "--optimizer-states bf16 halves it");
  }
}

ForeignRules ZeroRules() {
  const std::string zero = "zero_optimization.";
  const std::string three = "has a meaning with stage 3 alone, which does not exist here";
  const std::string none = kNoEffect;
  ForeignRules rules = {
      {"stage", TakeStage},
      {"offload_optimizer.device", TakeOffload},
      {"offload_optimizer.pin_memory", Nothing()},
      {"offload_param.device", Only({"none"}, three)},
      {"offload_param.pin_memory", Nothing()},
      {"overlap_comm", Always(true, none + ": gradients always travel beside the backward pass")},
      {"contiguous_gradients", Always(true, none + ": gradients always lie in one buffer")},
      {"reduce_scatter", Always(true, none + ": with --zero each rank gets the sums of its own part")},
      {"allgather_partitions", Always(true, none + ": with --zero weights are always gathered at once")},
      {"reduce_bucket_size", CheckWhole(kLeastElements, kMostElements)},
      {"allgather_bucket_size", CheckWhole(kLeastElements, kMostElements)},
      {"round_robin_gradients", Nothing()},
      {"sub_group_size", Nothing(three)}};
  for (const char* const name :
       {"max_live_parameters", "max_reuse_distance", "prefetch_bucket_size", "param_persistence_threshold",
        "model_persistence_threshold", "gather_16bit_weights_on_model_save"}) {
    for (const char* const prefix : {"", "stage3_"}) {
      rules.push_back({std::string(prefix) + name, Nothing(three)});
    }
  }
  rules.push_back({"stage3_gather_fp16_weights_on_model_save", Nothing(three)});
  rules.push_back(
      {"cpu_offload", Missing("is an old name", "write \"offload_optimizer\": {\"device\": \"cpu\"}")});
  for (ForeignRule& rule : rules) rule.name = zero + rule.name;
  return rules;
}

ForeignRules PrecisionRules() {
  return {{"bf16.enabled", CheckBoolean()},
          {"bf16.auto_cast", Nothing()},
          {"bf16.immediate_grad_update", Nothing()},
          {"fp16.enabled", CheckBoolean()},
          {"fp16.auto_cast", Nothing()},
          {"fp16.fp16_master_weights_and_grads", Only({false}, "masters and gradients are fp32")},
          {"fp16.loss_scale", CheckWhole(0, kMostSamples)},
          {"fp16.initial_scale_power", CheckWhole(0, 64)},
          {"fp16.loss_scale_window", CheckWhole(1, kMostSamples)},
          {"fp16.hysteresis", CheckWhole(1, kMostSamples)},
          {"fp16.consecutive_hysteresis", CheckBoolean()},
          {"fp16.min_loss_scale", CheckNumber()}};
}

/// Of DeepSpeed's types, in either case of letters.
std::string OurNameOf(const std::string& type) {
  if (type == "Lion" || type == "lion") return "lion";
  if (type == "SGD" || type == "sgd") return "sgd";
  return kDefaultOptimizer;
}

void TakeOptimizer(const ForeignKey& key, ForeignFile* file) {
  // DeepSpeed's Adam is AdamW unless adam_w_mode is false.
  Only({"AdamW", "Adam", "Lion", "SGD", kDefaultOptimizer, "adam", "lion", "sgd"},
       "there is no such optimizer")(key, file);
  const std::string ours = OurNameOf(SingleTextOf(key, *file));
  file->Give(key, "optimizer", ours);
  if (ours != "sgd" || file->IsOverridden("optimizer", ours)) return;
  // torch's has no momentum by default.
  for (const char* const name : {"optimizer.params.momentum", "optimizer.params.betas"}) {
    if (file->Find(name) || file->IsLeftOpen(name)) return;
  }
  GiveNoMomentum(key, file);
}

void TakeBetas(const ForeignKey& key, ForeignFile* file) {
  const json& betas = *key.value;
  const bool holds = betas.is_array() && betas.size() == 2 && betas[0].is_number() && betas[1].is_number();
  if (!holds) throw file->Refusal(key, "must be a list of two numbers, or \"auto\"");
  file->Give(key, "beta1", betas[0].dump());
  file->Give(key, "beta2", betas[1].dump());
}

bool IsSgd(const ForeignFile& file) {
  const auto type = file.Find("optimizer.type");
  return type && type->value->is_string() && OurNameOf(type->value->get<std::string>()) == "sgd";
}

ForeignRules OptimizerRules() {
  const std::string params = "optimizer.params.";
  return {{"optimizer.type", TakeOptimizer},
          {params + "lr", NumberFor("lr")},
          {params + "betas", TakeBetas},
          {params + "eps", NumberFor("adam-eps")},
          {params + "weight_decay", NumberFor("weight-decay")},
          {params + "adam_w_mode", Only({true}, "the decay of weights is decoupled, as in AdamW")},
          {params + "momentum", MomentumOfSgd(IsSgd)},
          {params + "nesterov", NesterovOfSgd(IsSgd)},
          {params + "dampening", Only({0}, "the momentum takes gradients whole")},
          {params + "bias_correction", Only({true}, "the moments' bias is always corrected")},
          {params + "amsgrad", Only({false}, "there is no AMSGrad")},
          {params + "torch_adam", Nothing()}};
}

void TakeSchedule(const ForeignKey& key, ForeignFile* file) {
  Only({"WarmupLR", "WarmupDecayLR", "WarmupCosineLR"}, "there is no such schedule",
       "SCHEDULES in train(1) has those that there are: leave the section out, and give --schedule")(key,
                                                                                                     file);
  const bool decays = *key.value == "WarmupDecayLR";
  const std::string schedule = decays ? "linear" : *key.value == "WarmupLR" ? "constant" : "cosine";
  file->Give(key, "schedule", schedule);
  if (file->IsOverridden("schedule", schedule)) {
    if (decays) file->GiveWay(key, "schedule");  // with the 0 that it ends at
    return;
  }
  if (decays) file->Give(key, "min-lr-ratio", "0");
  file->Tell(key, "--schedule " + schedule + " is a step or two ahead of DeepSpeed's");
}

/// The last rate of WarmupCosineLR, which goes with it where another schedule overrides it.
void TakeCosineMinimum(const ForeignKey& key, ForeignFile* file) {
  const auto type = file->Find("scheduler.type");
  const bool is_cosine = type && *type->value == "WarmupCosineLR";
  if (!is_cosine || !file->IsOverridden("schedule", "cosine")) return NumberFor("min-lr-ratio")(key, file);
  CheckNumber()(key, file);
  file->GiveWay(key, "schedule");
}

ForeignRules ScheduleRules() {
  const std::string params = "scheduler.params.";
  const std::string from_zero = "the rate rises from 0";
  return {{"scheduler.type", TakeSchedule},
          {params + "warmup_max_lr", NumberFor("lr")},
          {params + "warmup_min_lr", Only({0}, from_zero)},
          {params + "warmup_min_ratio", Only({0}, from_zero)},
          {params + "warmup_num_steps", WholeFor("warmup", 0)},
          {params + "warmup_type",
           Only({"linear"}, "the rate rises evenly", "write \"linear\", which is not DeepSpeed's default")},
          {params + "total_num_steps", WholeFor("steps")},
          {params + "cos_min_ratio", TakeCosineMinimum},
          {params + "last_batch_iteration", Only({-1}, "a schedule begins with the run")}};
}

/// What files often hold, or ask for, and is elsewhere here.
ForeignRules MissingRules() {
  const std::string none = "has no counterpart";
  return {{"activation_checkpointing",
           Missing(none, "leave it out, and give --checkpoint-activations or --offload activations")},
          {"amp", Missing(none, "leave it out, and give --mixed-precision")},
          {"bfloat16", Missing("is an old name", "write \"bf16\"")},
          {"flops_profiler", Missing(none, "leave it out: metrics.jsonl has model_flops_per_s and mfu")},
          {"tensorboard", Missing(none, "leave it out: a run directory always has tb/")},
          {"gradient_predivide_factor", Only({1}, "gradients are added up and then divided")}};
}

}  // namespace
}  // namespace deepspeed

const ForeignRules& DeepSpeedRules() {
  using namespace deepspeed;
  static const ForeignRules all = [] {
    ForeignRules rules;
    for (const ForeignRules& part :
         {StepRules(), ZeroRules(), PrecisionRules(), OptimizerRules(), ScheduleRules(), MissingRules()}) {
      rules.insert(rules.end(), part.begin(), part.end());
    }
    return rules;
  }();
  return all;
}

}  // namespace trainwright
