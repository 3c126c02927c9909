#include "lib/run/deepspeed_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::Fixture;
using test::MessageOf;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

using Options = std::map<std::string, std::string>;

Options OptionsOf(const OptionsOfFile& file) {
  Options options;
  for (const OptionValue& option : file.options) options[option.key] = option.value;
  return options;
}

Options OptionsOf(const std::string& text) {
  return OptionsOf(ParseDeepSpeedConfig(text, "ds.json"));
}

std::vector<std::string> NoticesOf(const std::string& text) {
  return ParseDeepSpeedConfig(text, "ds.json").notices;
}

/// What is said when the text is refused as a usage error; empty when it is not.
std::string RefusalOf(const std::string& text) {
  const auto parse = [&] { ParseDeepSpeedConfig(text, "ds.json"); };
  const auto code = CodeOf(parse);
  if (!code) return "";
  EXPECT_EQ(*code, ErrorCode::kUsage);
  return MessageOf(parse);
}

TEST(DeepSpeedConfigTest, AFileThatLeavesAllToItsTrainerSaysStageBucketsAndNamesAlone) {
  const OptionsOfFile file = ReadDeepSpeedConfig(Fixture("run/deepspeed/zero2_auto.json"));
  EXPECT_EQ(OptionsOf(file), (Options{{"zero", "2"},
                                      {"ddp-bucket-mb", "762.939453125"},
                                      {"optimizer", "adamw"},
                                      {"schedule", "constant"}}));
  EXPECT_THAT(file.others, IsEmpty());
  EXPECT_THAT(file.notices, ElementsAre(HasSubstr("'scheduler.type'"), HasSubstr("'steps_per_print'"),
                                        HasSubstr("'zero_optimization.offload_optimizer.device'")));
}

TEST(DeepSpeedConfigTest, AFileOfNumbersBecomesTheOptionsThatMeanTheSame) {
  const OptionsOfFile file = ReadDeepSpeedConfig(Fixture("run/deepspeed/zero2_numbers.json"));
  EXPECT_EQ(OptionsOf(file), (Options{{"zero", "2"},
                                      {"ddp-bucket-mb", "1907.3486328125"},
                                      {"mixed-precision", "bf16"},
                                      {"batch", "4"},
                                      {"accum", "8"},
                                      {"clip", "0.5"},
                                      {"optimizer", "adamw"},
                                      {"lr", "0.0003"},
                                      {"beta1", "0.9"},
                                      {"beta2", "0.999"},
                                      {"adam-eps", "1e-06"},
                                      {"weight-decay", "0.01"},
                                      {"schedule", "linear"},
                                      {"min-lr-ratio", "0"},
                                      {"warmup", "50"},
                                      {"steps", "1000"}}));
  ASSERT_EQ(file.others.size(), 1u);
  EXPECT_EQ(file.others[0].key, kTrainBatchSize);
  EXPECT_EQ(file.others[0].value, "64");
}

TEST(DeepSpeedConfigTest, Fp16TakesItsOwnLossScaleAndSaysSo) {
  const OptionsOfFile file = ReadDeepSpeedConfig(Fixture("run/deepspeed/zero1_fp16.json"));
  EXPECT_EQ(OptionsOf(file), (Options{{"zero", "1"},
                                      {"ddp-bucket-mb", "0.25"},
                                      {"mixed-precision", "fp16"},
                                      {"batch", "16"},
                                      {"schedule", "cosine"},
                                      {"min-lr-ratio", "0.05"}}));
  EXPECT_THAT(file.notices, ElementsAre(HasSubstr("'scheduler.type'"), HasSubstr("begins at 2^16")));
}

TEST(DeepSpeedConfigTest, EachOptionNamesTheLineAndTheKeyThatSaidIt) {
  // Keys of other sections and values that look like keys do not mislead it.
  const OptionsOfFile file = ParseDeepSpeedConfig(
      "{\n \"amp\": {\"stage\": null, \"zero_optimization\": null},\n \"optimizer\": {\"type\": \"AdamW\",\n"
      "  \"params\": {\"betas\": [0.8,\n 0.9]}},\n \"zero_optimization\"\n : {\n \"overlap_comm\": true,\n"
      "  \"stage\": 1}, \"gradient_clipping\"\n : 1\n}",
      "ds.json");
  std::map<std::string, std::string> sources;
  for (const OptionValue& option : file.options) sources[option.key] = option.source;
  EXPECT_EQ(sources, (Options{{"optimizer", "ds.json line 3, optimizer.type"},
                              {"beta1", "ds.json line 4, optimizer.params.betas"},
                              {"beta2", "ds.json line 4, optimizer.params.betas"},
                              {"zero", "ds.json line 9, zero_optimization.stage"},
                              {"clip", "ds.json line 9, gradient_clipping"}}));
}

TEST(DeepSpeedConfigTest, WhatSaysNothingLeavesEverythingOpen) {
  for (
      const char* const text :
      {"{}", R"({"zero_optimization": {}})", R"({"zero_optimization": null})",
       R"({"zero_optimization": {"stage": "auto", "offload_optimizer": null, "reduce_bucket_size": "auto"}})",
       R"({"bf16": {"enabled": "auto"}, "fp16": {"enabled": false}})", R"({"amp": {"enabled": false}})",
       R"({"train_batch_size": "auto", "gradient_clipping": null})"}) {
    SCOPED_TRACE(text);
    const OptionsOfFile file = ParseDeepSpeedConfig(text, "ds.json");
    EXPECT_THAT(file.options, IsEmpty());
    EXPECT_THAT(file.notices, IsEmpty());
    EXPECT_THAT(file.others, IsEmpty());
  }
}

TEST(DeepSpeedConfigTest, TwoSwitchesOfPrecisionAreOneOption) {
  EXPECT_EQ(OptionsOf(R"({"bf16": {"enabled": true}, "fp16": {"enabled": "auto"}})"),
            (Options{{"mixed-precision", "bf16"}}));
  EXPECT_EQ(OptionsOf(R"({"bf16": {"enabled": false}, "fp16": {"enabled": true}})"),
            (Options{{"mixed-precision", "fp16"}}));
  EXPECT_EQ(OptionsOf(R"({"bf16": {"enabled": false}, "fp16": {"enabled": false}})"),
            (Options{{"mixed-precision", "no"}}));
  EXPECT_EQ(OptionsOf(R"({"fp16": {"enabled": false}})"), (Options{{"mixed-precision", "no"}}));
  EXPECT_THAT(RefusalOf(R"({"bf16": {"enabled": true}, "fp16": {"enabled": true}})"),
              HasSubstr("'fp16.enabled' is true, and so is bf16.enabled"));
}

TEST(DeepSpeedConfigTest, ReduceBucketsGoBeforeGatherBuckets) {
  EXPECT_EQ(OptionsOf(R"({"zero_optimization": {"allgather_bucket_size": 262144}})"),
            (Options{{"ddp-bucket-mb", "1.0"}}));
  const std::string both =
      R"({"zero_optimization": {"allgather_bucket_size": 1e6, "reduce_bucket_size": 524288}})";
  EXPECT_EQ(OptionsOf(both), (Options{{"ddp-bucket-mb", "2.0"}}));
  EXPECT_THAT(NoticesOf(both), ElementsAre(HasSubstr("'zero_optimization.allgather_bucket_size'")));
}

TEST(DeepSpeedConfigTest, WhatIsAlwaysDoneHereIsToldWhereTheFileSwitchesItOff) {
  for (const std::string key :
       {"overlap_comm", "contiguous_gradients", "reduce_scatter", "allgather_partitions"}) {
    SCOPED_TRACE(key);
    EXPECT_THAT(NoticesOf("{\"zero_optimization\": {\"" + key + "\": true}}"), IsEmpty());
    EXPECT_THAT(NoticesOf("{\"zero_optimization\": {\"" + key + "\": false}}"),
                ElementsAre(HasSubstr("ds.json: key 'zero_optimization." + key + "': has no effect here")));
  }
}

TEST(DeepSpeedConfigTest, OptimizersOfTheSameMeaningAreOurs) {
  EXPECT_EQ(OptionsOf(R"({"optimizer": {"type": "Lion", "params": {"lr": 1e-4}}})"),
            (Options{{"optimizer", "lion"}, {"lr", "0.0001"}}));
  EXPECT_EQ(OptionsOf(R"({"optimizer": {"type": "SGD", "params": {"momentum": 0.9, "nesterov": true}}})"),
            (Options{{"optimizer", "sgd"}, {"beta1", "0.9"}, {"optimizer-option", "nesterov=1"}}));
}

TEST(DeepSpeedConfigTest, WhatAnOptimizerOrAScheduleMeansGoesWithItWhereAnotherOverridesIt) {
  const std::string text = R"({
"optimizer": {"type": "SGD", "params": {
"momentum": 0.5,
"nesterov": true,
"weight_decay": 0.01}},
"scheduler": {"type": "WarmupDecayLR"}})";
  const auto given = [](const std::string& key) -> std::string {
    return key == "optimizer" ? "adamw" : key == "schedule" ? "cosine" : "";
  };
  const OptionsOfFile file = ParseDeepSpeedConfig(text, "ds.json", given);
  EXPECT_EQ(OptionsOf(file),
            (Options{{"optimizer", "sgd"}, {"weight-decay", "0.01"}, {"schedule", "linear"}}));
  EXPECT_THAT(file.notices,
              UnorderedElementsAre("ds.json line 3, optimizer.params.momentum: --optimizer overrides it",
                                   "ds.json line 4, optimizer.params.nesterov: --optimizer overrides it",
                                   "ds.json line 6, scheduler.type: --schedule overrides it"));
}

TEST(DeepSpeedConfigTest, SgdOfAFileWithoutMomentumHasNone) {
  const std::string text = R"({"optimizer": {"type": "SGD", "params": {"lr": 0.1}}})";
  EXPECT_EQ(OptionsOf(text), (Options{{"optimizer", "sgd"}, {"lr", "0.1"}, {"beta1", "0"}}));
  const auto adamw = [](const std::string& key) { return key == "optimizer" ? "adamw" : ""; };
  EXPECT_EQ(OptionsOf(ParseDeepSpeedConfig(text, "ds.json", adamw)).count("beta1"), 0u);
  EXPECT_EQ(OptionsOf(R"({"optimizer": {"type": "SGD", "params": {"momentum": "auto"}}})").count("beta1"),
            0u);
}

TEST(DeepSpeedConfigTest, AnSgdWithoutMomentumTakesTheOneThatIsCycled) {
  const auto beside = [](const std::string& word) {
    const auto given = [&](const std::string& key) { return key == "cycle-momentum" ? word : std::string(); };
    return OptionsOf(ParseDeepSpeedConfig(R"({"optimizer": {"type": "SGD"}})", "ds.json", given));
  };
  EXPECT_EQ(beside("true"), (Options{{"optimizer", "sgd"}}));
  EXPECT_EQ(beside("false"), (Options{{"optimizer", "sgd"}, {"beta1", "0"}}));
}

TEST(DeepSpeedConfigTest, StageThreeIsRefusedBeforeTheKeysThatItAloneHas) {
  for (const char* const text : {R"({"zero_optimization": {"offload_param": {"device": "cpu"}, "stage": 3}})",
                                 R"({"a_new_key": 1, "zero_optimization": {"another": 1, "stage": 3}})"}) {
    EXPECT_THAT(RefusalOf(text),
                AllOf(HasSubstr("'zero_optimization.stage': 3: does not exist here"), HasSubstr("--zero 2")))
        << text;
  }
}

TEST(DeepSpeedConfigTest, KeysOfStageThreeHaveNoEffectUnderEitherName) {
  for (const std::string name :
       {"max_live_parameters", "max_reuse_distance", "prefetch_bucket_size", "param_persistence_threshold",
        "model_persistence_threshold", "gather_16bit_weights_on_model_save"}) {
    for (const std::string& key : {name, "stage3_" + name}) {
      EXPECT_THAT(
          NoticesOf("{\"zero_optimization\": {\"stage\": 2, \"" + key + "\": 1}}"),
          ElementsAre(AllOf(HasSubstr("'zero_optimization." + key + "'"), HasSubstr("stage 3 alone"))))
          << key;
    }
  }
}

TEST(DeepSpeedConfigTest, WhatDeepSpeedChecksOrCompilesForItselfHasNoEffect) {
  EXPECT_THAT(NoticesOf(R"({"zero_force_ds_cpu_optimizer": false, "zero_allow_untested_optimizer": true})"),
              IsEmpty());
  EXPECT_THAT(NoticesOf(R"({"compile": {"disable": false, "backend": "inductor"}})"),
              ElementsAre(HasSubstr("key 'compile': has no effect here: --compile")));
}

TEST(DeepSpeedConfigTest, TheLastRateOfACosineGoesWithItWhereAnotherScheduleOverridesIt) {
  const std::string text = R"({"scheduler": {"type": "WarmupCosineLR", "params": {"cos_min_ratio": 0.05}}})";
  const auto beside = [&](const std::string& schedule) {
    const auto given = [&](const std::string& key) { return key == "schedule" ? schedule : std::string(); };
    return ParseDeepSpeedConfig(text, "ds.json", given);
  };
  for (const char* const other : {"linear", "wsd"}) {
    const OptionsOfFile file = beside(other);
    EXPECT_EQ(OptionsOf(file), (Options{{"schedule", "cosine"}})) << other;
    EXPECT_THAT(file.notices,
                ElementsAre("ds.json line 1, scheduler.params.cos_min_ratio: --schedule overrides it"));
  }
  EXPECT_EQ(OptionsOf(beside("cosine")), (Options{{"schedule", "cosine"}, {"min-lr-ratio", "0.05"}}));
}

struct Refused {
  const char* text;
  const char* said;
};

TEST(DeepSpeedConfigTest, WhatWouldBeAnotherRunIsRefusedByNameAndLine) {
  for (const auto& [text, said] : std::vector<Refused>{
           {"{\"zero_optimization\":\n{\"stage\":\n3}}", "'zero_optimization.stage': 3: does not exist here"},
           {"{\n\"zero_optimization\": {\"offload_optimizer\": {\n\"device\": \"nvme\"}}}",
            "'zero_optimization.offload_optimizer.device' is \"nvme\""},
           {R"({"zero_optimization": {"offload_param": {"device": "cpu"}}})", "stage 3 alone"},
           {R"({"zero_optimization": {"cpu_offload": true}})", "is an old name"},
           {R"({"fp16": {"enabled": true, "loss_scale": 128}})",
            "'fp16.loss_scale' is a loss scale that stays"},
           {R"({"fp16": {"enabled": "auto", "loss_scale": 512}})", "'fp16.loss_scale'"},
           {R"({"optimizer": {"type": "OneBitAdam"}})", "'optimizer.type' is \"OneBitAdam\""},
           {R"({"optimizer": {"type": "Muon"}})", "'optimizer.type' is \"Muon\""},
           {R"({"optimizer": {"params": {"momentum": 0.9}}})", "is a number of SGD"},
           {R"({"optimizer": {"params": {"adam_w_mode": false}}})", "is false: the decay of weights"},
           {R"({"optimizer": {"params": {"betas": [0.9]}}})", "must be a list of two numbers"},
           {R"({"scheduler": {"type": "OneCycle"}})", "SCHEDULES in train(1)"},
           {R"({"scheduler": {"params": {"warmup_type": "log"}}})", "the rate rises evenly"},
           {R"({"scheduler": {"params": {"warmup_num_steps": 10}}})", "by the logarithm of the step"},
           {R"({"scheduler": {"params": {"warmup_min_lr": 1e-7}}})", "the rate rises from 0"},
           {R"({"optimizer": {"params": {"lr": 1e-3}}, "scheduler": {"params": {"warmup_max_lr": 2e-3}}})",
            "optimizer.params.lr says 0.001 of the same"},
           {R"({"prescale_gradients": true})", "'prescale_gradients' is true"},
           {R"({"flops_profiler": {"enabled": true, "profile_step": 1}})", "metrics.jsonl"}}) {
    SCOPED_TRACE(text);
    EXPECT_THAT(RefusalOf(text), AllOf(HasSubstr("ds.json"), HasSubstr(said), HasSubstr("(line ")));
  }
}

TEST(DeepSpeedConfigTest, AnUnknownKeyIsRefusedWithItsLineAndTheNearestOne) {
  EXPECT_THAT(RefusalOf("{\n\"zero_optimization\": {\n\"stages\": 2}}"),
              AllOf(HasSubstr("key 'zero_optimization.stages' is none that is read here (line 3)"),
                    HasSubstr("did you mean 'stage'?")));
  EXPECT_THAT(RefusalOf("{\"bf15\": {\"enabled\": true}}"), HasSubstr("did you mean 'bf16'?"));
  EXPECT_THAT(RefusalOf("{\"elasticity\": {\"enabled\": true}}"),
              AllOf(HasSubstr("key 'elasticity'"), HasSubstr("(line 1)"), HasSubstr("DEEPSPEED FILES")));
  // A key with a dot is none of a section.
  EXPECT_THAT(RefusalOf("{\"zero_optimization.stage\": 2}"), HasSubstr("is none that is read here"));
}

TEST(DeepSpeedConfigTest, AValueOfAnotherTypeOrOutOfRangeIsRefused) {
  for (const auto& [text, said] : std::vector<Refused>{
           {R"({"zero_optimization": true})", "'zero_optimization' must hold keys of its own"},
           {R"({"zero_optimization": {"stage": 1.5}})", "from 0 to 3"},
           {R"({"zero_optimization": {"stage": true}})", "from 0 to 3"},
           {R"({"zero_optimization": {"overlap_comm": "yes"}})", "must be true, false"},
           {R"({"zero_optimization": {"reduce_bucket_size": 0}})", "from 256 to"},
           {R"({"zero_optimization": {"reduce_bucket_size": 1e300}})", "from 256 to"},
           {R"({"zero_optimization": {"sub_group_size": {}}})", "must be a single value"},
           {R"({"train_batch_size": 0})", "from 1 to"},
           {R"({"train_micro_batch_size_per_gpu": "8"})", "from 1 to"},
           {R"({"gradient_clipping": -1})", "at least 0"},
           {R"({"bf16": {"enabled": 1}})", "must be true, false"}}) {
    SCOPED_TRACE(text);
    EXPECT_THAT(RefusalOf(text), HasSubstr(said));
  }
}

TEST(DeepSpeedConfigTest, WhatIsNoJsonObjectIsAUsageError) {
  EXPECT_THAT(RefusalOf("{\"zero_optimization\": "),
              AllOf(HasSubstr("is not valid JSON"), HasSubstr("byte")));
  EXPECT_THAT(RefusalOf("[]"), HasSubstr("is not a JSON object"));
  EXPECT_THAT(RefusalOf(R"({"gradient_clipping": 1, "gradient_clipping": 2})"), HasSubstr("twice"));
  EXPECT_THAT(RefusalOf(""), HasSubstr("--deepspeed names a JSON file"));
}

}  // namespace
}  // namespace trainwright
