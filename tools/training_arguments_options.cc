#include "tools/training_arguments_options.h"

#include <initializer_list>
#include <string>

#include "lib/run/foreign_optimizer.h"
#include "tools/synonym_kinds.h"

namespace trainwright {
namespace {

/// A switch that chooses a value of ours.
OptionSynonym Choosing(const std::string& key, const std::string& value) {
  return {.key = key, .words = {{"true", value}, {"false", ""}}, .only_words = true};
}

/// A switch of two words here.
OptionSynonym Switching(const std::string& key, const std::string& on, const std::string& off) {
  return {.key = key, .words = {{"true", on}, {"false", off}}, .only_words = true};
}

/// What says how another program goes about it.
OptionSynonym Aside(const std::string& notice = "") {
  return {.key = "", .notice = notice, .told_together = true};
}

/// Values that change nothing here; with others the field asks for what there is not.
OptionSynonym Only(std::initializer_list<const char*> values, const std::string& instead) {
  OptionSynonym only = {.key = "", .only_words = true, .instead = instead};
  for (const char* const value : values) only.words[value] = "";
  return only;
}

const OptionSynonyms& StepFields() {
  static const OptionSynonyms fields = [] {
    const OptionSynonym batch = {.key = "batch",
                                 .notice = "samples of one micro-batch; --accum of them are a step"};
    const OptionSynonym least_rate = {.key = "min-lr-ratio", .notice = "a share of --lr"};
    return OptionSynonyms{
        {"per-device-train-batch-size", batch},
        {"per-gpu-train-batch-size", batch},
        {"gradient-accumulation-steps", {.key = "accum"}},
        {"num-train-epochs", {.key = "epochs"}},
        {"max-steps", {.key = "steps", .words = {{"-1", ""}, {"0", ""}}}},
        {"learning-rate", {.key = "lr"}},
        {"lr-scheduler-type",
         {.key = "schedule",
          .words = {{"cosine", "cosine"},
                    {"cosine_with_min_lr", "cosine"},
                    {"linear", "linear"},
                    {"constant", "constant"},
                    {"constant_with_warmup", "constant"},
                    {"warmup_stable_decay", "wsd"}},
          .only_words = true,
          .notice = "Hugging Face's linear and cosine end at 0 (--min-lr-ratio 0), and its constant has no "
                    "warm-up (--warmup 0)"}},
        {"lr-scheduler-kwargs",
         Only({"", "{}"},
              "of a mapping min_lr, min_lr_rate, min_lr_ratio and num_decay_steps are read, and "
              "SCHEDULES in train(1) has the schedules that there are")},
        {"lr-scheduler-kwargs.min-lr", least_rate},
        {"lr-scheduler-kwargs.min-lr-rate", {.key = "min-lr-ratio"}},
        {"lr-scheduler-kwargs.min-lr-ratio", {.key = "min-lr-ratio"}},
        {"lr-scheduler-kwargs.num-decay-steps", {.key = "decay-steps"}},
        {"lr-scheduler-kwargs.decay-type",
         Only({"1-sqrt"}, "wsd falls as 1 - sqrt, see SCHEDULES in train(1)")},
        {"lr-scheduler-kwargs.warmup-type", Only({"linear"}, "warm-up is linear")},
        {"lr-scheduler-kwargs.num-cycles", Only({"0.5"}, "a cosine falls once, which 0.5 says")},
        {"warmup-steps", {.key = "warmup"}},
        {"warmup-ratio", {.key = "warmup-ratio"}},
        {"optim", {.key = "optimizer", .words = OptimizersByTheirNames(), .only_words = true}},
        {"adafactor", Only({"false"}, "optim names the optimizer, and there is no Adafactor: leave it out")},
        {"optim-args", Only({""}, "--optimizer-option NAME=VALUE gives what an optimizer alone has")},
        {"optim-target-modules",
         Only({},
              "no optimizer here projects gradients, as GaLore and APOLLO do; --lora and --optimizer "
              "adamw8bit take less memory")},
        {"weight-decay", {.key = "weight-decay"}},
        {"adam-beta1", {.key = "beta1"}},
        {"adam-beta2", {.key = "beta2"}},
        {"adam-epsilon", {.key = "adam-eps"}},
        {"average-tokens-across-devices",
         Only({"true"}, "the loss of a step is the mean over its tokens on all ranks: leave it out")},
        {"max-grad-norm", {.key = "clip"}},
        {"label-smoothing-factor", {.key = "label-smoothing"}},
        {"neftune-noise-alpha", Only({"0", "0.0"}, "no noise is added to embeddings: leave it out")},
        {"seed", {.key = "seed"}},
        {"data-seed", WithoutEffect("--seed draws the order of the samples, too")},
        {"full-determinism", FlagHere("deterministic")},
    };
  }();
  return fields;
}

const OptionSynonyms& ComputeFields() {
  static const OptionSynonyms fields = [] {
    const OptionSynonym recomputed =
        Aside("what is recomputed is the same in every way: --checkpoint-activations says how much");
    const OptionSynonym evaluated =
        Only({"false"}, "evaluation computes as training does, by --mixed-precision: leave it out");
    const OptionSynonym divided = Aside("fsdp alone asks for it");
    const OptionSynonym ranks = Aside("gradients are reduced in buckets, --ddp-bucket-mb");
    const OptionSynonym compiled = Aside("--compile says whether kernels are launched at once");
    return OptionSynonyms{
        {"bf16", Switching("mixed-precision", "bf16", "no")},
        {"fp16", Switching("mixed-precision", "fp16", "no")},
        {"fp16-opt-level", WithoutEffect("--mixed-precision fp16 multiplies in fp16 on fp32 master weights "
                                         "with a loss scaler, as O1 and O2 did")},
        {"fp16-backend", Aside()},
        {"half-precision-backend", Aside()},
        {"bf16-full-eval", evaluated},
        {"fp16-full-eval", evaluated},
        {"tf32", OnOrOffHere("tf32")},
        {"gradient-checkpointing", Switching("checkpoint-activations", "full", "no")},
        {"activation-checkpointing", Switching("checkpoint-activations", "full", "no")},
        {"gradient-checkpointing-kwargs", recomputed},
        {"activation-checkpointing-kwargs", recomputed},
        {"torch-compile", Switching("compile", "auto", "off")},
        {"torch-compile-backend", compiled},
        {"torch-compile-mode", compiled},
        {"torchdynamo", compiled},
        {"use-liger-kernel", Aside("kernels are fused anyway")},
        {"liger-kernel-config", Aside("kernels are fused anyway")},
        {"use-cache", Aside("training has no cache of keys and values")},
        {"torch-empty-cache-steps", {.key = "empty-cache-every"}},
        {"auto-find-batch-size",
         {.key = "auto-oom",
          .words = {{"true", "true"}, {"false", "false"}},
          .only_words = true,
          .notice = "a smaller micro-batch keeps the samples of a step"}},
        {"use-cpu", Choosing("device", "cpu")},
        {"no-cuda", Choosing("device", "cpu")},
        {"use-mps-device", Only({"false"}, "--device says where a run computes")},
        {"use-ipex", Aside()},
        {"jit-mode-eval", Aside()},
        {"tpu-num-cores", Aside()},
        {"accelerator-config",
         Only({"", "{}"}, "of a mapping those keys are read that change nothing here; a file is not read")},
        {"accelerator-config.split-batches",
         Only({"false"}, "--batch is of one rank: divide it by the number of ranks")},
        {"accelerator-config.dispatch-batches", Aside()},
        {"accelerator-config.even-batches", Aside()},
        {"accelerator-config.use-seedable-sampler", Aside()},
        {"accelerator-config.non-blocking", Aside("--pin says it")},
        {"accelerator-config.use-configured-state", Aside()},
        {"accelerator-config.gradient-accumulation-kwargs",
         Only({"", "{}"}, "gradient_accumulation_steps says how many micro-batches are a step")},
        {"split-batches", Only({"false"}, "--batch is of one rank: divide it by the number of ranks")},
        {"dispatch-batches", Aside()},
        {"parallelism-config",
         Only({}, "ranks divide samples, and no sample or matrix; PARALLELISM in train(1) says what would")},
        {"ddp-find-unused-parameters", ranks},
        {"ddp-bucket-cap-mb", {.key = "ddp-bucket-mb"}},
        {"ddp-broadcast-buffers", ranks},
        {"ddp-static-graph", ranks},
        {"ddp-backend", Only({"nccl", "gloo"}, "ranks speak NCCL on GPUs and Gloo on CPUs")},
        {"ddp-timeout", {.key = "dist-timeout"}},
        {"fsdp", Only({"", "false"},
                      "weights are not divided among ranks: --zero 2 divides gradients and "
                      "moments")},
        {"fsdp-config", divided},
        {"fsdp-min-num-params", divided},
        {"fsdp-transformer-layer-cls-to-wrap", divided},
        {"mp-parameters", Only({""}, "ranks divide samples, and no matrix")},
        {"sharded-ddp", Only({"", "false"}, "--zero 2 divides gradients and moments")},
        {"deepspeed", {.key = "deepspeed", .instead = "write it to a file of its own, and name that"}},
        {"local-rank", Aside("--nproc starts ranks")},
        {"ray-scope", Aside()},
    };
  }();
  return fields;
}

const OptionSynonyms& DataFields() {
  static const OptionSynonyms fields = {
      {"dataloader-drop-last", FlagHere("drop-last")},
      {"dataloader-num-workers", {.key = "workers"}},
      {"dataloader-pin-memory", Switching("pin", "on", "off")},
      {"dataloader-persistent-workers", Aside("--workers are threads of the whole run")},
      {"dataloader-prefetch-factor", {.key = "prefetch"}},
      {"dataloader-multiprocessing-context", Aside("--workers are threads")},
      {"dataloader-in-order", Aside("the order of samples never depends on workers")},
      {"remove-unused-columns", WithoutEffect("shards hold ids alone")},
      {"label-names", Aside("shards hold ids alone")},
      {"length-column-name", Aside("shards know the lengths of their documents")},
      {"group-by-length", FlagHere("group-by-length")},
      {"train-sampling-strategy",
       {.key = "group-by-length",
        .words = {{"random", ""}, {"group_by_length", "true"}},
        .only_words = true,
        .instead = "known are group_by_length and random: samples come in an order that --seed draws"}},
      {"ignore-data-skip",
       Only({"false"}, "a run that is resumed continues with the samples that come next")},
      {"past-index", Only({"-1"}, "a sample has no state of the one before")},
  };
  return fields;
}

const OptionSynonyms& RecordFields() {
  static const OptionSynonyms fields = [] {
    const OptionSynonym always =
        WithoutEffect("losses are always in metrics.jsonl and in TensorBoard's files (tb/)");
    const OptionSynonym level = Aside("-q and -v say how much is printed");
    const OptionSynonym tracker = Aside("losses are in files of the run alone");
    const OptionSynonym uploaded = Aside("nothing is uploaded");
    const OptionSynonym counted = Aside("every step record has the tokens");
    return OptionSynonyms{
        {"logging-strategy",
         {.key = "log-every",
          .words = {{"steps", ""}, {"epoch", ""}, {"no", ""}, {"false", ""}},
          .only_words = true,
          .notice = "records come by the number of steps"}},
        {"logging-steps", {.key = "log-every"}},
        {"logging-first-step", Aside("--log-every 1 records it")},
        {"logging-dir", always},
        {"log-on-each-node", Aside()},
        {"logging-nan-inf-filter", Aside("a loss that is not finite ends the run with status 6")},
        {"include-num-input-tokens-seen", counted},
        {"include-tokens-per-second", counted},
        {"log-level", level},
        {"log-level-replica", level},
        {"disable-tqdm", WithoutEffect("--progress says how it is shown")},
        {"report-to", always},
        {"run-name", WithoutEffect("a run is named by its folder, --out")},
        {"project", tracker},
        {"trackio-space-id", tracker},
        {"trackio-bucket-id", tracker},
        {"trackio-static-space-id", tracker},
        {"skip-memory-metrics", Aside("every step record has the memory")},
        {"debug", Only({"", "underflow_overflow"},
                       "a loss or gradient that is not finite ends the run with status 6: leave it out")},
        {"tpu-metrics-debug", Aside()},
        {"push-to-hub",
         Only({"false"}, "nothing is uploaded: --copy-to and --copy-command copy checkpoints elsewhere")},
        {"hub-token", uploaded},
        {"hub-private-repo", uploaded},
        {"hub-model-id", uploaded},
        {"hub-strategy", uploaded},
        {"hub-always-push", uploaded},
        {"hub-revision", uploaded},
        {"push-to-hub-model-id", uploaded},
        {"push-to-hub-organization", uploaded},
        {"push-to-hub-token", uploaded},
    };
  }();
  return fields;
}

const OptionSynonyms& EvaluationFields() {
  static const OptionSynonyms fields = [] {
    const OptionSynonym strategy = {
        .key = "eval-every",
        .words = {{"steps", ""}},
        .only_words = true,
        .instead =
            "known are no, steps, and epoch where save_strategy is epoch and load_best_model_at_end true",
        .notice = "no is 0, steps are eval_steps; epoch needs a number of steps"};
    const OptionSynonym shown = Aside("evaluation is of the loss; evaluate(1) has other metrics");
    const OptionSynonym asked = Aside("--eval-data or --eval-split ask for evaluation");
    const OptionSynonym batches = Aside("the loss is the mean over all tokens, in micro-batches of any size");
    const std::string best = "the best checkpoint is that of the lowest evaluation loss, which loss says";
    return OptionSynonyms{
        {"do-train", WithoutEffect("it is what train does")},
        {"do-eval", asked},
        {"do-predict", Aside("evaluate and generate do")},
        {"eval-strategy", strategy},
        {"evaluation-strategy", strategy},
        {"eval-steps", {.key = "eval-every"}},
        {"eval-delay", Only({"0", "0.0"}, "evaluations begin before the first step: leave it out")},
        {"eval-on-start", Aside("a run is evaluated before its first step, too")},
        {"per-device-eval-batch-size", batches},
        {"per-gpu-eval-batch-size", batches},
        {"eval-accumulation-steps", batches},
        {"prediction-loss-only", shown},
        {"eval-do-concat-batches", shown},
        {"use-legacy-prediction-loop", shown},
        {"eval-use-gather-object", shown},
        {"include-for-metrics", shown},
        {"include-inputs-for-metrics", shown},
        {"batch-eval-metrics", shown},
        {"load-best-model-at-end", Switching("keep-best", "1", "0")},
        {"metric-for-best-model", Only({"loss", "eval_loss"}, best)},
        {"greater-is-better", Only({"false"}, best)},
    };
  }();
  return fields;
}

const OptionSynonyms& SavingFields() {
  static const OptionSynonyms fields = {
      {"output-dir", {.key = "out"}},
      {"overwrite-output-dir", WithoutEffect("a run goes on by --resume, and nothing is overwritten")},
      {"save-strategy",
       {.key = "save-every",
        .words = {{"no", "0"}, {"false", "0"}, {"epoch", "epoch"}, {"steps", ""}},
        .only_words = true,
        .instead = "known are best, epoch, no and steps",
        .notice = "no is 0, epoch is epoch, best is --keep-best 1"}},
      {"save-steps", {.key = "save-every"}},
      {"save-total-limit", {.key = "keep"}},
      {"save-only-model", FlagHere("save-model-only")},
      {"save-safetensors", Aside("weights are in safetensors")},
      {"save-on-each-node",
       Only({"false"}, "one rank writes the checkpoints: --copy-to and --copy-command copy them elsewhere")},
      {"enable-jit-checkpoint", Aside("SIGTERM always saves")},
      {"restore-callback-states-from-checkpoint", Aside("a run that is resumed has all of its state")},
      {"resume-from-checkpoint",
       {.key = "resume",
        .words = {{"true", "true"}, {"false", ""}, {"", ""}},
        .only_words = true,
        .instead =
            "true continues the run that output_dir names; --branch-from begins with another's checkpoint",
        .notice = "the run is the one that --out names"}},
  };
  return fields;
}

}  // namespace

const OptionSynonyms& TrainingArguments() {
  static const OptionSynonyms all = [] {
    OptionSynonyms fields;
    for (const OptionSynonyms* some : {&StepFields(), &ComputeFields(), &DataFields(), &RecordFields(),
                                       &EvaluationFields(), &SavingFields()})
      fields.insert(some->begin(), some->end());
    return fields;
  }();
  return all;
}

}  // namespace trainwright
