#include "tools/train_synonym_options.h"

namespace trainwright {
namespace {

/// A flag that chooses a value of ours.
OptionSynonym Choosing(const std::string& key, const std::string& value) {
  return {.key = key, .words = {{"true", value}, {"false", ""}}, .only_words = true};
}

OptionSynonym WithoutEffect(const std::string& notice) {
  return {.key = "", .notice = notice};
}

}  // namespace

const OptionSynonyms& SynonymsOfTrain() {
  static const OptionSynonyms synonyms = [] {
    const OptionSynonym steps = {.key = "steps", .words = {{"-1", ""}}};  // TrainingArguments: by epochs
    const OptionSynonym saved_modules = {.key = "lora-save-modules", .joins = true};
    const OptionSynonym targets = {.key = "lora-targets", .joins = true};
    const OptionSynonym clip = {.key = "clip"}, accum = {.key = "accum"}, seq = {.key = "seq"};
    const OptionSynonym batch = {.key = "batch",
                                 .notice = "samples of one micro-batch; --accum of them are a step"};
    const OptionSynonym resume = {.key = "resume",
                                  .words = {{"true", "true"}, {"false", ""}},
                                  .only_words = true,
                                  .notice = "the run is the one that --out names"};
    // Ours, with values of theirs.
    const auto switched = [](const std::string& key) {
      return OptionSynonym{.key = key, .words = {{"true", "on"}, {"false", "off"}}};
    };
    const OptionSynonym always =
        WithoutEffect("losses are always in metrics.jsonl and in TensorBoard's files (tb/)");
    return OptionSynonyms{
        {"learning-rate", {.key = "lr"}},
        {"max-lr", {.key = "lr"}},
        {"per-device-train-batch-size", batch},
        {"per-device-batch-size", batch},
        {"micro-batch-size", batch},
        {"train-batch-size", batch},
        {"batch-size", batch},
        {"gradient-accumulation-steps", accum},
        {"grad-accum", accum},
        {"grad-accum-steps", accum},
        {"accumulation-steps", accum},
        {"num-train-epochs", {.key = "epochs"}},
        {"num-epochs", {.key = "epochs"}},
        {"max-steps", {.key = "steps", .words = {{"-1", ""}, {"0", ""}}}},
        {"max-iters", steps},
        {"num-steps", steps},
        {"train-steps", steps},
        {"warmup-steps", {.key = "warmup"}},
        {"warmup-iters", {.key = "warmup"}},
        {"lr-decay-iters",
         WithoutEffect("the learning rate falls until the end of the run, whose length --steps says")},
        {"min-lr", {.key = "min-lr-ratio", .notice = "a share of --lr"}},
        {"lr-scheduler-type",
         {.key = "schedule",
          .words = {{"cosine", "cosine"},
                    {"linear", "linear"},
                    {"constant", "constant"},
                    {"constant_with_warmup", "constant"},
                    {"warmup_stable_decay", "wsd"}},
          .only_words = true,
          .notice = "Hugging Face's linear and cosine end at 0 (--min-lr-ratio 0), and its constant has no "
                    "warm-up (--warmup 0)"}},
        {"lr-schedule", {.key = "schedule"}},
        {"scheduler", {.key = "schedule"}},
        {"adam-beta1", {.key = "beta1"}},
        {"adam-beta2", {.key = "beta2"}},
        {"adam-epsilon", {.key = "adam-eps"}},
        {"optim",
         {.key = "optimizer",
          .words = {{"adamw_torch", "adamw"},
                    {"adamw_torch_fused", "adamw"},
                    {"adamw_hf", "adamw"},
                    {"adamw_bnb_8bit", "adamw8bit"},
                    {"adamw_8bit", "adamw8bit"},
                    {"lion_32bit", "lion"},
                    {"adamw", "adamw"}},
          .only_words = true}},
        {"max-grad-norm", clip},
        {"grad-clip", clip},
        {"gradient-clip-norm", clip},
        {"gradient-clip-val", clip},
        {"clip-grad-norm", clip},
        {"bf16", Choosing("mixed-precision", "bf16")},
        {"fp16", Choosing("mixed-precision", "fp16")},
        {"fp16-opt-level", WithoutEffect("--mixed-precision fp16 multiplies in fp16 on fp32 master weights "
                                         "with a loss scaler, as O1 and O2 did")},
        {"gradient-checkpointing", Choosing("checkpoint-activations", "full")},
        {"activation-checkpointing", Choosing("checkpoint-activations", "full")},
        {"output-dir", {.key = "out"}},
        {"out-dir", {.key = "out"}},
        {"run-name", WithoutEffect("a run is named by its folder, --out")},
        {"logging-steps", {.key = "log-every"}},
        {"log-interval", {.key = "log-every"}},
        {"save-steps", {.key = "save-every"}},
        {"save-interval", {.key = "save-every"}},
        {"save-total-limit", {.key = "keep"}},
        {"save-only-model", {.key = "save-model-only"}},
        {"eval-steps", {.key = "eval-every"}},
        {"eval-interval", {.key = "eval-every"}},
        {"load-best-model-at-end", Choosing("keep-best", "1")},
        {"early-stopping-patience", {.key = "early-stop"}},
        {"dataloader-num-workers", {.key = "workers"}},
        {"num-workers", {.key = "workers"}},
        {"dataloader-drop-last", {.key = "drop-last"}},
        {"dataloader-prefetch-factor", {.key = "prefetch"}},
        {"dataloader-pin-memory",
         {.key = "pin", .words = {{"true", "on"}, {"false", "off"}}, .only_words = true}},
        {"packing", switched("packing")},
        {"sample-packing", switched("packing")},
        {"tf32", switched("tf32")},
        {"torch-compile",
         {.key = "compile", .words = {{"true", "auto"}, {"false", "off"}}, .only_words = true}},
        {"resume-from-checkpoint", resume},
        {"model-name-or-path", {.key = "init", .notice = "a folder: nothing is fetched"}},
        {"model-name", {.key = "init", .notice = "a folder: nothing is fetched"}},
        {"train-file", {.key = "data", .notice = "shards that pretokenize and pack made"}},
        {"dataset", {.key = "data", .notice = "shards that pretokenize and pack made"}},
        {"block-size", seq},
        {"max-seq-length", seq},
        {"max-seq-len", seq},
        {"max-length", seq},
        {"sequence-length", seq},
        {"seq-length", seq},
        {"seq-len", seq},
        {"context-length", seq},
        {"label-smoothing-factor", {.key = "label-smoothing"}},
        {"ddp-bucket-cap-mb", {.key = "ddp-bucket-mb"}},
        {"data-seed", WithoutEffect("--seed draws the order of the samples, too")},
        {"lora-r", {.key = "lora"}},
        {"lora-rank", {.key = "lora"}},
        {"lora-target-modules", targets},
        {"target-modules", targets},
        {"lora-modules-to-save", saved_modules},
        {"modules-to-save", saved_modules},
        {"use-rslora", {.key = "rslora"}},
        {"use-dora", {.key = "dora"}},
        {"load-in-4bit", Choosing("quant", "nf4")},
        {"full-determinism", {.key = "deterministic"}},
        {"report-to", always},
        {"logging-dir", always},
        {"disable-tqdm", WithoutEffect("--progress says how it is shown")},
        {"overwrite-output-dir", WithoutEffect("a run goes on by --resume, and nothing is overwritten")},
        {"preserve-rng-state", WithoutEffect("dropout is a function of the seed and the place of a token, so "
                                             "what is computed again draws the same")},
        {"remove-unused-columns", WithoutEffect("shards hold ids alone")},
        {"do-train", WithoutEffect("it is what train does")},
    };
  }();
  return synonyms;
}

}  // namespace trainwright
