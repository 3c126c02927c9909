#include "tools/train_presets.h"

namespace trainwright {
namespace {

using Values = std::vector<std::pair<std::string, std::string>>;

/// `values` with those of `changes` in their place or behind them.
Values With(Values values, const Values& changes) {
  for (const auto& change : changes) {
    bool replaced = false;
    for (auto& value : values) {
      if (value.first != change.first) continue;
      value.second = change.second;
      replaced = true;
    }
    if (!replaced) values.push_back(change);
  }
  return values;
}

/// Pretraining of a GPT-NeoX model: what all sizes share.
Values Refocused() {
  return {{"model", "neox-1.4b"}, {"seq", "1024"},
          {"lr", "2e-4"},         {"schedule", "cosine"},
          {"warmup", "10"},       {"weight-decay", "0.1"},
          {"clip", "1"},          {"adam-eps", "1e-8"},
          {"seed", "42"},         {"workers", "4"},
          {"prefetch", "2"},      {"pin", "auto"},
          {"drop-last", "true"},  {"mixed-precision", "auto"},
          {"async-save", "on"}};
}

/// Rejection fine-tuning: what all its trainings share, Hugging Face's defaults among them.
Values Rft() {
  return {{"epochs", "3"},       {"seq", "128"},          {"lr", "2e-4"},     {"min-lr-ratio", "0"},
          {"weight-decay", "0"}, {"beta1", "0.9"},        {"beta2", "0.999"}, {"adam-eps", "1e-8"},
          {"clip", "1"},         {"save-every", "epoch"}, {"keep", "1"},      {"save-model-only", "true"}};
}

Values RftOptimised() {
  return With(Rft(), {{"batch", "16"},
                      {"accum", "4"},
                      {"mixed-precision", "fp16"},
                      {"tf32", "on"},
                      {"schedule", "cosine"},
                      {"warmup", "50"},
                      {"checkpoint-activations", "no"},
                      {"workers", "4"},
                      {"prefetch", "2"},
                      {"pin", "on"},
                      {"compile", "auto"},
                      {"log-every", "50"}});
}

/// Training of one model to embed and to generate: what the recipes of its authors share with Hugging Face's
/// trainer, by which they ran.
Values Grit() {
  return {{"objective", "grit"}, {"schedule", "linear"}, {"min-lr-ratio", "0"}, {"weight-decay", "0"},
          {"beta1", "0.9"},      {"beta2", "0.999"},     {"adam-eps", "1e-8"},  {"clip", "1"}};
}

/// As published for a model of 7 billion parameters, but for the model.
Values Grit7b() {
  return With(Grit(), {{"mode", "unified"},
                       {"lr", "2e-5"},
                       {"warmup-ratio", "0.03"},
                       {"steps", "1253"},
                       {"batch", "32"},
                       {"accum", "8"},
                       {"gen-batch", "4"},
                       {"group-size", "2"},
                       {"query-max-len", "256"},
                       {"passage-max-len", "2048"},
                       {"pooling", "mean"},
                       {"attn", "bbcc"},
                       {"gen-loss", "mixed"},
                       {"mixed-precision", "bf16"},
                       {"checkpoint-activations", "full"}});
}

/// Training of a TEN model on samples of 32,768 tokens: what all sizes share.
Values Ten(const std::string& model) {
  return {{"model", model},          {"seq", "32768"},      {"lr", "3e-4"},
          {"schedule", "one-cycle"}, {"clip", "1"},         {"mixed-precision", "auto"},
          {"warmup-ratio", "0.1"},   {"workers", "4"},      {"prefetch", "4"},
          {"pin", "auto"},           {"save-every", "500"}, {"checkpoint-activations", "full"},
          {"data-cache", "16MiB"}};
}

constexpr char kTenNotes[] =
    "The 16 MiB of --data-cache are the guide's 256 chunks of 32,768 tokens, 2 bytes each; where it saves "
    "every N steps, N is 500 here. TF32 is --tf32 on. Data that is packed with --chunk 32768 "
    "fills the samples.";

constexpr char kNotOptions[] = "The fused AdamW of its sources is no option here: AdamW is one pass.";

/// Pretraining.
std::vector<OptionPreset> RefocusedPresets() {
  return {
      {.name = "refocused-test",
       .summary = "pretraining, quick look: 1,000 steps of 2 x 2 samples of 1024 tokens, on a tiny GPT-NeoX",
       .notes = "Of the sources that disagree, batch, accumulation, saves (200) and workers (4) are the "
                "guide's, length, records and warm-up those of the guide's commit, which has 2 workers. The "
                "model there is the one of 1.4 billion parameters (--model neox-1.4b); here it is neox-tiny, "
                "which has the same blocks.",
       .values = With(Refocused(), {{"model", "neox-tiny"},
                                    {"batch", "2"},
                                    {"accum", "2"},
                                    {"steps", "1000"},
                                    {"save-every", "200"},
                                    {"log-every", "25"}})},
      {.name = "refocused-production",
       .summary =
           "pretraining, GPT-NeoX of 1.4 billion parameters: 10,000 steps of 4 x 8 samples of 1024 tokens",
       .notes =
           "Batch, accumulation (8), saves (500) and workers (4) are the guide's, length (10,000), records "
           "(100) and warm-up (10) those of its commit, which accumulates 4. The sources' newest state has "
           "accumulation 4, 25,000 steps, saves every 1,250, records every 250 and a warm-up of 500.",
       .values = With(Refocused(), {{"batch", "4"},
                                    {"accum", "8"},
                                    {"steps", "10000"},
                                    {"save-every", "500"},
                                    {"log-every", "100"}})},
      {.name = "refocused-low-memory",
       .summary = "refocused-production in little memory: the same 32 samples a step, one at a time",
       .notes = "The sources give a recipe without numbers (halve the batch, raise accumulation, bf16, "
                "checkpoint activations): here it is followed to the end at production's effective batch.",
       .values = With(Refocused(), {{"batch", "1"},
                                    {"accum", "32"},
                                    {"steps", "10000"},
                                    {"save-every", "500"},
                                    {"log-every", "100"},
                                    {"mixed-precision", "bf16"},
                                    {"checkpoint-activations", "full"},
                                    {"prefetch", "1"},
                                    {"workers", "2"},
                                    {"async-save", "off"}})}};
}

/// Rejection fine-tuning.
std::vector<OptionPreset> RftPresets() {
  return {
      {.name = "rft-baseline",
       .summary = "rejection fine-tuning before any speed-up: batch 32, fp32, 3 epochs, no workers",
       .notes = "The schedule is linear to 0, the default of the trainer that it stands for; the guide calls "
                "it constant.",
       .values = With(Rft(), {{"batch", "32"},
                              {"accum", "1"},
                              {"mixed-precision", "no"},
                              {"schedule", "linear"},
                              {"warmup", "0"},
                              {"checkpoint-activations", "full"},
                              {"workers", "0"},
                              {"log-every", "10"}})},
      {.name = "rft-batch-a",
       .summary = "rft-fast in micro-batches of 64 without accumulation",
       .notes = kNotOptions,
       .values = With(RftOptimised(), {{"batch", "64"}, {"accum", "1"}})},
      {.name = "rft-batch-b",
       .summary = "rft-fast in micro-batches of 8, accumulated 8 times",
       .notes = kNotOptions,
       .values = With(RftOptimised(), {{"batch", "8"}, {"accum", "8"}})},
      {.name = "rft-fast",
       .summary = "rejection fine-tuning, the guide's optimised configuration: fp16, 16 x 4, cosine, "
                  "model-only saves",
       .notes = std::string("Its 64 samples a step are twice the baseline's 32, so compare the two at equal "
                            "samples. On some 900 examples 3 epochs are 43 steps: the warm-up of 50 does not "
                            "end within them, which train warns of. ") +
                kNotOptions,
       .values = RftOptimised()},
      {.name = "rft-conservative",
       .summary = "rft-fast with checkpointed activations, not compiled",
       .notes = std::string("The guide has 4 workers, its script 2: the guide's. The batch (16 x 4) is the "
                            "script's, and so "
                            "is that nothing is compiled. ") +
                kNotOptions,
       .values = With(RftOptimised(), {{"checkpoint-activations", "full"}, {"compile", "off"}})},
      {.name = "rft-balanced",
       .summary = "rejection fine-tuning, the script's middle way: 16 x 4, no checkpointing, 4 workers",
       .notes = std::string("It is rft-fast, by the script's name. ") + kNotOptions,
       .values = RftOptimised()},
      {.name = "rft-aggressive",
       .summary = "rft-fast in micro-batches of 32, accumulated twice, with 6 workers",
       .notes = kNotOptions,
       .values = With(RftOptimised(), {{"batch", "32"}, {"accum", "2"}, {"workers", "6"}})},
      {.name = "rft-accurate",
       .summary = "rft-fast where it loses accuracy: accumulated 8 times, 4 epochs",
       .notes =
           "The guide's recipe for lost accuracy: more accumulation, cosine with 50 steps of warm-up, and a "
           "fourth epoch.",
       .values = With(RftOptimised(), {{"accum", "8"}, {"epochs", "4"}})}};
}

/// Adapters on a quantised chat model.
std::vector<OptionPreset> LoraPresets() {
  return {{.name = "lora-fast",
           .summary = "QLoRA fine-tuning of a chat model (--init): rank 16, nf4, 4 x 2, 4 epochs, lr 4e-4",
           .notes =
               "Batch, accumulation, epochs, lr, records (5), evaluation (20), saves (100) and the one kept "
               "checkpoint are the guide's; its code has 2 x 8, 2 epochs, 2e-4, 10, 100, 200 and 2. Pinned "
               "memory is the guide's on, not the code's off. The loss is on answers; the sources' is "
               "--loss-on all. Evaluation needs --eval-split 0.05, which that code always does, or "
               "--eval-data. A GPU without bf16 needs --mixed-precision fp16.",
           .values = {{"lora", "16"},
                      {"lora-alpha", "32"},
                      {"lora-dropout", "0.05"},
                      {"lora-targets", "q_proj,k_proj,v_proj,o_proj"},
                      {"quant", "nf4"},
                      {"epochs", "4"},
                      {"batch", "4"},
                      {"accum", "2"},
                      {"lr", "4e-4"},
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
                      {"pin", "on"},
                      {"seed", "42"},
                      {"log-every", "5"},
                      {"eval-every", "20"},
                      {"save-every", "100"},
                      {"keep", "1"}},
           .essential = {"lora", "quant"}}};
}

/// One model to embed and to generate.
std::vector<OptionPreset> GritPresets() {
  return {
      {.name = "grit-fast",
       .summary = "levers of the GRIT guide: 4 workers, pinned memory, checkpointed activations, bf16",
       .notes =
           "Levers alone, for any objective. The guide's compilation (reduce-overhead) is --compile auto; "
           "passes of the objective grit are never repeated as graphs.",
       .values = {{"workers", "4"},
                  {"pin", "on"},
                  {"compile", "auto"},
                  {"checkpoint-activations", "full"},
                  {"mixed-precision", "bf16"}}},
      {.name = "grit-toy",
       .summary = "GRIT, the smallest recipe of its authors: 5 epochs of 2 records a step, lr 1e-5",
       .notes = "Mode and lengths are the defaults of --objective grit: see OBJECTIVE GRIT.",
       .values = With(Grit(), {{"lr", "1e-5"},
                               {"epochs", "5"},
                               {"batch", "2"},
                               {"accum", "1"},
                               {"warmup", "0"},
                               {"drop-last", "true"}}),
       .essential = {"objective"}},
      {.name = "grit-7b",
       .summary =
           "GRIT of a model of 7 billion parameters, as published: 1,253 steps of 32 x 8 queries a rank",
       .notes = "On 8 ranks these are 2,048 queries and 256 conversations a step. The published run took its "
                "weights (--init) and generative rows without accumulation. Negatives are those of the whole "
                "step and the generative loss is the mean over its labels, as is the default here.",
       .values = With(Grit7b(), {{"model", "mistral-7b"}}),
       .essential = {"objective", "mode"}},
      {.name = "grit-7b-lora",
       .summary =
           "grit-7b with adapters beside the weights of --init: rank 16, alpha 64, dropout 0.1 on q, k, "
           "v and o",
       .notes =
           "The adapters that the authors' training code has as its own, without the names w1, w2 and w3, "
           "which are Mixtral's and miss Mistral's feed-forward layers. --quant nf4 keeps the weights "
           "in 4 bits.",
       .values = With(Grit7b(), {{"lora", "16"},
                                 {"lora-alpha", "64"},
                                 {"lora-dropout", "0.1"},
                                 {"lora-targets", "q_proj,k_proj,v_proj,o_proj"}}),
       .essential = {"objective", "mode", "lora"}}};
}

/// Long samples.
std::vector<OptionPreset> TenPresets() {
  return {
      {.name = "ten-small-32k",
       .summary = "TEN of 131 million parameters on 32,768 tokens: 4 x 4 samples, one-cycle to 3e-4",
       .notes = kTenNotes,
       .values = With(Ten("ten-small-32k"), {{"batch", "4"}, {"accum", "4"}})},
      {.name = "ten-medium-32k",
       .summary = "the same of 281 million parameters: 2 x 8 samples",
       .notes = std::string("The guide has batch 2; accumulation keeps ten-small-32k's 16 samples a step. ") +
                kTenNotes,
       .values = With(Ten("ten-medium-32k"), {{"batch", "2"}, {"accum", "8"}})},
      {.name = "ten-large-32k",
       .summary = "the same of 493 million parameters: 1 x 16 samples",
       .notes = std::string("The guide has batch 1; accumulation keeps ten-small-32k's 16 samples a step. ") +
                kTenNotes,
       .values = With(Ten("ten-large-32k"), {{"batch", "1"}, {"accum", "16"}})}};
}

std::vector<OptionPreset> MakePresets() {
  std::vector<OptionPreset> all;
  for (std::vector<OptionPreset> (*of_system)() :
       {RefocusedPresets, RftPresets, LoraPresets, GritPresets, TenPresets}) {
    for (OptionPreset& preset : of_system()) all.push_back(std::move(preset));
  }
  return all;
}

/// The names of its guide for presets of pretraining.
void AddGuideNames(std::vector<OptionPreset>* presets) {
  for (const char* name : {"test", "production", "low-memory"}) {
    const std::string of = std::string("refocused-") + name;
    OptionPreset alias = *FindPreset(*presets, of);
    alias.name = name;
    alias.summary = "another name of " + of;
    alias.notes.clear();
    presets->push_back(std::move(alias));
  }
}

}  // namespace

const std::vector<OptionPreset>& TrainPresets() {
  static const std::vector<OptionPreset> presets = [] {
    std::vector<OptionPreset> made = MakePresets();
    AddGuideNames(&made);
    return made;
  }();
  return presets;
}

}  // namespace trainwright
