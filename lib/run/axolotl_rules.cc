#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "lib/formats/json_text.h"
#include "lib/run/foreign_optimizer.h"
#include "lib/run/foreign_rules.h"
#include "lib/run/recipe_program.h"

namespace trainwright {
namespace axolotl {  // their keys share names
namespace {

using nlohmann::json;

bool IsTrue(const std::optional<ForeignKey>& key) {
  return key && *key->value == true;
}

/// What is given as whole steps, or as a share of the run, which `told` is said of.
TakeKey StepsFor(const std::string& option, const std::string& told) {
  return [=](const ForeignKey& key, ForeignFile* file) {
    CheckNumber()(key, file);
    const auto number = key.value->get<double>();
    if (number == 0) return;
    if (number < 1) {
      file->Tell(key, told);
    } else {
      WholeFor(option)(key, file);
    }
  };
}

/// A number an epoch: once is an epoch of ours, where the option takes one.
TakeKey PerEpochFor(const std::string& option, bool has_epoch) {
  return [=](const ForeignKey& key, ForeignFile* file) {
    CheckWhole(0)(key, file);
    const auto number = key.value->get<int64_t>();
    if (number == 0) {
      file->Give(key, option, "0");
    } else if (number == 1 && has_epoch) {
      file->Give(key, option, "epoch");
    } else {
      file->Tell(key, "has no effect here: give --" + option + " in steps");
    }
  };
}

/// Whether there is something to evaluate on, by the file and what takes precedence over it.
bool Evaluates(const ForeignFile& file) {
  if (!file.Given("eval-data").empty() || !file.Given("eval-split").empty()) return true;
  const auto split = file.Find("val_set_size");
  return split && split->value->is_number() && split->value->get<double>() > 0;
}

/// 0 is said where there is something to evaluate on: without it there are no evaluations either way.
void TakeEvaluations(const ForeignKey& key, ForeignFile* file) {
  if (*key.value != 0 || Evaluates(*file)) PerEpochFor("eval-every", false)(key, file);
}

/// Of the moments: without effect for an optimizer that has none.
TakeKey MomentFor(const std::string& option) {
  return [=](const ForeignKey& key, ForeignFile* file) {
    const auto optimizer = file->Find("optimizer");
    const bool is_sgd = optimizer && OptimizerNamed(SingleTextOf(*optimizer, *file)) == "sgd";
    if (is_sgd && !file->IsOverridden("optimizer", "sgd")) return file->Ignore(key);
    NumberForTaker(option, "optimizer", OptimizerNamed)(key, file);
  };
}

void TakeEightBits(const ForeignKey& key, ForeignFile* file) {
  if (!BooleanOf(key, *file)) return;
  file->Refuse(key, "quant", "is true: there are no weights of 8 bits",
               "write false, or give --quant none, for weights in the precision of the GEMMs, or --quant nf4 "
               "for 4 bits");
}

void TakeDeepSpeed(const ForeignKey& key, ForeignFile* file) {
  const std::string path = SingleTextOf(key, *file);
  std::error_code ignored;
  if (path.empty()) return;
  if (std::filesystem::exists(path, ignored)) {
    file->Give(key, "deepspeed", path);
  } else {
    file->Tell(key, "there is no file '" + path + "': give --deepspeed FILE, or --zero");
  }
}

void TakePlugins(const ForeignKey& key, ForeignFile* file) {
  for (const std::string& plugin : TextsOf(key, *file)) {
    const bool is_kernel = plugin.find(".liger.") != std::string::npos ||
                           plugin.find(".cut_cross_entropy.") != std::string::npos;
    const bool is_log = plugin.find(".swanlab.") != std::string::npos;
    if (!is_kernel && !is_log)
      throw file->Refusal(key, "asks for '" + plugin + "', which has no counterpart");
  }
  if (!key.value->empty()) file->Ignore(key);
}

void TakeModelClass(const ForeignKey& key, ForeignFile* file) {
  const std::string name = SingleTextOf(key, *file);
  if (name.ends_with("ForCausalLM") || name.empty()) return file->Ignore(key);
  throw file->Refusal(key, "is " + name.substr(0, 60) + ", which is no language model that train has");
}

/// FSDP's own switch goes before it.
void TakeCheckpointing(const ForeignKey& key, ForeignFile* file) {
  if (key.value->is_boolean()) {
    for (const char* const name :
         {"fsdp_config.activation_checkpointing", "fsdp_config.fsdp_activation_checkpointing"}) {
      if (const auto own = file->Find(name); own && *own->value == true) return;
    }
    return SwitchFor("checkpoint-activations", "full", "no")(key, file);
  }
  WordFor("checkpoint-activations", {{"offload", "full"}, {"offload_disk", "full"}, {"unsloth", "full"}})(
      key, file);
  file->Give(key, "offload", "activations");
}

void TakeOffloading(const ForeignKey& key, ForeignFile* file) {
  if (key.value->is_boolean()) return SwitchFor("offload", "activations", "")(key, file);
  WordFor("offload", {{"legacy", "activations"}, {"disk", "activations"}, {"hidden_states", "activations"}})(
      key, file);
}

void TakeTf32(const ForeignKey& key, ForeignFile* file) {
  if (*key.value == "auto") return;
  SwitchFor("tf32", "on", "off")(key, file);
}

/// "auto" is for versions of torch that compile well, which here is always.
void TakeCompile(const ForeignKey& key, ForeignFile* file) {
  if (*key.value == "auto") return file->Give(key, "compile", "auto");
  SwitchFor("compile", "auto", "")(key, file);
}

void TakeSplit(const ForeignKey& key, ForeignFile* file) {
  CheckNumber()(key, file);
  if (key.value->get<double>() > 0) file->Give(key, "eval-split", file->TextOf(key));
}

/// Whether a key of data sets names plain text, all of which is predicted.
bool IsText(const ForeignKey& key) {
  const json& sets = *key.value;
  return key.name == "pretraining_dataset" ||
         (sets.is_array() && !sets.empty() && std::all_of(sets.begin(), sets.end(), [](const json& set) {
            return set.is_object() && set.contains("type") && set["type"] == "completion";
          }));
}

/// Answers alone are predicted without it here, too, and of text there are none.
void TakeTrainOnInputs(const ForeignKey& key, ForeignFile* file) {
  if (!BooleanOf(key, *file)) return;
  for (const char* const name : {"datasets", "pretraining_dataset"}) {
    if (const auto data = file->Find(name); data && IsText(*data)) return file->Ignore(key);
  }
  file->Give(key, "loss-on", "all");
}

/// What a data set says about which of its tokens are predicted: pretokenize knows the answers alone.
void CheckLossKeys(const ForeignKey& set, ForeignFile* file) {
  const std::string hint =
      "leave it out, or give --loss-on assistant, for the answers and the ends of their turns, or all";
  if (const auto roles = KeyIn(set, "roles_to_train"); roles && !IsTrue(file->Find("train_on_inputs"))) {
    const std::vector<std::string> names = TextsOf(*roles, *file);
    const bool answers = !names.empty() && std::all_of(names.begin(), names.end(), [](const auto& name) {
      return name == "assistant" || name == "gpt";
    });
    if (!answers)
      file->Refuse(*roles, "loss-on", "is " + ShownValue(*roles->value) + ": answers alone can be learned",
                   hint);
  }
  for (const char* const name : {"train_on_eos", "train_on_eot"}) {
    const auto ends = KeyIn(set, name);
    if (!ends || *ends->value == "turn") continue;
    file->Refuse(*ends, "loss-on", "is " + ShownValue(*ends->value) + ": EOS is learned where an answer ends",
                 "write turn, leave it out, or give --loss-on assistant or all");
  }
  for (const char* const name : {"message_field_training", "message_field_training_detail"}) {
    if (const auto field = KeyIn(set, name); field && !IsOff(*field->value))
      file->Refuse(*field, "loss-on",
                   "names a field by which turns choose what is learned, which is not read",
                   hint + "; pretokenize --loss-turns last keeps the last answer's");
  }
}

void TakeData(const ForeignKey& key, ForeignFile* file) {
  const bool is_name = key.name == "pretraining_dataset" && key.value->is_string();
  if (!is_name) {
    for (const ForeignKey& set : MappingsOf(key, *file)) CheckLossKeys(set, file);
  }
  const auto length = file->Find("sequence_len");
  const bool is_text = IsText(key);
  TellOfData(key, is_text ? RecordKind::kLm : RecordKind::kSft, length ? file->TextOf(*length) : "", file);
}

/// A list of new tokens; once, too, a mapping like special_tokens.
void TakeTokens(const ForeignKey& key, ForeignFile* file) {
  if (key.value->is_object()) return Unread("is for pretokenize: its --tokenizer")(key, file);
  Missing("adds tokens to the vocabulary", "add them to the model and its tokenizer before")(key, file);
}

ForeignRules StepRules() {
  const std::string share = "has no effect here as a share of the run: give --";
  return {{"base_model", GiveBaseModel},
          {"output_dir", TextFor("out")},
          {"seed", WholeFor("seed", 0)},
          {"micro_batch_size", WholeFor("batch")},
          {"gradient_accumulation_steps", WholeFor("accum")},
          {"batch_size", CheckWhole(1)},
          {"num_epochs", CheckNumber()},
          {"max_steps", CheckWhole(-1)},
          {"sequence_len", WholeFor("seq")},
          {"sample_packing", SwitchFor("packing", "on", "off")},
          {"group_by_length", SwitchFor("group-by-length", "true", "false")},
          {"train_on_inputs", TakeTrainOnInputs},
          {"learning_rate", NumberFor("lr")},
          {"lr_scheduler", WordFor("schedule",
                                   {{"cosine", "cosine"},
                                    {"linear", "linear"},
                                    {"constant", "constant"},
                                    {"constant_with_warmup", "constant"}},
                                   "SCHEDULES in train(1) has those that there are: leave it out, and give "
                                   "--schedule")},
          {"cosine_min_lr_ratio", CheckNumber()},
          {"cosine_constant_lr_ratio", CheckNumber()},
          {"warmup_steps", CheckNumber()},
          {"warmup_ratio", CheckNumber()},
          {"optimizer", TakeNamedOptimizer},
          {"weight_decay", NumberFor("weight-decay")},
          {"adam_beta1", MomentFor("beta1")},
          {"adam_beta2", MomentFor("beta2")},
          {"adam_epsilon", MomentFor("adam-eps")},
          {"max_grad_norm", NumberFor("clip")},
          {"logging_steps", StepsFor("log-every", share + "log-every in steps")},
          {"save_steps", StepsFor("save-every", share + "save-every in steps")},
          {"saves_per_epoch", PerEpochFor("save-every", true)},
          {"save_strategy",
           [](const ForeignKey& key, ForeignFile* file) {
             if (*key.value == "best") return file->Give(key, "keep-best", "1");
             if (*key.value == false) return file->Give(key, "save-every", "0");  // no is false in YAML
             WordFor("save-every", {{"no", "0"}, {"epoch", "epoch"}, {"steps", ""}})(key, file);
           }},
          {"save_total_limit", WholeFor("keep")},
          {"save_only_model", SwitchFor("save-model-only", "true", "false")},
          {"load_best_model_at_end", SwitchFor("keep-best", "1", "")},
          {"eval_steps", StepsFor("eval-every", share + "eval-every in steps")},
          {"evals_per_epoch", TakeEvaluations},
          {"val_set_size", TakeSplit},
          {"early_stopping_patience", WholeFor("early-stop")},
          {"auto_resume_from_checkpoints",
           SwitchFor("resume", "true", "", "the run is the one that output_dir names")}};
}

ForeignRules ModelRules() {
  const std::string no_such = "has no counterpart";
  ForeignRules rules = {
      {"adapter", CheckText()},
      {"lora_r", CheckWhole(0)},
      {"lora_alpha", CheckNumber()},
      {"lora_dropout", CheckNumber()},
      {"lora_target_modules", CheckList()},
      {"lora_target_linear", CheckBoolean()},
      {"lora_model_dir", CheckText()},
      {"lora_modules_to_save", CheckList()},
      {"peft_use_dora", CheckBoolean()},
      {"peft_use_rslora", CheckBoolean()},
      {"loraplus_lr_ratio", CheckNumber()},
      {"loraplus_lr_embedding", Unread("has no effect here: no embedding has an adapter")},
      {"load_in_4bit", CheckBoolean()},
      {"load_in_8bit", TakeEightBits},
      {"bf16", CheckText()},
      {"fp16", CheckBoolean()},
      {"bfloat16", CheckBoolean()},
      {"float16", CheckBoolean()},
      {"float32", CheckBoolean()},
      {"tf32", TakeTf32},
      {"torch_compile", TakeCompile},
      {"model_type", TakeModelClass},
      {"plugins", TakePlugins},
      {"tokens", TakeTokens},
      {"gradient_checkpointing", TakeCheckpointing},
      {"activation_offloading", TakeOffloading},
      {"fsdp_config.activation_checkpointing", SwitchFor("checkpoint-activations", "full", "")},
      {"fsdp_config.fsdp_activation_checkpointing", SwitchFor("checkpoint-activations", "full", "")},
      {"deepspeed", TakeDeepSpeed},
      {"ddp_bucket_cap_mb", NumberFor("ddp-bucket-mb")},
      {"dataloader_num_workers", WholeFor("workers", 0)},
      {"dataloader_prefetch_factor", WholeFor("prefetch")},
      {"dataloader_pin_memory", SwitchFor("pin", "on", "off")},
      {"dataloader_drop_last", SwitchFor("drop-last", "true", "false")}};
  AddRules(&rules, {"datasets", "pretraining_dataset"}, TakeData);
  AddRules(&rules, {"test_datasets"},
           Unread("evaluation reads shards, too: make them likewise, and name them with --eval-data"));
  AddRules(
      &rules,
      {"tensor_parallel_size", "context_parallel_size", "sequence_parallel_degree", "expert_parallel_size"},
      Only({1}, "ranks divide samples, and no sample or matrix"));
  AddRules(&rules, {"fsdp"},
           Unread("weights are not divided among ranks: --zero 2 divides gradients and moments"));
  AddRules(&rules,
           {"special_tokens", "eot_tokens", "chat_template", "chat_template_jinja", "chat_template_kwargs",
            "default_system_message"},
           Unread("is for pretokenize: its --tokenizer and --template"));
  AddRules(&rules, {"resume_from_checkpoint"},
           Missing("names a checkpoint of another program",
                   "leave it out; --resume continues the run that --out names, --branch-from with another"));
  AddRules(&rules, {"shuffle_merged_datasets"},
           Only({true}, "samples always come in an order that --seed draws"));
  return rules;
}

/// What asks for another result, and there is not.
ForeignRules MissingRules() {
  ForeignRules rules;
  AddRules(&rules,
           {"rl", "trl", "ebft", "vllm", "reward_model", "process_reward_model", "num_labels", "dpo_beta",
            "rl_beta", "orpo_alpha", "simpo_gamma", "cpo_alpha", "kto_desirable_weight",
            "kto_undesirable_weight", "center_rewards_coefficient"},
           Missing("asks for preferences or rewards, which train does not learn from",
                   "what it learns is in OBJECTIVE and LOSS of train(1)"));
  AddRules(
      &rules,
      {"qat", "quantization", "fp8", "fp8_enable_fsdp_float8_all_gather", "gptq", "model_quantization_config",
       "model_quantization_config_kwargs", "use_onebitllms", "quantize_moe_experts"},
      Missing("asks for numbers that there are not here",
              "there are fp32, --mixed-precision bf16 and fp16, and --quant nf4 beside adapters"));
  AddRules(&rules,
           {"peft_layers_to_transform", "peft_layers_pattern", "peft_layer_replication",
            "peft_init_lora_weights", "peft_trainable_token_indices", "peft", "lora_target_parameters",
            "lora_rank_pattern", "lora_alpha_pattern", "relora", "relora_prune_ratio", "relora_prune_method",
            "lisa_n_layers", "lisa_step_interval", "lisa_layers_attribute", "unfrozen_parameters"},
           Missing("asks for adapters or frozen weights of another kind",
                   "ADAPTERS in train(1) has those that there are"));
  AddRules(
      &rules,
      {"lr_scheduler_kwargs", "lr_quadratic_warmup", "lr_div_factor", "lr_groups", "embedding_lr",
       "embedding_lr_scale", "jagged_restart_steps", "jagged_restart_warmup_steps",
       "jagged_restart_anneal_steps", "optim_args", "optim_target_modules", "adam_beta3", "adam_epsilon2"},
      Missing("has no counterpart", "SCHEDULES in train(1) has the learning rates that there are"));
  AddRules(
      &rules,
      {"llama4_linearized_experts", "experts_implementation", "use_scattermoe", "use_sonicmoe",
       "dsv4_fp4_grouped_mode", "use_dsv4_kernels", "use_glm_dsa_kernels", "expert_parallel_token_capacity",
       "expert_parallel_num_nvl_bytes", "cls_model_config", "gemma4_hybrid_attn_impl"},
      Missing("is of models that train has not", "'train --help' says which families there are"));
  AddRules(&rules,
           {"neftune_noise_alpha",
            "noisy_embedding_alpha",
            "diffusion",
            "use_eaft",
            "curriculum_sampling",
            "reinit_weights",
            "added_tokens_overrides",
            "use_pose",
            "s2_attention",
            "scaling_softmax",
            "rope_scaling",
            "overrides_of_model_config",
            "model_config",
            "image_size",
            "processor_type",
            "freeze_mm_modules",
            "trainer_cls",
            "fix_untrained_tokens",
            "llmcompressor",
            "layer_offloading"},
           Missing("has no counterpart", ""));
  return rules;
}

/// What changes no result here.
std::vector<std::string> NamesWithoutEffect() {
  return {
      // Where the run is told of.
      "use_wandb", "wandb_project", "wandb_entity", "wandb_watch", "wandb_name", "wandb_run_id", "wandb_mode",
      "wandb_log_model", "use_mlflow", "mlflow_tracking_uri", "mlflow_experiment_name", "mlflow_run_name",
      "hf_mlflow_log_artifacts", "use_comet", "comet_api_key", "comet_workspace", "comet_project_name",
      "comet_experiment_key", "comet_mode", "comet_online", "comet_experiment_config", "use_tensorboard",
      "use_otel_metrics", "otel_metrics_host", "otel_metrics_port", "use_trackio", "trackio_project_name",
      "trackio_run_name", "trackio_space_id", "use_swanlab", "swanlab_project", "swanlab_experiment_name",
      "swanlab_description", "swanlab_mode", "swanlab_workspace", "swanlab_api_key", "swanlab_log_model",
      "swanlab_web_host", "swanlab_api_host", "swanlab_lark_webhook_url", "swanlab_lark_secret",
      "swanlab_log_completions", "swanlab_completion_log_interval", "swanlab_completion_max_buffer",
      "gradio_title", "gradio_share", "gradio_server_name", "gradio_server_port", "gradio_max_new_tokens",
      "gradio_temperature", "hub_model_id", "hub_strategy", "hub_revision", "push_dataset_to_hub",
      "hf_use_auth_token", "include_tokens_per_second", "include_tkps", "profiler_steps",
      "profiler_steps_start", "debug", "strict", "save_safetensors", "save_first_step",
      // Data and its preparation, which pretokenize and pack do.
      "dataset_prepared_path", "dataset_processes", "dataset_num_proc", "dataset_keep_in_memory",
      "dataset_shard_num", "dataset_shard_idx", "num_dataset_shards_to_save", "skip_prepare_dataset",
      "dataset_exact_deduplication", "shuffle_before_merging_datasets", "streaming", "is_preprocess",
      "preprocess_iterable", "excess_length_strategy", "min_sample_len", "max_prompt_len", "total_num_tokens",
      "total_supervised_tokens", "remove_unused_columns", "tokenizer_type", "tokenizer_config",
      "tokenizer_use_fast", "tokenizer_legacy", "tokenizer_use_mistral_common", "tokenizer_save_jinja_files",
      // How samples lie in a batch: no padding is computed, and attention never crosses a document.
      "pad_to_sequence_len", "pad_to_multiple_of", "eval_sample_packing", "eval_sequence_len",
      "sample_packing_eff_est", "sample_packing_group_size", "sample_packing_bin_size",
      "sample_packing_sequentially", "sample_packing_mp_start_method", "sample_packing_seq_len_multiplier",
      "max_packed_sequence_len", "multipack_real_batches", "batch_flattening", "pretrain_multipack_attn",
      "pretrain_multipack_buffer_size", "streaming_multipack_buffer_size", "pretraining_sample_concatenation",
      // By what kernels it is computed.
      "flash_attention", "sdp_attention", "xformers_attention", "flex_attention", "sage_attention",
      "eager_attention", "attn_implementation", "flex_attn_compile_kwargs", "flash_attn_cross_entropy",
      "flash_attn_rms_norm", "flash_attn_fuse_mlp", "flash_attn_fuse_qkv", "flash_optimum",
      "torch_compile_backend", "torch_compile_mode", "torch_compile_options", "lora_mlp_kernel",
      "lora_qkv_kernel", "lora_o_kernel", "lora_embedding_kernel", "liger_rope", "liger_rms_norm",
      "liger_rms_norm_gated", "liger_layer_norm", "liger_glu_activation", "liger_swiglu",
      "liger_cross_entropy", "liger_fused_linear_cross_entropy", "liger_use_token_scaling",
      "cut_cross_entropy", "chunked_cross_entropy", "chunked_cross_entropy_num_chunks", "tiled_mlp",
      "tiled_mlp_num_shards", "tiled_mlp_use_original_mlp", "fused_attn_kernel", "use_kernels",
      "bnb_config_kwargs", "gradient_checkpointing_kwargs", "torch_dtype",
      // Where it is computed, and in what memory.
      "device", "device_map", "local_rank", "world_size", "ddp", "ddp_timeout", "ddp_broadcast_buffers",
      "ddp_find_unused_parameters", "accelerator_config", "dp_shard_size", "dp_replicate_size",
      "fsdp_version", "fsdp_final_state_dict_type", "use_ray", "ray_run_name", "ray_num_workers",
      "resources_per_worker", "max_memory", "gpu_memory_limit", "low_cpu_mem_usage", "lora_on_cpu",
      "qlora_sharded_model_loading", "gc_steps", "gc_collect_steps", "torch_empty_cache_steps",
      "auto_find_batch_size", "eval_batch_size", "torchdistx_path", "experimental_skip_move_to_device",
      "heads_k_stride", "ring_attn_func", "deepcompile", "relora_cpu_offload",
      // What is always so, or is told by the model's own files.
      "trust_remote_code", "revision_of_model", "base_model_config", "base_model_ignore_patterns",
      "is_falcon_derived_model", "is_llama_derived_model", "is_mistral_derived_model",
      "is_qwen_derived_model", "type_of_model", "resize_token_embeddings_to_32x", "shrink_embeddings",
      "mean_resizing_embeddings", "embeddings_skip_upcast", "lora_fan_in_fan_out",
      "peft_autocast_adapter_dtype", "gptq_groupsize", "gptq_model_v1", "gptq_disable_exllama",
      "full_finetune", "eval_strategy", "evaluation_strategy", "eval_table_size", "eval_table_max_new_tokens",
      "eval_max_new_tokens", "eval_causal_lm_metrics", "do_causal_lm_eval", "do_bench_eval", "bench_dataset",
      "bench_split", "metric_for_best_model", "greater_is_better", "loss_watchdog_threshold",
      "loss_watchdog_patience", "generate_samples", "num_generation_samples", "generation_max_new_tokens",
      "generation_temperature", "generation_top_p", "generation_top_k", "generation_prompt_ratio",
      "generation_do_sample", "dynamic_checkpoint"};
}

ForeignRules MakeRules() {
  ForeignRules rules;
  for (const ForeignRules& part : {StepRules(), ModelRules(), MissingRules()}) {
    rules.insert(rules.end(), part.begin(), part.end());
  }
  AddRules(&rules, NamesWithoutEffect(), Unread());
  for (const char* const name :
       {"auto_wrap_policy", "backward_prefetch", "cpu_ram_efficient_loading", "forward_prefetch",
        "limit_all_gathers", "offload_params", "reshard_after_forward", "sharding_strategy",
        "state_dict_type", "final_state_dict_type", "sync_module_states", "transformer_layer_cls_to_wrap",
        "use_orig_params", "version", "min_num_params", "mixed_precision_policy", "cpu_offload_pin_memory"}) {
    AddRules(&rules, {std::string("fsdp_config.") + name, std::string("fsdp_config.fsdp_") + name}, Unread());
  }
  return rules;
}

/// Whether it says what it says to some effect: theirs are Python's truth values.
bool IsSaid(const std::optional<ForeignKey>& key) {
  return key && !IsOff(*key->value) && *key->value != 0;
}

void FinishLength(ForeignFile* file) {
  const auto steps = file->Find("max_steps"), epochs = file->Find("num_epochs");
  if (steps && steps->value->get<int64_t>() > 0) {
    WholeFor("steps")(*steps, file);
    if (epochs) file->TellWith("steps", *epochs, "max_steps overrides it");
  } else if (epochs) {
    NumberFor("epochs")(*epochs, file);
  }
  const auto samples = file->Find("batch_size"), batch = file->Find("micro_batch_size");
  if (!samples) return;
  const auto all = samples->value->get<int64_t>(), each = batch ? batch->value->get<int64_t>() : 1;
  const std::string accum = std::to_string(std::max<int64_t>(all / each, 1));
  const auto said = file->Find("gradient_accumulation_steps");
  if (said && file->TextOf(*said) != accum) {
    throw file->Refusal(
        *samples,
        "asks for batch_size " + std::to_string(all) + " / micro_batch_size " + std::to_string(each) + " = " +
            accum + " micro-batches a step, but gradient_accumulation_steps is " + file->TextOf(*said),
        "leave one of the two out");
  }
  file->Give(*samples, "accum", accum);
}

/// The steps of the run, where they do not depend on its data.
std::optional<int64_t> KnownSteps(const ForeignFile& file) {
  if (const std::string given = file.Given("steps"); !given.empty()) {
    const json steps = JsonOf(given);
    return steps.is_number_integer() ? std::optional(steps.get<int64_t>()) : std::nullopt;
  }
  if (!file.Given("epochs").empty() || !file.Given("tokens").empty()) return std::nullopt;
  const auto steps = file.Find("max_steps");
  if (!steps || steps->value->get<int64_t>() <= 0) return std::nullopt;
  return steps->value->get<int64_t>();
}

/// Of a file without a warm-up, whose default has no bound here.
void TellOfWarmup(ForeignFile* file) {
  constexpr int64_t kMostSteps = 3333;  // whose 3 % are no more than axolotl's bound
  const std::optional<int64_t> known = KnownSteps(*file);
  if (known && *known <= kMostSteps) return;
  const auto steps = file->Find("max_steps"), epochs = file->Find("num_epochs");
  const bool says_steps = steps && steps->value->get<int64_t>() > 0;
  const auto length = says_steps ? steps : epochs ? epochs : file->Find("base_model");
  file->TellWith("warmup-ratio", *length,
                 "without warmup_steps the warm-up is 3 % of the run, and of axolotl 100 steps at most: give "
                 "--warmup 100 for a run of more than 3,333 steps");
}

void FinishSchedule(ForeignFile* file) {
  const auto schedule = file->Find("lr_scheduler");
  const auto steps = file->Find("warmup_steps"), ratio = file->Find("warmup_ratio");
  if (schedule && *schedule->value == "constant" && !file->IsOverridden("schedule", "constant")) {
    file->Give(*schedule, "warmup", "0");  // as Hugging Face's has none
    if (IsSaid(steps)) file->Tell(*steps, "has no effect: lr_scheduler constant has no warm-up");
    if (IsSaid(ratio)) file->Tell(*ratio, "has no effect: lr_scheduler constant has no warm-up");
  } else if (steps) {
    const auto number = steps->value->get<double>();
    if (number > 0 && number < 1) {
      NumberFor("warmup-ratio")(*steps, file);
    } else {
      WholeFor("warmup", 0)(*steps, file);
    }
    if (ratio) file->Tell(*ratio, "warmup_steps overrides it");
  } else if (ratio) {
    NumberFor("warmup-ratio")(*ratio, file);
  } else {
    TellOfWarmup(file);
  }
  if (const auto least = file->Find("cosine_min_lr_ratio"); IsSaid(least)) {
    const bool is_cosine = !schedule || *schedule->value == "cosine";
    if (is_cosine && file->IsOverridden("schedule", "cosine")) {
      file->GiveWay(*least, "schedule");
    } else if (!is_cosine && file->Given("schedule") != "cosine") {
      file->Tell(*least, "has no effect: lr_scheduler is not cosine");
    } else {
      NumberFor("min-lr-ratio")(*least, file);
    }
  }
  const auto constant = file->Find("cosine_constant_lr_ratio");
  if (IsSaid(constant) && IsSaid(file->Find("cosine_min_lr_ratio"))) {
    throw file->Refusal(*constant, "asks for another curve", "leave it out, or see --schedule wsd");
  }
}

void FinishPrecision(ForeignFile* file) {
  const auto bf16 = file->Find("bf16"), fp16 = file->Find("fp16"), half = file->Find("float16"),
             bhalf = file->Find("bfloat16");
  const bool is_auto = bf16 && *bf16->value == "auto", is_full = bf16 && *bf16->value == "full";
  if (bf16 && !is_auto && !bf16->value->is_boolean() && !is_full) {
    throw file->Refusal(*bf16, "must be true, false, auto or full");
  }
  const bool is_bf16 = is_full || IsTrue(bf16);
  for (const auto& other : {fp16, half}) {
    if (!IsTrue(other) || (!is_bf16 && !IsTrue(bhalf))) continue;
    file->Refuse(*other, "mixed-precision",
                 std::string("is true, and so is ") + (is_bf16 ? "bf16" : "bfloat16"),
                 "leave one of the two out, or give --mixed-precision");
    return;
  }
  constexpr char kMasters[] = "masters of the weights are fp32 all the same";
  if (is_auto && !IsTrue(fp16) && !IsTrue(half)) {
    file->Give(*bf16, "mixed-precision", "auto");
  } else if (bf16 && !is_auto && *bf16->value != false) {
    file->Give(*bf16, "mixed-precision", "bf16");
    if (is_full) file->Tell(*bf16, kMasters);
  } else if (IsTrue(bhalf)) {
    file->Give(*bhalf, "mixed-precision", "bf16");
    file->Tell(*bhalf, kMasters);
  } else if (IsTrue(fp16)) {
    file->Give(*fp16, "mixed-precision", "fp16");
  } else if (IsTrue(half)) {
    file->Give(*half, "mixed-precision", "fp16");
    file->Tell(*half, kMasters);
  } else if (bf16) {
    file->Give(*bf16, "mixed-precision", "no");
  } else if (const auto full = file->Find("float32"); IsTrue(full)) {
    file->Give(*full, "mixed-precision", "no");
  }
}

/// Without either key peft takes these of the families that train shares with it.
constexpr char kPeftTargets[] = "q_proj,v_proj";

void GiveTargets(const ForeignKey& adapter, ForeignFile* file) {
  const auto linear = file->Find("lora_target_linear"), modules = file->Find("lora_target_modules");
  if (IsTrue(linear)) {
    file->Give(*linear, "lora-targets", "all-linear");
    if (modules && !modules->value->empty()) {
      file->Tell(*modules,
                 "lora_target_linear overrides it: linear layers get adapters, embeddings and the "
                 "head do not");
    }
  } else if (modules && modules->value->is_string() && *modules->value != "all-linear") {
    throw file->Refusal(*modules, "is a pattern", "write a list of names, or lora_target_linear: true");
  } else if (modules && !modules->value->empty()) {
    ListFor("lora-targets")(*modules, file);
  } else {
    file->Give(adapter, "lora-targets", kPeftTargets);
    file->Tell(adapter, std::string("names no matrices: ") + kPeftTargets + ", as peft takes them");
  }
}

/// LoRA+. peft counts what has one dimension, as DoRA's magnitudes have, to the second factors.
void GiveRates(ForeignFile* file) {
  const auto ratio = file->Find("loraplus_lr_ratio");
  if (!IsSaid(ratio)) return;
  const std::string factor = "=" + file->TextOf(*ratio);
  const bool is_dora = IsTrue(file->Find("peft_use_dora"));
  file->Give(*ratio, "lr-scale", "lora_B" + factor + (is_dora ? ",lora_magnitude_vector" + factor : ""));
}

/// What is trained beside or in another way than plain adapters.
void GiveKinds(ForeignFile* file) {
  const auto saved = file->Find("lora_modules_to_save"), dora = file->Find("peft_use_dora"),
             rslora = file->Find("peft_use_rslora");
  if (saved && !saved->value->empty()) ListFor("lora-save-modules")(*saved, file);
  if (dora) SwitchFor("dora", "true", "")(*dora, file);
  if (rslora) SwitchFor("rslora", "true", "")(*rslora, file);
}

void FinishAdapter(ForeignFile* file) {
  const auto adapter = file->Find("adapter"), four = file->Find("load_in_4bit");
  const auto rank = file->Find("lora_r"), alpha = file->Find("lora_alpha"),
             folder = file->Find("lora_model_dir"), dropout = file->Find("lora_dropout");
  if (!IsSaid(adapter)) {
    if (IsTrue(four))
      throw file->Refusal(*four, "is true without an adapter", "write adapter: qlora, or false");
    for (const char* const name : {"lora_r", "lora_alpha", "lora_dropout", "lora_target_modules",
                                   "lora_target_linear", "lora_model_dir", "lora_modules_to_save",
                                   "peft_use_dora", "peft_use_rslora", "loraplus_lr_ratio"}) {
      if (const auto key = file->Find(name); IsSaid(key)) file->Ignore(*key);
    }
    return;
  }
  const bool is_qlora = *adapter->value == "qlora";
  if (!is_qlora && *adapter->value != "lora") {
    throw file->Refusal(*adapter, "is " + ShownValue(*adapter->value) + ": there are lora and qlora");
  }
  if (is_qlora && four && !IsTrue(four)) throw file->Refusal(*four, "is false with adapter: qlora");
  if (is_qlora || IsTrue(four)) file->Give(is_qlora ? *adapter : *four, "quant", "nf4");
  if (dropout) NumberFor("lora-dropout")(*dropout, file);
  GiveRates(file);
  if (IsSaid(folder)) return TextFor("adapter", "rank, alpha and targets are this adapter's")(*folder, file);
  if (!IsSaid(rank)) throw file->Refusal(*adapter, "needs lora_r");
  WholeFor("lora")(*rank, file);
  if (alpha) NumberFor("lora-alpha")(*alpha, file);
  GiveTargets(*adapter, file);
  GiveKinds(file);
}

}  // namespace
}  // namespace axolotl

const RecipeProgram& AxolotlProgram() {
  using namespace axolotl;
  static const RecipeProgram program = {
      .name = "axolotl",
      .owns =
          [](const json& root) {
            if (!root.contains("base_model")) return false;
            for (const char* const name :
                 {"adapter", "datasets", "pretraining_dataset", "micro_batch_size", "sequence_len"}) {
              if (root.contains(name)) return true;
            }
            return false;
          },
      .prepare = nullptr,
      .rules = MakeRules,
      .finish =
          [](ForeignFile* file) {
            FinishLength(file);
            FinishSchedule(file);
            if (!file->Find("learning_rate")) {
              file->Refuse(*file->Find("base_model"), "lr", "comes without learning_rate",
                           "add it, or give --lr");
            }
            FinishPrecision(file);
            FinishAdapter(file);
          },
      .defaults = {{"epochs", "1"},
                   {"batch", "1"},
                   {"accum", "1"},
                   {"seq", "512"},
                   {"packing", "off"},
                   {"schedule", "cosine"},
                   {"min-lr-ratio", "0"},
                   {"warmup-ratio", "0.03"},
                   {"weight-decay", "0"},
                   {"beta1", "0.9"},
                   {"beta2", "0.999"},
                   {"adam-eps", "1e-8"},
                   {"clip", "1"},
                   {"mixed-precision", "auto"},
                   {"seed", "42"},
                   {"save-every", "epoch"},
                   {"keep", "4"}},
      .section = "AXOLOTL FILES"};
  return program;
}

}  // namespace trainwright
