#include "tools/train_synonym_options.h"

#include <string>

#include "tools/synonym_kinds.h"
#include "tools/training_arguments_options.h"

namespace trainwright {
const OptionSynonyms& SynonymsOfTrain() {
  static const OptionSynonyms synonyms = [] {
    const OptionSynonym steps = {.key = "steps", .words = {{"-1", ""}}};  // by epochs
    const OptionSynonym saved_modules = {.key = "lora-save-modules", .joins = true};
    const OptionSynonym targets = {.key = "lora-targets", .joins = true};
    const OptionSynonym clip = {.key = "clip"}, accum = {.key = "accum"}, seq = {.key = "seq"};
    const OptionSynonym batch = {.key = "batch",
                                 .notice = "samples of one micro-batch; --accum of them are a step"};
    const OptionSynonym persistent = WithoutEffect("--workers are threads that live as long as the run");
    OptionSynonyms names = {
        {"max-lr", {.key = "lr"}},
        {"per-device-batch-size", batch},
        {"micro-batch-size", batch},
        {"train-batch-size", batch},
        {"batch-size", batch},
        {"grad-accum", accum},
        {"grad-accum-steps", accum},
        {"accumulation-steps", accum},
        {"num-epochs", {.key = "epochs"}},
        {"max-iters", steps},
        {"num-steps", steps},
        {"train-steps", steps},
        {"warmup-iters", {.key = "warmup"}},
        {"lr-decay-iters",
         WithoutEffect("the learning rate falls until the end of the run, whose length --steps says")},
        {"min-lr", {.key = "min-lr-ratio", .notice = "a share of --lr"}},
        {"lr-schedule", {.key = "schedule"}},
        {"scheduler", {.key = "schedule"}},
        {"grad-clip", clip},
        {"gradient-clip-norm", clip},
        {"gradient-clip-val", clip},
        {"clip-grad-norm", clip},
        {"out-dir", {.key = "out"}},
        {"log-interval", {.key = "log-every"}},
        {"save-interval", {.key = "save-every"}},
        {"eval-interval", {.key = "eval-every"}},
        {"early-stopping-patience", {.key = "early-stop"}},
        {"num-workers", {.key = "workers"}},
        {"persistent", persistent},
        {"persistent-workers", persistent},
        {"pin-memory", OnOrOffHere("pin")},
        {"prefetch-factor", {.key = "prefetch"}},
        {"packing", OnOrOffHere("packing")},
        {"sample-packing", OnOrOffHere("packing")},
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
        {"lora-r", {.key = "lora"}},
        {"lora-rank", {.key = "lora"}},
        {"lora-target-modules", targets},
        {"target-modules", targets},
        {"lora-modules-to-save", saved_modules},
        {"modules-to-save", saved_modules},
        {"use-rslora", FlagHere("rslora")},
        {"use-dora", FlagHere("dora")},
        {"load-in-4bit", {.key = "quant", .words = {{"true", "nf4"}, {"false", "none"}}, .only_words = true}},
        {"preserve-rng-state", WithoutEffect("dropout is a function of the seed and the place of a token, so "
                                             "what is computed again draws the same")},
    };
    names.insert(TrainingArguments().begin(), TrainingArguments().end());
    return names;
  }();
  return synonyms;
}

}  // namespace trainwright
