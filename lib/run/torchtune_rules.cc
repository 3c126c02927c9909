#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "lib/run/foreign_optimizer.h"
#include "lib/run/foreign_rules.h"
#include "lib/run/recipe_program.h"
#include "lib/run/recipe_references.h"
#include "lib/spec/optimizer_options.h"

namespace trainwright {
namespace torchtune {  // their keys share names
namespace {

using nlohmann::json;

constexpr char kComponent[] = "_component_";

/// "c" of a component "a.b.c".
std::string NameOf(const std::string& component) {
  return component.substr(component.rfind('.') + 1);
}

/// A component that must be one of these, by its last name, unless the option is given.
TakeKey OneOf(std::set<std::string> names, std::string option, std::string why, std::string hint) {
  return [=](const ForeignKey& key, ForeignFile* file) {
    const std::string component = SingleTextOf(key, *file);
    if (names.contains(NameOf(component))) return;
    const std::string problem = "is " + component.substr(0, 80) + ": " + why;
    if (option.empty()) throw file->Refusal(key, problem, hint);
    file->Refuse(key, option, problem, hint);
  };
}

constexpr char kOffloader[] = "CPUOffloadOptimizer";  // around another, AdamW where none is named

void TakeOptimizer(const ForeignKey& key, ForeignFile* file) {
  const std::string name = NameOf(SingleTextOf(key, *file));
  if (name == kOffloader) {
    file->Tell(key, "has states that stay on the device here");
    const bool names_one = file->Find("optimizer.optimizer_class") || file->Find("optimizer.base_optimizer");
    if (!names_one) file->Give(key, "optimizer", kDefaultOptimizer);
    return;
  }
  const std::string ours = OptimizerOfClass(name);
  if (!ours.empty()) return GiveOptimizer(key, ours, file);
  OneOf({}, "optimizer", "there is no such optimizer",
        "give --optimizer, if one of those that there are will do: adamw, adamw8bit, lion, muon, sgd")(key,
                                                                                                       file);
}

/// What only SGD has.
bool IsSgd(const ForeignFile& file) {
  for (const char* const name :
       {"optimizer._component_", "optimizer.optimizer_class", "optimizer.base_optimizer"}) {
    const auto key = file.Find(name);
    if (key && NameOf(file.TextOf(*key)) == "SGD") return true;
  }
  return false;
}

void TakeBetas(const ForeignKey& key, ForeignFile* file) {
  const json& betas = *key.value;
  const bool holds = betas.is_array() && betas.size() == 2 && betas[0].is_number() && betas[1].is_number();
  if (!holds) throw file->Refusal(key, "must be a list of two numbers");
  file->Give(key, "beta1", betas[0].dump());
  file->Give(key, "beta2", betas[1].dump());
}

void TakeSchedule(const ForeignKey& key, ForeignFile* file) {
  OneOf({"get_cosine_schedule_with_warmup"}, "schedule", "there is no such schedule",
        "SCHEDULES in train(1) has those that there are: leave the section out, and give --schedule")(key,
                                                                                                      file);
  file->Give(key, "schedule", "cosine");
}

/// The families by the modules that torchtune's builders of their models are in.
void TakeModel(const ForeignKey& key, ForeignFile* file) {
  const std::string component = SingleTextOf(key, *file);
  constexpr std::string_view kModels = "torchtune.models.";
  const std::string rest = component.starts_with(kModels) ? component.substr(kModels.size()) : "";
  static const std::set<std::string> families = {"llama2",   "code_llama2", "llama3", "llama3_1", "llama3_2",
                                                 "llama3_3", "mistral",     "qwen2",  "qwen2_5"};
  const bool rewards =
      component.find("classifier") != std::string::npos || component.find("reward") != std::string::npos;
  if (rewards || !families.contains(rest.substr(0, rest.find('.')))) {
    throw file->Refusal(key, "is " + component.substr(0, 80) + ": train has no such model",
                        "'train --help' says which families there are");
  }
}

/// The data sets of the recipe: one, or those of a list.
std::vector<ForeignKey> DataSetsOf(const ForeignKey& key, const ForeignFile& file) {
  if (key.value->is_object()) return {key};
  if (!key.value->is_array()) throw file.Refusal(key, "must hold keys of its own, or be a list of such");
  return MappingsOf(key, file);
}

std::string BuilderOf(const ForeignKey& set, const ForeignFile& file) {
  const auto component = KeyIn(set, kComponent);
  return component ? NameOf(SingleTextOf(*component, file)) : "";
}

/// Text has no answers that could be predicted alone.
bool IsText(const ForeignKey& set, const ForeignFile& file) {
  const std::string builder = BuilderOf(set, file);
  return builder.starts_with("text_completion") || builder == "wikitext_dataset" ||
         builder == "cnn_dailymail_articles_dataset";
}

void TakeData(const ForeignKey& key, ForeignFile* file) {
  const std::vector<ForeignKey> sets = DataSetsOf(key, *file);
  const auto length = file->Find("tokenizer.max_seq_len");
  const bool is_text = !sets.empty() && std::all_of(sets.begin(), sets.end(),
                                                    [&](const auto& set) { return IsText(set, *file); });
  if (key.name == "dataset")
    return TellOfData(key, is_text ? RecordKind::kLm : RecordKind::kSft, length ? file->TextOf(*length) : "",
                      file);
  file->Tell(key, "evaluation reads shards, too: make them likewise, and name them with --eval-data");
}

/// The files are those of the folder, whatever the list of them says.
ForeignRules CheckpointRules() {
  ForeignRules rules = {
      {"checkpoint_dir", GiveBaseModel},
      {"keep_last_n_checkpoints", WholeFor("keep")},
      {"recipe_checkpoint", Missing("names a checkpoint of another program",
                                    "leave it out; --resume continues the run that output_dir names")},
      {"adapter_checkpoint", Missing("names a checkpoint of another program",
                                     "leave it out; --adapter DIR continues an adapter in peft's layout")}};
  AddRules(&rules,
           {kComponent, "checkpoint_files", "output_dir", "model_type", "safe_serialization",
            "should_load_recipe_state"},
           Unread());
  for (ForeignRule& rule : rules) rule.name = "checkpointer." + rule.name;
  return rules;
}

ForeignRules ModelRules() {
  ForeignRules rules = {{std::string("model.") + kComponent, TakeModel},
                        {"model.lora_rank", CheckWhole(1)},
                        {"model.lora_alpha", CheckNumber()},
                        {"model.lora_dropout", CheckNumber()},
                        {"model.lora_attn_modules", CheckList()},
                        {"model.apply_lora_to_mlp", CheckBoolean()},
                        {"model.apply_lora_to_output", Only({false}, "the head has no adapter")},
                        {"model.use_dora", CheckBoolean()},
                        {"model.quantize_base", CheckBoolean()},
                        {"tokenizer.max_seq_len", WholeFor("seq")}};
  AddRules(&rules,
           {"tokenizer._component_", "tokenizer.path", "tokenizer.merges_file", "tokenizer.merges_path",
            "tokenizer.vocab_path", "tokenizer.special_tokens_path", "tokenizer.prompt_template",
            "tokenizer.truncation_type"},
           Unread());
  AddRules(&rules, {"dataset", "dataset_val"}, TakeData);
  return rules;
}

ForeignRules OptimizerRules() {
  return {
      {"optimizer._component_", TakeOptimizer},
      {"optimizer.lr", NumberFor("lr")},
      {"optimizer.betas", TakeBetas},
      {"optimizer.eps", NumberFor("adam-eps")},
      {"optimizer.weight_decay", NumberFor("weight-decay")},
      {"optimizer.momentum", MomentumOfSgd(IsSgd)},
      {"optimizer.nesterov", NesterovOfSgd(IsSgd)},
      {"optimizer.dampening", Only({0}, "the momentum takes gradients whole")},
      {"optimizer.min_8bit_size", Only({4096}, "smaller parameters have moments in fp32")},
      {"optimizer.amsgrad", Only({false}, "there is no AMSGrad")},
      {"optimizer.maximize", Only({false}, "a loss is made smaller")},
      {"optimizer.offload_gradients", CheckBoolean()},
      {"optimizer.optimizer_class", TakeOptimizer},
      {"optimizer.base_optimizer", TakeOptimizer},
      {"optimizer.minimal_size", Unread()},
      {"optimizer.fused", Unread()},
      {"optimizer.foreach", Unread()},
      {"optimizer.capturable", Unread()},
      {"lr_scheduler._component_", TakeSchedule},
      {"lr_scheduler.num_warmup_steps", WholeFor("warmup", 0)},
      {"lr_scheduler.num_cycles", Only({0.5}, "the cosine is half a wave")},
      {"loss._component_", OneOf({"LinearCrossEntropyLoss", "CEWithChunkedOutputLoss", "CrossEntropyLoss"},
                                 "", "train has no such loss", "LOSS in train(1) has those that there are")},
      {"loss.num_output_chunks", Unread()},
      {"loss.ignore_index", Unread()},
      {"loss.mask_pre_projection", Unread()},
      {"loss.label_smoothing", NumberFor("label-smoothing")}};
}

void TakeSavesByEpoch(const ForeignKey& key, ForeignFile* file) {
  CheckWhole(1)(key, file);
  if (*key.value == 1) return file->Give(key, "save-every", "epoch");
  file->Tell(key, "has no effect here: give --save-every in steps");
}

ForeignRules StepRules() {
  const std::string again = "the run is the one that output_dir names";
  ForeignRules rules = {
      {"output_dir", TextFor("out")},
      {"seed", WholeFor("seed", 0)},
      {"shuffle", Only({true}, "samples always come in an order that --seed draws")},
      {"batch_size", WholeFor("batch")},
      {"gradient_accumulation_steps", WholeFor("accum")},
      {"epochs", CheckWhole(1)},
      {"max_steps_per_epoch", CheckWhole(1)},
      {"clip_grad_norm", NumberFor("clip")},
      {"dtype", WordFor("mixed-precision", {{"bf16", "bf16"}, {"fp32", "no"}})},
      {"enable_activation_checkpointing", SwitchFor("checkpoint-activations", "full", "no")},
      {"enable_activation_offloading", CheckBoolean()},
      {"log_every_n_steps", WholeFor("log-every")},
      {"save_every_n_steps", WholeFor("save-every")},
      {"save_every_n_epochs", TakeSavesByEpoch},
      {"save_last_epoch_only", SwitchFor("save-every", "0", "")},
      {"run_val_every_n_steps", WholeFor("eval-every")},
      {"enable_async_checkpointing", SwitchFor("async-save", "on", "off")},
      {"resume_from_checkpoint", SwitchFor("resume", "true", "")},
      {"compile", SwitchFor("compile", "auto", "")},
      {"cudnn_deterministic_mode", SwitchFor("deterministic", "true", "")},
      {"base_model_path", Nothing()},  // a variable by custom, also where nothing refers to it
      {"tensor_parallel_dim", Only({1}, "ranks divide samples, and no matrix")},
      {"context_parallel_dim", Only({1}, "ranks divide samples, and no sample")}};
  AddRules(&rules,
           {"batch_size_val",
            "device",
            "optimizer_in_bwd",
            "ac_mode",
            "ac_option",
            "metric_logger",
            "profiler",
            "log_level",
            "log_peak_memory_stats",
            "profile_memory",
            "custom_sharded_layers",
            "fsdp",
            "fsdp_cpu_offload",
            "fsdp_reshard_after_forward",
            "fsdp_sharding_strategy",
            "memory_efficient_fsdp_wrap",
            "data_parallel_shard_dim",
            "data_parallel_replicate_dim",
            "tensor_parallel_plan",
            "low_cpu_ram",
            "save_adapter_weights_only",
            "collate_fn",
            "num_workers"},
           Unread());
  AddRules(&rules,
           {"kd_loss", "kd_ratio", "teacher_model", "teacher_checkpointer", "policy_model",
            "ref_policy_checkpointer", "ref_checkpointer", "reward_and_value_model", "reward_checkpointer",
            "value_checkpointer", "grpo_samples", "ppo_epochs", "ppo_batch_size", "forward_batch_size"},
           Missing("asks for another teacher than the data, which train does not learn from",
                   "what it learns is in LOSS of train(1)"));
  AddRules(&rules, {"quantizer", "fake_quant_after_n_steps"},
           Missing("asks for numbers that there are not here",
                   "there are fp32, --mixed-precision bf16 and fp16, and --quant nf4 beside adapters"));
  AddRules(&rules, {"resize_token_embeddings"},
           Missing("changes the vocabulary", "change the model and its tokenizer before"));
  return rules;
}

ForeignRules MakeRules() {
  ForeignRules rules;
  for (const ForeignRules& part : {StepRules(), ModelRules(), CheckpointRules(), OptimizerRules()}) {
    rules.insert(rules.end(), part.begin(), part.end());
  }
  return rules;
}

void FinishLength(ForeignFile* file) {
  const auto epochs = file->Find("epochs"), steps = file->Find("max_steps_per_epoch");
  if (!steps) {
    if (epochs) WholeFor("epochs")(*epochs, file);
    return;
  }
  const int64_t times = epochs ? epochs->value->get<int64_t>() : 1;
  file->Give(*steps, "steps",
             std::to_string(static_cast<int64_t>(static_cast<double>(times) * steps->value->get<double>())));
  file->TellWith("steps", *steps,
                 "times epochs, is the number of steps here, also where an epoch of the data has fewer");
}

/// What PyTorch's SGD has otherwise than AdamW where the file says nothing.
void FinishOptimizer(ForeignFile* file) {
  const auto component = file->Find("optimizer._component_");
  if (!component || !IsSgd(*file) || file->IsOverridden("optimizer", "sgd")) return;
  if (!file->Find("optimizer.momentum")) GiveNoMomentum(*component, file);
  if (!file->Find("optimizer.weight_decay")) file->Give(*component, "weight-decay", "0");
}

void FinishAdapter(ForeignFile* file) {
  const auto component = file->Find("model._component_");
  if (!component) return;
  const std::string name = NameOf(file->TextOf(*component));
  const bool is_qlora = name.starts_with("qlora_");
  if (!is_qlora && !name.starts_with("lora_")) return;
  const auto rank = file->Find("model.lora_rank"), alpha = file->Find("model.lora_alpha"),
             dropout = file->Find("model.lora_dropout"), modules = file->Find("model.lora_attn_modules"),
             mlp = file->Find("model.apply_lora_to_mlp"), quantized = file->Find("model.quantize_base");
  if (rank) {
    WholeFor("lora")(*rank, file);
  } else {
    file->Give(*component, "lora", "8");
  }
  file->Give(alpha ? *alpha : *component, "lora-alpha", alpha ? file->TextOf(*alpha) : "16");
  if (dropout) NumberFor("lora-dropout")(*dropout, file);
  if (const auto dora = file->Find("model.use_dora")) SwitchFor("dora", "true", "")(*dora, file);
  if (is_qlora || (quantized && *quantized->value == true)) {
    file->Give(is_qlora ? *component : *quantized, "quant", "nf4");
  }
  std::vector<std::string> targets = modules ? TextsOf(*modules, *file) : std::vector<std::string>();
  std::replace(targets.begin(), targets.end(), std::string("output_proj"), std::string("o_proj"));
  if (mlp && *mlp->value == true) targets.insert(targets.end(), {"gate_proj", "up_proj", "down_proj"});
  if (Joined(targets).empty())
    throw file->Refusal(*component, "needs lora_attn_modules or apply_lora_to_mlp");
  file->Give(modules ? *modules : *mlp, "lora-targets", Joined(targets));
}

/// What all data sets of a list must say alike: a run has it once.
struct Agreed {
  std::optional<ForeignKey> key;  ///< that said it first
  std::string value;

  void Take(const ForeignKey& said, const std::string& now, const std::string& option, ForeignFile* file) {
    if (!key) {
      key = said;
      value = now;
    } else if (value != now) {
      file->Refuse(said, option, "differs from " + key->name + ", and a run has --" + option + " once",
                   "make them agree, or give --" + option);
    }
  }
};

/// Whether a data set's inputs are predicted, too, and which of its keys says so.
std::pair<ForeignKey, bool> PredictsInputs(const ForeignKey& set, ForeignFile* file) {
  if (const auto all = KeyIn(set, "train_on_input")) return {*all, BooleanOf(*all, *file)};
  if (const auto masks = KeyIn(set, "masking_strategy")) {
    const std::string name = SingleTextOf(*masks, *file);
    if (name != "train_on_all" && name != "train_on_assistant")
      file->Refuse(
          *masks, "loss-on", "is '" + name.substr(0, 40) + "': there are train_on_all and train_on_assistant",
          "give --loss-on assistant; pretokenize --loss-turns last leaves the last answer alone to learn");
    return {*masks, name == "train_on_all"};
  }
  return {KeyIn(set, kComponent).value_or(set), BuilderOf(set, *file).starts_with("alpaca")};
}

void FinishData(ForeignFile* file) {
  const auto dataset = file->Find("dataset");
  if (!dataset) return;
  Agreed packing, loss;
  for (const ForeignKey& set : DataSetsOf(*dataset, *file)) {
    const auto packed = KeyIn(set, "packed");
    packing.Take(packed.value_or(set), packed && BooleanOf(*packed, *file) ? "on" : "off", "packing", file);
    if (IsText(set, *file)) continue;
    const auto [key, all] = PredictsInputs(set, file);
    loss.Take(key, all ? "all" : "", "loss-on", file);
  }
  // Left out they are the defaults that are given below.
  if (packing.value == "on" || (packing.key && packing.key->name.ends_with(".packed")))
    file->Give(*packing.key, "packing", packing.value);
  if (loss.value != "all") return;
  file->Give(*loss.key, "loss-on", "all");
  if (loss.key->name.ends_with(kComponent))
    file->Tell(*loss.key, "predicts the inputs, too, unless train_on_input is false: --loss-on all");
}

/// Of two that offload, each its own.
void FinishOffload(ForeignFile* file) {
  const auto activations = file->Find("enable_activation_offloading"),
             gradients = file->Find("optimizer.offload_gradients");
  const bool has_activations = activations && *activations->value == true,
             has_gradients = gradients && *gradients->value == true;
  if (has_gradients) {
    file->Give(*gradients, "offload", has_activations ? "all" : "gradients");
  } else if (activations) {
    file->Give(*activations, "offload", has_activations ? "activations" : "no");
  }
}

}  // namespace
}  // namespace torchtune

const RecipeProgram& TorchtuneProgram() {
  using namespace torchtune;
  static const RecipeProgram program = {
      .name = "torchtune",
      .owns =
          [](const json& root) {
            return std::any_of(root.begin(), root.end(), [](const json& section) {
              return section.is_object() && section.contains(kComponent);
            });
          },
      .prepare = ResolveReferences,
      .rules = MakeRules,
      .finish =
          [](ForeignFile* file) {
            FinishLength(file);
            FinishOptimizer(file);
            FinishAdapter(file);
            FinishData(file);
            FinishOffload(file);
          },
      .defaults = {{"epochs", "1"},
                   {"accum", "1"},
                   {"packing", "off"},
                   {"schedule", "constant"},
                   {"warmup", "0"},
                   {"min-lr-ratio", "0"},
                   {"weight-decay", "0.01"},
                   {"beta1", "0.9"},
                   {"beta2", "0.999"},
                   {"adam-eps", "1e-8"},
                   {"clip", "0"},
                   {"lr", "1e-3"},
                   {"save-every", "epoch"},
                   {"keep", "0"}},
      .section = "TORCHTUNE FILES"};
  return program;
}

}  // namespace trainwright
