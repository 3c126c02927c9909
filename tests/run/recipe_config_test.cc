// Files of axolotl, torchtune and the LoRA trainer as options of train.
#include "lib/run/recipe_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lib/run/foreign_optimizer.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::Fixture;
using test::MessageOf;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

using Options = std::map<std::string, std::string>;

OptionsOfFile Read(const std::string& text) {
  return ReadRecipe(text, "f.yaml").value();
}

Options OptionsOf(const OptionsOfFile& file) {
  Options options;
  for (const OptionValue& option : file.options) options[option.key] = option.value;
  return options;
}

/// A file beside one option that takes precedence over it.
OptionsOfFile ReadBeside(const std::string& option, const std::string& value, const std::string& text) {
  const auto given = [&](const std::string& key) { return key == option ? value : std::string(); };
  return ReadRecipe(text, "f.yaml", given).value();
}

const std::string kAxolotl = "base_model: .\nmicro_batch_size: 2\n";
const std::string kTorchtune = "optimizer: {_component_: torch.optim.AdamW}\n";

Options OfAxolotl(const std::string& text) {
  return OptionsOf(Read(kAxolotl + text));
}

Options OfTorchtune(const std::string& text) {
  return OptionsOf(Read(kTorchtune + text));
}

/// What is said when the text is refused as a usage error; empty when it is not.
std::string RefusalOf(const std::string& text) {
  const auto parse = [&] { ReadRecipe(text, "f.yaml"); };
  const auto code = CodeOf(parse);
  if (!code) return "";
  EXPECT_EQ(*code, ErrorCode::kUsage);
  return MessageOf(parse);
}

TEST(RecipeConfigTest, AFileIsKnownByItsKeys) {
  EXPECT_EQ(Read("lora: {lora_r: 8}").program, "the LoRA trainer");
  EXPECT_EQ(Read("loss: {_component_: torch.nn.CrossEntropyLoss}").program, "torchtune");
  EXPECT_EQ(Read("base_model: x\nsequence_len: 8").program, "axolotl");
  for (const char* const ours :
       {"", "lr: 1e-3", "lora: 8\nlr: 1", "base_model: x", "[a]", "a: [", "a: &x 1"}) {
    EXPECT_FALSE(ReadRecipe(ours, "f.yaml")) << ours;
  }
}

TEST(RecipeConfigTest, AFileOfAxolotlBecomesTheOptionsThatMeanTheSame) {
  const std::string path = Fixture("run/recipes/axolotl_qlora.yaml");
  const OptionsOfFile file = ReadRecipe(test::ReadFile(path), path).value();
  EXPECT_EQ(OptionsOf(file), (Options{{"init", "models/small"},
                                      {"quant", "nf4"},
                                      {"lora", "16"},
                                      {"lora-alpha", "32"},
                                      {"lora-dropout", "0.05"},
                                      {"lora-targets", "all-linear"},
                                      {"eval-split", "0.02"},
                                      {"seq", "2048"},
                                      {"packing", "on"},
                                      {"batch", "2"},
                                      {"accum", "8"},
                                      {"epochs", "3"},
                                      {"optimizer", "adamw"},
                                      {"schedule", "cosine"},
                                      {"lr", "2e-4"},
                                      {"warmup-ratio", "0.1"},
                                      {"weight-decay", "0.01"},
                                      {"clip", "0.5"},
                                      {"mixed-precision", "auto"},
                                      {"tf32", "on"},
                                      {"checkpoint-activations", "full"},
                                      {"log-every", "5"},
                                      {"save-every", "epoch"},
                                      {"out", "./outputs/small"}}));
  EXPECT_THAT(file.refused, IsEmpty());
  EXPECT_THAT(
      file.notices,
      ElementsAre(AllOf(HasSubstr("'base_model'"), HasSubstr("no folder 'models/small'")),
                  AllOf(HasSubstr("'datasets'"), HasSubstr("--records sft"), HasSubstr("--chunk 2048")),
                  HasSubstr("'evals_per_epoch'"), HasSubstr("'special_tokens'"),
                  HasSubstr("without effect here: flash_attention, model_type, pad_to_sequence_len, "
                            "tokenizer_type, wandb_name")));
  EXPECT_THAT(file.defaults, AllOf(Contains(Pair("min-lr-ratio", "0")), Contains(Pair("beta2", "0.999"))));
}

TEST(RecipeConfigTest, NoEvaluationsOfAxolotlAreSaidWhereThereIsSomethingToEvaluateOn) {
  const std::string never = "evals_per_epoch: 0\nval_set_size: ";
  EXPECT_EQ(OfAxolotl(never + "0").count("eval-every"), 0u);
  EXPECT_EQ(OfAxolotl("evals_per_epoch: 0").count("eval-every"), 0u);
  EXPECT_THAT(OfAxolotl(never + "0.1"), Contains(Pair("eval-every", "0")));
  for (const char* const option : {"eval-data", "eval-split"}) {
    EXPECT_THAT(OptionsOf(ReadBeside(option, "0.1", kAxolotl + never + "0")),
                Contains(Pair("eval-every", "0")))
        << option;
  }
  EXPECT_THAT(RefusalOf(kAxolotl + "evals_per_epoch: never"), HasSubstr("must be a whole number"));
}

TEST(RecipeConfigTest, TablesKernelsAndLogsOfAxolotlAreWithoutEffect) {
  const OptionsOfFile file = Read(kAxolotl +
                                  "eval_table_max_new_tokens: 128\nflash_attn_fuse_qkv: false\n"
                                  "liger_swiglu: true\nrelora_cpu_offload: false\nuse_swanlab: true\n"
                                  "plugins: [axolotl.integrations.swanlab.SwanLabPlugin]\n");
  EXPECT_THAT(file.notices,
              Contains(HasSubstr("without effect here: eval_table_max_new_tokens, flash_attn_fuse_qkv, "
                                 "liger_swiglu, plugins, relora_cpu_offload, use_swanlab")));
}

TEST(RecipeConfigTest, AnUnknownKeyThatIsNullSaysNothing) {
  const OptionsOfFile file = Read(kAxolotl + "a_new_key:\nfsdp_config: {a_new_one: null}\n");
  EXPECT_THAT(file.notices, Contains(HasSubstr("without effect here: a_new_key, fsdp_config.a_new_one")));
}

TEST(RecipeConfigTest, AFileOfTorchtuneBecomesTheOptionsThatMeanTheSame) {
  const std::string path = Fixture("run/recipes/torchtune_lora.yaml");
  const OptionsOfFile file = ReadRecipe(test::ReadFile(path), path).value();
  EXPECT_EQ(OptionsOf(file), (Options{{"out", "runs/small"},
                                      {"lora", "64"},
                                      {"lora-alpha", "128"},
                                      {"lora-dropout", "0.0"},
                                      {"lora-targets", "q_proj,v_proj,o_proj,gate_proj,up_proj,down_proj"},
                                      {"seq", "1024"},
                                      {"init", "models/small"},
                                      {"packing", "on"},
                                      {"loss-on", "all"},
                                      {"seed", "7"},
                                      {"batch", "4"},
                                      {"optimizer", "adamw"},
                                      {"weight-decay", "0.05"},
                                      {"lr", "3e-4"},
                                      {"schedule", "cosine"},
                                      {"warmup", "20"},
                                      {"epochs", "2"},
                                      {"accum", "8"},
                                      {"log-every", "1"},
                                      {"mixed-precision", "bf16"},
                                      {"checkpoint-activations", "full"},
                                      {"offload", "no"}}));
  EXPECT_THAT(file.notices,
              ElementsAre(HasSubstr("'checkpointer.checkpoint_dir'"), HasSubstr("'dataset'"),
                          HasSubstr("'dataset._component_': predicts the inputs, too"),
                          AllOf(HasSubstr("without effect here: "), HasSubstr(", profiler, "))));
  EXPECT_THAT(file.defaults, AllOf(Contains(Pair("clip", "0")), Contains(Pair("schedule", "constant"))));
}

TEST(RecipeConfigTest, KeysOfAxolotlThatBelongTogetherAreOneOption) {
  EXPECT_THAT(OfAxolotl("max_steps: 10\nnum_epochs: 2"),
              AllOf(Contains(Pair("steps", "10")), Not(Contains(Pair("epochs", "2")))));
  EXPECT_THAT(OfAxolotl("batch_size: 8"), Contains(Pair("accum", "4")));
  EXPECT_THAT(OfAxolotl("lr_scheduler: constant\nwarmup_steps: 9"), Contains(Pair("warmup", "0")));
  EXPECT_THAT(OfAxolotl("lr_scheduler: constant_with_warmup\nwarmup_steps: 9"),
              Contains(Pair("warmup", "9")));
  EXPECT_THAT(OfAxolotl("warmup_steps: 0.1"), Contains(Pair("warmup-ratio", "0.1")));
  EXPECT_THAT(OfAxolotl("bf16: false\nfp16: true"), Contains(Pair("mixed-precision", "fp16")));
  EXPECT_THAT(OfAxolotl("bf16: auto\nfp16: true"), Contains(Pair("mixed-precision", "fp16")));
  EXPECT_THAT(OfAxolotl("bf16: false\nfp16: false"), Contains(Pair("mixed-precision", "no")));
  EXPECT_THAT(OfAxolotl("adapter: lora\nlora_r: 4\nload_in_4bit: true"), Contains(Pair("quant", "nf4")));
  EXPECT_THAT(OfAxolotl("adapter: lora\nlora_r: 4\nlora_target_modules: [q_proj, mlp.up_proj]"),
              Contains(Pair("lora-targets", "q_proj,mlp.up_proj")));
  EXPECT_EQ(OfAxolotl("lora_r: 4\nlora_alpha: 8").count("lora"), 0u);
  EXPECT_THAT(OfAxolotl("adapter: lora\nlora_r: 4\npeft_use_dora: true\npeft_use_rslora: true\n"
                        "lora_modules_to_save: [embed_tokens, lm_head]"),
              AllOf(Contains(Pair("dora", "true")), Contains(Pair("rslora", "true")),
                    Contains(Pair("lora-save-modules", "embed_tokens,lm_head"))));
  EXPECT_THAT(OfAxolotl("adapter: lora\nlora_r: 4\npeft_use_dora: false\nlora_modules_to_save: []"),
              AllOf(Not(Contains(Pair("dora", "true"))), Not(Contains(Pair("lora-save-modules", "")))));
  EXPECT_EQ(OfAxolotl("peft_use_dora: true\nlora_modules_to_save: [lm_head]").count("dora"), 0u)
      << "without an adapter they say nothing";
  EXPECT_THAT(OfAxolotl("adapter: lora\nlora_model_dir: old\nlora_r: 4"),
              AllOf(Contains(Pair("adapter", "old")), Not(Contains(Pair("lora", "4")))));
  EXPECT_THAT(
      OfAxolotl("gradient_checkpointing: offload"),
      AllOf(Contains(Pair("checkpoint-activations", "full")), Contains(Pair("offload", "activations"))));
  EXPECT_THAT(OfAxolotl("gradient_checkpointing: false\nfsdp_config: {fsdp_activation_checkpointing: true}"),
              Contains(Pair("checkpoint-activations", "full")));
}

TEST(RecipeConfigTest, AStepOfAxolotlThatContradictsItselfIsShownAsItsSum) {
  EXPECT_EQ(
      RefusalOf(kAxolotl + "batch_size: 8\ngradient_accumulation_steps: 3"),
      "f.yaml: key 'batch_size' asks for batch_size 8 / micro_batch_size 2 = 4 micro-batches a step, but "
      "gradient_accumulation_steps is 3 (line 3) | leave one of the two out");
  EXPECT_EQ(RefusalOf(kAxolotl + "batch_size: 8\ngradient_accumulation_steps: 4"), "");
}

TEST(RecipeConfigTest, WhatIsSaidOfALengthGoesWithTheOptionThatItBecomes) {
  const OptionsOfFile torchtune = Read(kTorchtune + "epochs: 2\nmax_steps_per_epoch: 5");
  EXPECT_THAT(torchtune.notices, Not(Contains(HasSubstr("times epochs"))));
  EXPECT_THAT(torchtune.notices_of_options, ElementsAre(Pair("steps", HasSubstr("times epochs"))));
  EXPECT_THAT(Read(kAxolotl + "max_steps: 10\nnum_epochs: 2").notices_of_options,
              ElementsAre(Pair("steps", HasSubstr("'num_epochs': max_steps overrides it"))));
}

TEST(RecipeConfigTest, TheBoundOfAxolotlsOwnWarmUpIsSaid) {
  EXPECT_THAT(Read(kAxolotl + "num_epochs: 2").notices_of_options,
              ElementsAre(Pair("warmup-ratio", AllOf(HasSubstr("'num_epochs'"), HasSubstr("--warmup 100")))));
  EXPECT_THAT(Read(kAxolotl + "max_steps: 20000").notices_of_options,
              ElementsAre(Pair("warmup-ratio", HasSubstr("'max_steps'"))));
  for (const char* const text : {"max_steps: 3333", "warmup_ratio: 0.03", "warmup_steps: 5",
                                 "warmup_steps: 0", "lr_scheduler: constant"}) {
    EXPECT_THAT(Read(kAxolotl + text).notices_of_options, IsEmpty()) << text;
  }
}

TEST(RecipeConfigTest, TheBoundOfAxolotlsOwnWarmUpIsSaidOfTheLengthThatTheRunHas) {
  const auto said = [](const std::string& option, const std::string& value, const std::string& text) {
    return ReadBeside(option, value, kAxolotl + text).notices_of_options;
  };
  EXPECT_THAT(said("steps", "200", "num_epochs: 2"), IsEmpty());
  EXPECT_THAT(said("steps", "5000", "max_steps: 10"), ElementsAre(Pair("warmup-ratio", HasSubstr("100"))));
  EXPECT_THAT(said("epochs", "2", "max_steps: 10"), ElementsAre(Pair("warmup-ratio", HasSubstr("100"))));
}

TEST(RecipeConfigTest, CompilationOfOtherProgramsIsChosenByTheDevice) {
  for (const char* value : {"true", "auto"}) {
    EXPECT_THAT(OfAxolotl(std::string("torch_compile: ") + value), Contains(Pair("compile", "auto")))
        << value;
  }
  EXPECT_EQ(OfAxolotl("torch_compile: false").count("compile"), 0u);
  EXPECT_THAT(OfTorchtune("compile: true"), Contains(Pair("compile", "auto")));
  EXPECT_EQ(OfTorchtune("compile: false").count("compile"), 0u);
}

TEST(RecipeConfigTest, KeysOfTorchtuneThatBelongTogetherAreOneOption) {
  EXPECT_THAT(OfTorchtune("epochs: 2\nmax_steps_per_epoch: 5"),
              AllOf(Contains(Pair("steps", "10")), Not(Contains(Pair("epochs", "2")))));
  EXPECT_THAT(
      OfTorchtune("model: {_component_: torchtune.models.qwen2.qlora_qwen2_7b, lora_attn_modules: [q_proj]}"),
      AllOf(Contains(Pair("quant", "nf4")), Contains(Pair("lora", "8")), Contains(Pair("lora-alpha", "16")),
            Contains(Pair("lora-targets", "q_proj"))));
  EXPECT_EQ(OfTorchtune("model: {_component_: torchtune.models.mistral.mistral_7b}").count("lora"), 0u);
  EXPECT_THAT(OfTorchtune("model: {_component_: torchtune.models.qwen2.lora_qwen2_7b, use_dora: true, "
                          "lora_attn_modules: [q_proj]}"),
              Contains(Pair("dora", "true")));
  EXPECT_THAT(OfTorchtune("dtype: fp32"), Contains(Pair("mixed-precision", "no")));
  EXPECT_THAT(OfTorchtune("dataset: {packed: true, train_on_input: true}"),
              AllOf(Contains(Pair("packing", "on")), Contains(Pair("loss-on", "all"))));
}

TEST(RecipeConfigTest, WhatAFileLeavesOutIsWhatItsProgramDoesWithoutIt) {
  // Which tokens are predicted: axolotl's answers alone, torchtune's of alpaca everything.
  EXPECT_EQ(OfAxolotl("train_on_inputs: false").count("loss-on"), 0u);
  EXPECT_THAT(OfAxolotl("train_on_inputs: true"), Contains(Pair("loss-on", "all")));
  EXPECT_EQ(OfAxolotl("train_on_inputs: true\ndatasets: [{path: x, type: completion}]").count("loss-on"), 0u);
  EXPECT_THAT(OfTorchtune("dataset: {_component_: torchtune.datasets.alpaca_cleaned_dataset}"),
              Contains(Pair("loss-on", "all")));
  EXPECT_EQ(OfTorchtune("dataset: {_component_: torchtune.datasets.alpaca_dataset, train_on_input: false}")
                .count("loss-on"),
            0u);
  EXPECT_EQ(
      OfTorchtune("dataset: {_component_: torchtune.datasets.text_completion_dataset}").count("loss-on"), 0u);
  // The lowest learning rate is a cosine's.
  EXPECT_EQ(OfAxolotl("lr_scheduler: linear\ncosine_min_lr_ratio: 0.1").count("min-lr-ratio"), 0u);
  EXPECT_THAT(OfAxolotl("lr_scheduler: cosine\ncosine_min_lr_ratio: 0.1"),
              Contains(Pair("min-lr-ratio", "0.1")));
  // Adapters where no matrix is named are peft's own choice.
  EXPECT_THAT(OfAxolotl("adapter: lora\nlora_r: 8"), Contains(Pair("lora-targets", "q_proj,v_proj")));
  EXPECT_THAT(OfAxolotl("neftune_noise_alpha: 0"), Contains(Pair("batch", "2"))) << "0 is off";
  const OptionsOfFile axolotl = Read("base_model: x\nsequence_len: 8");
  EXPECT_THAT(axolotl.defaults, Contains(Pair("batch", "1")));
  ASSERT_EQ(axolotl.refused.size(), 1u);
  EXPECT_EQ(axolotl.refused[0].first, "lr") << "axolotl requires it";
  EXPECT_THAT(Read(kTorchtune).defaults, AllOf(Contains(Pair("lr", "1e-3")), Contains(Pair("keep", "0"))));
}

TEST(RecipeConfigTest, WhatAsksForAnotherResultIsRefusedByNameAndLine) {
  for (const auto& [text, said] : std::vector<std::pair<std::string, std::string>>{
           {kAxolotl + "rl: dpo", "key 'rl' asks for preferences"},
           {kAxolotl + "neftune_noise_alpha: 5", "key 'neftune_noise_alpha' has no counterpart"},
           {kAxolotl + "adapter: llama-adapter", "there are lora and qlora"},
           {kAxolotl + "adapter: qlora", "key 'adapter' needs lora_r"},
           {kAxolotl + "adapter: lora\nlora_r: 8\nlora_target_modules: 'layers.[0-3].*'", "is a pattern"},
           {kAxolotl + "adapter: lora\nlora_r: 8\nlora_modules_to_save: {a: 1}", "'lora_modules_to_save'"},
           {kAxolotl + "adapter: lora\nlora_r: 8\npeft_use_dora: maybe",
            "'peft_use_dora' must be true or false"},
           {kAxolotl + "load_in_4bit: true", "without an adapter"},
           {kAxolotl + "plugins: [axolotl.integrations.kernels.KernelsPlugin]", "KernelsPlugin"},
           {kAxolotl + "tensor_parallel_size: 2", "is 2: ranks divide samples"},
           {kAxolotl + "resume_from_checkpoint: out/checkpoint-5", "another program"},
           {kAxolotl + "model_type: AutoModelForSequenceClassification", "no language model"},
           {kAxolotl + "micro_batch: 2", "is none that is read here"},
           {kAxolotl + "micro_batch_size: 2", "'micro_batch_size' is given twice"},
           {kAxolotl + "sequence_len: long", "must be a whole number"},
           {kAxolotl + "datasets: &d []", "an anchor"},
           {kAxolotl + "datasets: 5", "key 'datasets' must be a list of mappings"},
           {kAxolotl + "datasets: {path: x}", "key 'datasets' must be a list of mappings"},
           {kAxolotl + "pretraining_dataset:\n  - 5", "key 'pretraining_dataset.0' must hold keys"},
           {kTorchtune + "dataset: 5", "key 'dataset' must hold keys of its own, or be a list"},
           {kTorchtune + "dataset_val: [5]", "key 'dataset_val.0' must hold keys"},
           {kTorchtune + "dataset: [{packed: maybe}]", "key 'dataset.0.packed' must be true or false"},
           {kTorchtune + "model: {_component_: torchtune.models.gemma.gemma_2b}", "train has no such model"},
           {kTorchtune + "model: {use_dora: maybe}", "key 'model.use_dora' must be true or false"},
           {kTorchtune + "loss: {_component_: torchtune.rlhf.loss.DPOLoss}", "train has no such loss"},
           {kTorchtune + "quantizer: {_component_: a.B}", "key 'quantizer'"},
           {kTorchtune + "lr_schedule: {}", "key 'lr_schedule'"},
           {kTorchtune + "tokenizer: {max_seq: 5}", "key 'tokenizer.max_seq'"}}) {
    EXPECT_THAT(RefusalOf(text), AllOf(HasSubstr(said), HasSubstr("(line "))) << text;
  }
  EXPECT_EQ(RefusalOf(kAxolotl + "rl:\nreward_model: false\ntokens: []\nresume_from_checkpoint: null"), "");
}

TEST(RecipeConfigTest, SetsOfTorchtuneThatAreTextAreToldAsText) {
  for (const char* const builder :
       {"text_completion_dataset", "wikitext_dataset", "cnn_dailymail_articles_dataset"}) {
    EXPECT_THAT(Read(kTorchtune + "dataset: {_component_: torchtune.datasets." + builder + "}").notices,
                Contains(AllOf(HasSubstr("'dataset'"), HasSubstr("--records lm"))))
        << builder;
  }
  EXPECT_THAT(Read(kTorchtune + "dataset: {_component_: torchtune.datasets.alpaca_dataset}").notices,
              Contains(HasSubstr("--records sft")));
}

TEST(RecipeConfigTest, AValueThatAnOptionCanTakeThePlaceOfIsRefusedByThatOption) {
  const auto refused = [](const std::string& text) {
    std::string said;
    for (const auto& [option, error] : Read(text).refused) said += option + ": " + error.what() + "\n";
    return said;
  };
  EXPECT_THAT(refused(kAxolotl + "optimizer: lion_8bit"),
              AllOf(HasSubstr("optimizer: "), HasSubstr("'lion_8bit'"), HasSubstr("(line 3)")));
  EXPECT_THAT(refused(kAxolotl + "lr_scheduler: rex"), HasSubstr("schedule: "));
  EXPECT_THAT(refused(kAxolotl + "load_in_8bit: true"), HasSubstr("quant: "));
  EXPECT_THAT(refused("optimizer: {_component_: bitsandbytes.optim.Lion8bit}"), HasSubstr("optimizer: "));
  EXPECT_EQ(refused(kAxolotl + "learning_rate: 1e-3\noptimizer: paged_adamw_32bit"), "");
}

/// What is refused unless an option is given: "option: message, hint" in lines.
std::string RefusedUnlessGiven(const std::string& text) {
  std::string said;
  for (const auto& [option, error] : Read(text).refused)
    said += option + ": " + error.what() + ", " + error.hint() + "\n";
  return said;
}

TEST(RecipeConfigTest, DataSetsOfAListMustAgreeOnWhatARunHasOnce) {
  const auto listed = [](const std::string& first, const std::string& second) {
    return kTorchtune + "dataset:\n  - " + first + "\n  - " + second + "\n";
  };
  EXPECT_THAT(
      OfTorchtune("dataset: [{packed: true, train_on_input: true}, {packed: true, train_on_input: true}]"),
      AllOf(Contains(Pair("packing", "on")), Contains(Pair("loss-on", "all"))));
  EXPECT_THAT(OfTorchtune("dataset: [{packed: false}, {_component_: a.chat_dataset}]"),
              AllOf(Contains(Pair("packing", "off")), Not(Contains(Pair("loss-on", "all")))));
  // Text is predicted whole either way, and has no say.
  EXPECT_THAT(
      OfTorchtune("dataset: [{_component_: a.text_completion_dataset}, {_component_: a.alpaca_dataset}]"),
      Contains(Pair("loss-on", "all")));
  EXPECT_THAT(RefusedUnlessGiven(listed("{packed: true}", "{packed: false}")),
              AllOf(HasSubstr("packing: "), HasSubstr("'dataset.1.packed' differs from dataset.0.packed"),
                    HasSubstr("(line 4)")));
  EXPECT_THAT(RefusedUnlessGiven(listed("{_component_: a.chat_dataset}", "{packed: true}")),
              HasSubstr("'dataset.1.packed' differs from dataset.0,"));
  EXPECT_THAT(RefusedUnlessGiven(listed("{train_on_input: false}", "{_component_: a.alpaca_dataset}")),
              AllOf(HasSubstr("loss-on: "), HasSubstr("'dataset.1._component_' differs from")));
  EXPECT_EQ(RefusedUnlessGiven(listed("{packed: true}", "{packed: true}")), "");
  EXPECT_THAT(OfTorchtune("dataset: [{masking_strategy: train_on_all}, {_component_: a.alpaca_dataset}]"),
              Contains(Pair("loss-on", "all")));
  EXPECT_THAT(RefusedUnlessGiven(kTorchtune + "dataset: {masking_strategy: train_on_last}"),
              AllOf(HasSubstr("loss-on: "), HasSubstr("'dataset.masking_strategy' is 'train_on_last'")));
}

TEST(RecipeConfigTest, ADataSetThatChoosesOtherTokensThanTheAnswersIsRefusedUnlessLossOnIsGiven) {
  const auto set = [](const std::string& keys) {
    return kAxolotl + "learning_rate: 1\ndatasets:\n  - path: x\n    " + keys + "\n";
  };
  for (const char* const keys :
       {"roles_to_train: [user]", "roles_to_train: []", "train_on_eos: all", "train_on_eos: last",
        "train_on_eot: last", "message_field_training: train", "message_field_training_detail: parts"}) {
    const std::string key = std::string(keys).substr(0, std::string(keys).find(':'));
    EXPECT_THAT(RefusedUnlessGiven(set(keys)),
                AllOf(HasSubstr("loss-on: "), HasSubstr("'datasets.0." + key + "'"), HasSubstr("(line 6)"),
                      HasSubstr("--loss-on")))
        << keys;
  }
  for (const char* const keys : {"roles_to_train: [assistant]", "roles_to_train: [gpt]", "train_on_eos: turn",
                                 "message_field_training:", "roles_to_train:"}) {
    EXPECT_EQ(RefusedUnlessGiven(set(keys)), "") << keys;
  }
  EXPECT_EQ(RefusedUnlessGiven(set("roles_to_train: [user]") + "train_on_inputs: true\n"), "")
      << "everything is learned";
}

TEST(RecipeConfigTest, PrecisionsThatContradictEachOtherAreRefusedAndMastersAreSaidToBeFp32) {
  const std::string axolotl = kAxolotl + "learning_rate: 1\n";
  for (const char* const both : {"bf16: true\nfp16: true", "bf16: full\nfp16: true",
                                 "bf16: true\nfloat16: true", "bfloat16: true\nfp16: true"}) {
    EXPECT_THAT(RefusedUnlessGiven(axolotl + both),
                AllOf(HasSubstr("mixed-precision: "), HasSubstr("(line 5)")))
        << both;
  }
  const OptionsOfFile full = Read(axolotl + "bf16: full");
  EXPECT_THAT(OptionsOf(full), Contains(Pair("mixed-precision", "bf16")));
  EXPECT_THAT(full.notices,
              Contains(AllOf(HasSubstr("'bf16'"), HasSubstr("masters of the weights are fp32"))));
}

TEST(RecipeConfigTest, AnOptimizerThatOffloadsIsAdamWAndItsGradientsAreOffloaded) {
  const auto wrapped = [](const std::string& keys) {
    return OptionsOf(
        Read("optimizer: {_component_: torchao.prototype.low_bit_optim.CPUOffloadOptimizer" + keys));
  };
  EXPECT_THAT(wrapped("}"),
              AllOf(Contains(Pair("optimizer", "adamw")), Not(Contains(Pair("offload", "gradients")))));
  EXPECT_THAT(wrapped(", offload_gradients: true, lr: 4e-5}"),
              AllOf(Contains(Pair("offload", "gradients")), Contains(Pair("lr", "4e-5"))));
  EXPECT_THAT(wrapped(", offload_gradients: true}\nenable_activation_offloading: true"),
              Contains(Pair("offload", "all")));
  EXPECT_THAT(wrapped(", offload_gradients: true}\nenable_activation_offloading: false"),
              Contains(Pair("offload", "gradients")));
  EXPECT_THAT(wrapped(", optimizer_class: torch.optim.AdamW, minimal_size: 64}"),
              Contains(Pair("optimizer", "adamw")));
  EXPECT_THAT(RefusedUnlessGiven(
                  "optimizer: {_component_: a.CPUOffloadOptimizer, base_optimizer: torch.optim.Rprop}"),
              HasSubstr("'optimizer.base_optimizer' is torch.optim.Rprop"));
  EXPECT_THAT(wrapped(", base_optimizer: torch.optim.SGD}"), Contains(Pair("optimizer", "sgd")));
}

/// What a program does where its file says nothing, by options, with the optimizer of its file.
Options DefaultsOf(const std::string& text) {
  const OptionsOfFile file = Read(text);
  const Options given = OptionsOf(file);
  const OnlyWith numbers = NumbersOfOptimizers();
  Options defaults;
  for (const auto& [key, value] : file.defaults) {
    const auto only = numbers.find(key);
    const bool counts =
        only == numbers.end() ||
        only->second.second.contains(given.contains("optimizer") ? given.at("optimizer") : "");
    if (counts) defaults[key] = value;
  }
  return defaults;
}

TEST(RecipeConfigTest, AnOptimizerOfAxolotlIsOursOfTheSameMeaning) {
  const auto optimizer = [](const std::string& name) { return OfAxolotl("optimizer: " + name)["optimizer"]; };
  EXPECT_EQ(optimizer("muon"), "muon");
  EXPECT_EQ(optimizer("lion_pytorch"), "lion");
  EXPECT_EQ(optimizer("adamw_bnb_8bit"), "adamw8bit");
  EXPECT_EQ(optimizer("sgd"), "sgd");
  EXPECT_EQ(OfAxolotl("optimizer: lion_pytorch\nadam_beta2: 0.98")["beta2"], "0.98");
  EXPECT_THAT(Read(kAxolotl + "optimizer: paged_adamw_8bit").notices, Contains(HasSubstr("are not paged")));
}

TEST(RecipeConfigTest, AnOptimizerOfTheLoraTrainerIsOursOfTheSameMeaning) {
  const auto optimizer = [](const std::string& name) {
    return OptionsOf(Read("lora: {optim: " + name + "}"))["optimizer"];
  };
  for (const char* const name : {"adamw_torch", "adamw_hf", "adamw_torch_fused"}) {
    EXPECT_EQ(optimizer(name), "adamw") << name;
  }
  for (const char* const name : {"adamw_8bit", "adamw_bnb_8bit", "paged_adamw_8bit"}) {
    EXPECT_EQ(optimizer(name), "adamw8bit") << name;
  }
  for (const char* const name : {"lion", "sgd", "muon"}) EXPECT_EQ(optimizer(name), name);
  EXPECT_EQ(RefusedUnlessGiven("lora: {optim: adafactor}"),
            "optimizer: f.yaml: key 'lora.optim' is 'adafactor': there is no such optimizer (line 1), give "
            "--optimizer, if one of those that there are will do: adamw, adamw8bit, lion, muon, sgd\n");
}

TEST(RecipeConfigTest, AConstantRateOfTheLoraTrainerHasNoWarmup) {
  const OptionsOfFile constant = Read("lora: {lr_scheduler_type: constant, warmup_ratio: 0.1}");
  EXPECT_EQ(OptionsOf(constant), (Options{{"schedule", "constant"}, {"warmup", "0"}}));
  EXPECT_THAT(constant.notices,
              ElementsAre(HasSubstr("'lora.warmup_ratio': has no effect: lr_scheduler_type constant")));
  EXPECT_EQ(OptionsOf(Read("lora: {lr_scheduler_type: constant_with_warmup, warmup_ratio: 0.1}")),
            (Options{{"schedule", "constant"}, {"warmup-ratio", "0.1"}}));
}

TEST(RecipeConfigTest, TheRatioOfLoraPlusIsAScaleOfTheSecondFactors) {
  const std::string lora = "adapter: lora\nlora_r: 4\nloraplus_lr_ratio: 16\n";
  EXPECT_EQ(OfAxolotl(lora)["lr-scale"], "lora_B=16");
  EXPECT_EQ(OfAxolotl(lora + "peft_use_dora: true")["lr-scale"], "lora_B=16,lora_magnitude_vector=16");
  EXPECT_EQ(OfAxolotl("loraplus_lr_ratio: 16").count("lr-scale"), 0u) << "without an adapter it says nothing";
  EXPECT_THAT(Read(kAxolotl + lora + "loraplus_lr_embedding: 1e-6").notices,
              Contains(HasSubstr("'loraplus_lr_embedding': has no effect")));
}

TEST(RecipeConfigTest, SgdOfTransformersHasNoMomentumAndNoNumbersOfAdam) {
  const std::string text =
      kAxolotl + "optimizer: sgd\nadam_beta2: 0.98\nadam_epsilon: 1e-6\nweight_decay: 0.1";
  EXPECT_THAT(OptionsOf(Read(text)),
              AllOf(Contains(Pair("beta1", "0")), Contains(Pair("weight-decay", "0.1")),
                    Not(Contains(Pair("beta2", "0.98"))), Not(Contains(Pair("adam-eps", "1e-6")))));
  EXPECT_THAT(DefaultsOf(text), AllOf(Not(Contains(Pair("beta2", "0.999"))),
                                      Not(Contains(Pair("adam-eps", "1e-8"))), Contains(Pair("clip", "1"))));
  EXPECT_THAT(DefaultsOf(kAxolotl + "optimizer: lion_pytorch"),
              AllOf(Contains(Pair("beta2", "0.999")), Not(Contains(Pair("adam-eps", "1e-8")))));
}

TEST(RecipeConfigTest, AnOptimizerOfATorchtuneRecipeIsOursWithItsDefaults) {
  const std::string sgd = "optimizer: {_component_: torch.optim.SGD, lr: 0.1";
  EXPECT_THAT(OptionsOf(Read(sgd + "}")),
              AllOf(Contains(Pair("optimizer", "sgd")), Contains(Pair("beta1", "0")),
                    Contains(Pair("weight-decay", "0"))));
  EXPECT_THAT(OptionsOf(Read(sgd + ", momentum: 0.9, nesterov: true, weight_decay: 1e-4}")),
              AllOf(Contains(Pair("beta1", "0.9")), Contains(Pair("optimizer-option", "nesterov=1")),
                    Contains(Pair("weight-decay", "1e-4"))));
  EXPECT_THAT(RefusalOf(sgd + ", dampening: 0.5}"), HasSubstr("'optimizer.dampening'"));
  EXPECT_THAT(RefusalOf("optimizer: {_component_: torch.optim.AdamW, momentum: 0.9}"),
              HasSubstr("'optimizer.momentum'"));
  EXPECT_THAT(OptionsOf(Read("optimizer: {_component_: bitsandbytes.optim.PagedAdamW8bit}")),
              Contains(Pair("optimizer", "adamw8bit")));
}

TEST(RecipeConfigTest, WhatAnOptimizerMeansGoesWithItWhereAnotherOverridesIt) {
  const std::string torchtune = "optimizer: {_component_: torch.optim.SGD}";
  for (const std::string& text :
       {kAxolotl + "optimizer: sgd", std::string("lora: {optim: sgd}"), torchtune}) {
    EXPECT_THAT(OptionsOf(ReadBeside("optimizer", "sgd", text)), Contains(Pair("beta1", "0"))) << text;
    EXPECT_EQ(OptionsOf(ReadBeside("optimizer", "adamw", text)).count("beta1"), 0u) << text;
  }
  EXPECT_EQ(OptionsOf(ReadBeside("optimizer", "adamw", torchtune)).count("weight-decay"), 0u);
  EXPECT_THAT(ReadBeside("optimizer", "lion", "lora: {optim: adamw_bnb_8bit}").notices, IsEmpty());
}

TEST(RecipeConfigTest, AnSgdWithoutMomentumTakesTheOneThatIsCycled) {
  for (const std::string& text : {kAxolotl + "optimizer: sgd", std::string("lora: {optim: sgd}"),
                                  std::string("optimizer: {_component_: torch.optim.SGD}")}) {
    EXPECT_EQ(OptionsOf(ReadBeside("cycle-momentum", "true", text)).count("beta1"), 0u) << text;
    EXPECT_THAT(OptionsOf(ReadBeside("cycle-momentum", "false", text)), Contains(Pair("beta1", "0"))) << text;
  }
  const std::string own = "lora: {optim: sgd}\n";
  EXPECT_EQ(OptionsOf(Read(own + "cycle-momentum: true")).count("beta1"), 0u);
  EXPECT_EQ(OptionsOf(Read(own + "cycle_momentum: true")).count("beta1"), 0u);
  EXPECT_EQ(OptionsOf(Read(own + "beta1: 0.8")).count("beta1"), 0u) << "it is read as train's own";
  EXPECT_THAT(OptionsOf(ReadBeside("cycle-momentum", "false", own + "cycle-momentum: true")),
              Contains(Pair("beta1", "0")));
}

TEST(RecipeConfigTest, NumbersOfSgdGiveWayToAnotherOptimizerWithTheirLine) {
  const OptionsOfFile file = ReadBeside(
      "optimizer", "adamw",
      "optimizer:\n  _component_: torch.optim.SGD\n  momentum: 0.5\n  nesterov: true\n  lr: 0.1\n");
  EXPECT_EQ(OptionsOf(file).count("beta1"), 0u);
  EXPECT_EQ(OptionsOf(file).count("optimizer-option"), 0u);
  EXPECT_THAT(OptionsOf(file), Contains(Pair("lr", "0.1")));
  EXPECT_THAT(file.notices, ElementsAre("f.yaml line 3, optimizer.momentum: --optimizer overrides it",
                                        "f.yaml line 4, optimizer.nesterov: --optimizer overrides it"));
}

TEST(RecipeConfigTest, NumbersThatTheFilesOptimizerDoesNotTakeCountForOneThatOverridesIt) {
  const std::string moments = "adam_beta1: 0.8\nadam_epsilon: 1e-6\n";
  for (const char* const name : {"sgd", "lion_pytorch"}) {
    const std::string text = kAxolotl + moments + "optimizer: " + name;
    EXPECT_THAT(OptionsOf(ReadBeside("optimizer", "adamw", text)),
                AllOf(Contains(Pair("beta1", "0.8")), Contains(Pair("adam-eps", "1e-6"))))
        << name;
  }
}

TEST(RecipeConfigTest, AScheduleThatOverridesAConstantHasTheWarmupThatTheFileSays) {
  for (const std::string& text : {std::string("lora: {lr_scheduler_type: constant, warmup_ratio: 0.1}"),
                                  kAxolotl + "lr_scheduler: constant\nwarmup_ratio: 0.1"}) {
    const OptionsOfFile file = ReadBeside("schedule", "cosine", text);
    EXPECT_THAT(OptionsOf(file), Contains(Pair("warmup-ratio", "0.1"))) << text;
    EXPECT_EQ(OptionsOf(file).count("warmup"), 0u) << text;
    EXPECT_THAT(file.notices, Not(Contains(HasSubstr("has no warm-up")))) << text;
  }
  EXPECT_THAT(OptionsOf(ReadBeside("schedule", "cosine",
                                   kAxolotl + "lr_scheduler: linear\ncosine_min_lr_ratio: 0.2")),
              Contains(Pair("min-lr-ratio", "0.2")));
  EXPECT_EQ(OptionsOf(ReadBeside("schedule", "linear", kAxolotl + "cosine_min_lr_ratio: 0.2"))
                .count("min-lr-ratio"),
            0u);
}

TEST(RecipeConfigTest, AKeyThatIsGivenTwiceIsPlacedTwice) {
  const std::string text = kAxolotl + "seed: 1\nsequence_len: 8\nseed: 2\n";
  try {
    ReadRecipe(text, "f.yaml");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.place(), "line 5");
    EXPECT_THAT(error.hint(), HasSubstr("line 3 has it, too: leave one of the two out"));
  }
}

TEST(RecipeConfigTest, ReferencesWithinAFileAreResolved) {
  EXPECT_THAT(OfTorchtune("batch_size: 4\nseed: ${batch_size}\ncheckpointer: {checkpoint_dir: .}\n"
                          "output_dir: a/${checkpointer.checkpoint_dir}/${seed}\n"),
              AllOf(Contains(Pair("seed", "4")), Contains(Pair("out", "a/./4"))));
  EXPECT_THAT(RefusalOf(kTorchtune + "output_dir: ${model.x}"),
              AllOf(HasSubstr("'output_dir' refers to ${model.x}"), HasSubstr("(line 2)")));
  EXPECT_THAT(RefusalOf(kTorchtune + "output_dir: ${oc.env:HOME}"), HasSubstr("no single value"));
  EXPECT_THAT(RefusalOf(kTorchtune + "output_dir: ${seed}\nseed: ${output_dir}"),
              HasSubstr("refers to itself"));
  EXPECT_THAT(RefusalOf(kTorchtune + "output_dir: ${seed"), HasSubstr("without an end"));
  EXPECT_THAT(RefusalOf(kTorchtune + "output_dir: ${optimizer}"), HasSubstr("no single value"));
}

TEST(RecipeConfigTest, AKeyThatOthersReferToMayHaveAnyName) {
  const OptionsOfFile file = Read(kTorchtune + "name: part0\nroot: ${name}/x\noutput_dir: /tmp/${root}\n");
  EXPECT_THAT(OptionsOf(file), Contains(Pair("out", "/tmp/part0/x")));
  EXPECT_THAT(file.notices, IsEmpty());
  EXPECT_THAT(OfTorchtune("base_model_path: .\ncheckpointer: {checkpoint_dir: '${base_model_path}'}"),
              Contains(Pair("init", ".")));
  EXPECT_EQ(RefusalOf(kTorchtune + "base_model_path: /models/x"), "");
  EXPECT_THAT(RefusalOf(kTorchtune + "name: part0\noutput_dir: /tmp/x"),
              AllOf(HasSubstr("key 'name' is none that is read here"), HasSubstr("(line 2)")));
  EXPECT_THAT(RefusalOf(kTorchtune + "paths: {base: x}\noutput_dir: ${paths.base}"),
              HasSubstr("key 'paths' is none that is read here"));
}

TEST(RecipeConfigTest, FilesOfTheLoraTrainerMayHoldKeysOfTrain) {
  const OptionsOfFile file = Read("lora: {lora_r: 8, hf_token: secret}\ndata: [a, b]\ninference: {x: [1]}\n");
  EXPECT_EQ(OptionsOf(file), (Options{{"lora", "8"}}));
  EXPECT_EQ(file.ours, (std::set<std::string>{"data"}));
  EXPECT_THAT(file.notices, ElementsAre(HasSubstr("'inference'"),
                                        AllOf(HasSubstr("'lora.hf_token'"), Not(HasSubstr("secret")))));
  EXPECT_THAT(RefusalOf("lora: {lora_rr: 8}"), HasSubstr("key 'lora.lora_rr'"));
}

}  // namespace
}  // namespace trainwright
