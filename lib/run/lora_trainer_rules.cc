#include <optional>
#include <string>
#include <utility>

#include "lib/run/foreign_optimizer.h"
#include "lib/run/foreign_rules.h"
#include "lib/run/recipe_program.h"

namespace trainwright {
namespace lora_trainer {  // their keys share names
namespace {

using nlohmann::json;

constexpr char kNone[] = "has no effect here";
constexpr char kSchedule[] = "lora.lr_scheduler_type";

/// Hugging Face's constant has no warm-up; constant_with_warmup has.
bool HasNoWarmup(const ForeignFile& file) {
  const std::optional<ForeignKey> schedule = file.Find(kSchedule);
  return schedule && *schedule->value == "constant" && !file.IsOverridden("schedule", "constant");
}

void TakeSchedule(const ForeignKey& key, ForeignFile* file) {
  WordFor("schedule", {{"cosine", "cosine"},
                       {"linear", "linear"},
                       {"constant", "constant"},
                       {"constant_with_warmup", "constant"}})(key, file);
  if (HasNoWarmup(*file)) file->Give(key, "warmup", "0");
}

TakeKey WarmupFor(std::string option) {
  return [take = TextFor(std::move(option))](const ForeignKey& key, ForeignFile* file) {
    if (!HasNoWarmup(*file)) return take(key, file);
    if (!IsOff(*key.value)) file->Tell(key, "has no effect: lr_scheduler_type constant has no warm-up");
  };
}

/// A section that is passed over; what only has its name is a key of train.
void PassOver(const ForeignKey& key, ForeignFile* file) {
  if (!key.value->is_structured()) {
    file->LeaveToTool(key);
    return;
  }
  file->Tell(key, "a section of the LoRA trainer that " + std::string(kNone));
}

ForeignRules MakeRules() {
  const std::string none = kNone;
  ForeignRules rules = {
      {"model_id", TextFor("init", "its folder is taken from this machine; nothing is downloaded")},
      {"lora_r", TextFor("lora")},
      {"lora_alpha", TextFor("lora-alpha")},
      {"lora_dropout", TextFor("lora-dropout")},
      {"target_modules", ListFor("lora-targets")},
      {"use_4bit", SwitchFor("quant", "nf4", "none")},
      {"num_epochs", TextFor("epochs")},
      {"batch_size", TextFor("batch")},
      {"eval_batch_size", Unread(none + ": an evaluation's micro-batches hold as many tokens as training's")},
      {"gradient_accumulation_steps", TextFor("accum")},
      {"learning_rate", TextFor("lr")},
      {"max_seq_length", TextFor("seq")},
      {"logging_steps", TextFor("log-every")},
      {"logging_first_step", Unread(none + ": the last step always has a record")},
      {"eval_steps", TextFor("eval-every")},
      {"save_steps", TextFor("save-every")},
      {"save_total_limit", TextFor("keep")},
      {"lr_scheduler_type", TakeSchedule},
      {"warmup_ratio", WarmupFor("warmup-ratio")},
      {"warmup_steps", WarmupFor("warmup")},
      {"weight_decay", TextFor("weight-decay")},
      {"max_grad_norm", TextFor("clip")},
      {"gradient_clip_norm", TextFor("clip", "is no key of that trainer; taken as max_grad_norm")},
      {"seed", TextFor("seed")},
      {"bf16", SwitchFor("mixed-precision", "bf16", "")},
      {"fp16", SwitchFor("mixed-precision", "fp16", "")},
      {"fp16_opt_level",
       Unread(none + ": it is a setting of Apex; --mixed-precision fp16 keeps fp32 masters")},
      {"gradient_checkpointing", SwitchFor("checkpoint-activations", "full", "no")},
      {"packing", SwitchFor("packing", "on", "off", "attention never crosses a document")},
      {"dataloader_num_workers", TextFor("workers")},
      {"dataloader_pin_memory", SwitchFor("pin", "on", "off")},
      {"optim", TakeNamedOptimizer},
      {"torch_compile", SwitchFor("compile", "auto", "")},
      {"tf32", SwitchFor("tf32", "on", "off")},
      {"group_by_length", SwitchFor("group-by-length", "true", "false")},
      {"remove_unused_columns", Unread(none)},
      {"report_to", Unread(none + ": metrics.jsonl, TensorBoard files and a report are always written")},
      {"dataset_path",
       Unread(none +
              ": make shards of it with pretokenize --records sft and pack, and name them with --data")},
      // The value is not repeated: it is a secret.
      {"hf_token", Unread(none + ": nothing is downloaded")},
      {"output_dir", TextFor("out")}};
  for (ForeignRule& rule : rules) rule.name = "lora." + rule.name;
  AddRules(&rules, {"api_models", "dataset", "inference"}, PassOver);
  return rules;
}

}  // namespace
}  // namespace lora_trainer

const RecipeProgram& LoraTrainerProgram() {
  using namespace lora_trainer;
  static const RecipeProgram program = {
      .name = "the LoRA trainer",
      .owns = [](const json& root) { return root.contains("lora") && root["lora"].is_object(); },
      .prepare = nullptr,
      .rules = MakeRules,
      .finish = nullptr,
      .defaults = {{"lora", "16"},
                   {"lora-alpha", "32"},
                   {"lora-dropout", "0.05"},
                   {"lora-targets", "q_proj,k_proj,v_proj,o_proj"},
                   {"quant", "nf4"},
                   {"epochs", "2"},
                   {"batch", "2"},
                   {"accum", "8"},
                   {"lr", "2e-4"},
                   {"schedule", "cosine"},
                   {"min-lr-ratio", "0"},
                   {"warmup-ratio", "0.03"},
                   {"weight-decay", "0"},
                   {"beta1", "0.9"},
                   {"beta2", "0.999"},
                   {"clip", "1"},
                   {"mixed-precision", "bf16"},
                   {"checkpoint-activations", "full"},
                   {"workers", "0"},
                   {"pin", "off"},
                   {"seed", "42"},
                   {"loss-on", "all"},
                   {"log-every", "10"},
                   {"eval-every", "100"},
                   {"save-every", "200"},
                   {"keep", "2"}},
      .section = "FILES OF THE LORA TRAINER",
      .has_ours = true};
  return program;
}

}  // namespace trainwright
