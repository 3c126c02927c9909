#include "lib/spec/family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "lib/base/error.h"
#include "lib/spec/built_in_families.h"
#include "lib/spec/config_json.h"
#include "lib/spec/llama_family.h"
#include "lib/spec/lora_targets.h"
#include "lib/spec/model_flops.h"
#include "lib/spec/saved_modules.h"
#include "tests/spec/toy_recurrent_family.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using nlohmann::json;
using test::ToyRecurrent;
using test::ToyRecurrentFields;
using testing::HasSubstr;

/// The built-in families and one that no library knows.
FamilyList WithToy() {
  std::vector<const FamilyDescription*> families = BuiltInDescriptions().all();
  families.push_back(&ToyRecurrent());
  return FamilyList(families);
}

TEST(ToyFamilyTest, ConfigJsonComesBackAsItWasWithTheFieldsOfTheFamily) {
  ModelConfig config = WithToy().PresetConfig("toy-recurrent-tiny", 300);
  config.preset.clear();
  config.own = FamilyFields::Of(ToyRecurrentFields{.recurrence_start = 0.25});
  const std::string text = EncodeConfigJson(config);
  EXPECT_EQ(json::parse(text)["model_type"], "toy-recurrent");
  EXPECT_EQ(json::parse(text)["recurrence_start"], 0.25);
  const ModelConfig decoded = DecodeConfigJson(WithToy(), text, "config.json");
  EXPECT_EQ(decoded, config);
  EXPECT_EQ(decoded.family, &ToyRecurrent());
  EXPECT_EQ(decoded.own.As<ToyRecurrentFields>().recurrence_start, 0.25);
}

TEST(ToyFamilyTest, ConfigsThatDifferInAFieldOfTheFamilyAreNotEqual) {
  const ModelConfig config = WithToy().PresetConfig("toy-recurrent-tiny", 300);
  ModelConfig other = config;
  EXPECT_EQ(other, config);
  other.own = FamilyFields::Of(ToyRecurrentFields{.recurrence_start = 0.625});
  EXPECT_NE(other, config);
  other.own = {};
  EXPECT_NE(other, config);
}

TEST(ToyFamilyTest, BadFieldsOfTheFamilyAreRefusedByName) {
  json object = json::parse(EncodeConfigJson(WithToy().PresetConfig("toy-recurrent-tiny", 300)));
  object["recurrence_start"] = 1.5;
  const auto decode = [&] { DecodeConfigJson(WithToy(), object.dump(), "some/config.json"); };
  EXPECT_EQ(test::CodeOf(decode), ErrorCode::kBadInput);
  EXPECT_THAT(test::MessageOf(decode),
              testing::AllOf(HasSubstr("some/config.json"), HasSubstr("recurrence_start")));
  object["recurrence_start"] = 0.5;
  object["num_attention_heads"] = 4;
  EXPECT_THAT(test::MessageOf(decode), HasSubstr("num_attention_heads")) << "this family does not read it";
}

TEST(ToyFamilyTest, ParametersAndOperationsAreItsOwn) {
  const ModelConfig config = WithToy().PresetConfig("toy-recurrent-tiny", 300);
  // A layer: W of 16x16 and u of 16. Then a norm, and the table that is the head.
  EXPECT_EQ(CountParameters(config), 2 * (16 * 16 + 16) + 16 + 300 * 16);
  EXPECT_EQ(CountAttentionPairs({0, 5, 9}, config), 0);
  EXPECT_EQ(TrainingFlops(config, {.tokens = 9, .labels = 8}), 3 * (2 * 9 * 2 * 16 * 16 + 2 * 8 * 16 * 300));
}

TEST(ToyFamilyTest, ItsPresetsStandBesideTheBuiltInOnes) {
  EXPECT_EQ(WithToy().PresetNames().back(), "toy-recurrent-tiny");
  EXPECT_EQ(WithToy().PresetNames().size(), BuiltInDescriptions().PresetNames().size() + 1);
  EXPECT_THAT(test::MessageOf([] { WithToy().PresetConfig("toy-large", 1); }),
              HasSubstr("toy-recurrent-tiny"));
  EXPECT_TRUE(WithToy().DescribePresets().ends_with("; toy-recurrent-tiny (a toy)"));
}

TEST(FamilyListTest, OnePresetIsTheModelOfWhoNamesNone) {
  const FamilyList known = BuiltInDescriptions();
  for (const bool gpu : {false, true}) {
    std::vector<std::string> defaults;
    for (const FamilyDescription* family : known.all()) {
      for (const ModelPreset& preset : family->Presets()) {
        if (gpu ? preset.default_on_gpu : preset.default_on_cpu) defaults.push_back(preset.config.preset);
      }
    }
    EXPECT_EQ(defaults, std::vector<std::string>{gpu ? "llama-125m" : "llama-1m"});
    EXPECT_EQ(known.DefaultPreset(gpu), defaults.at(0));
  }
  EXPECT_EQ(test::CodeOf([] { FamilyList({&ToyRecurrent()}).DefaultPreset(false); }), ErrorCode::kUsage);
}

TEST(ToyFamilyTest, WhereItIsNotListedItsConfigIsRefusedWithTheKnownTypes) {
  const std::string text = EncodeConfigJson(WithToy().PresetConfig("toy-recurrent-tiny", 300));
  try {
    DecodeConfigJson(BuiltInDescriptions(), text, "config.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadInput);
    EXPECT_THAT(error.hint(), HasSubstr("llama, mistral, qwen2, gpt2, gpt_neox and ten"));
  }
}

TEST(FamilyTest, OneWithoutKernelsForAGpuIsRefusedThere) {
  const FamilyList families = WithToy();
  const auto require = [&](const char* preset) { RequireGpuSupport(families.PresetConfig(preset, 300)); };
  EXPECT_EQ(test::CodeOf([&] { require("toy-recurrent-tiny"); }), ErrorCode::kDevice);
  EXPECT_THAT(test::MessageOf([&] { require("toy-recurrent-tiny"); }), HasSubstr("toy-recurrent"));
  const FamilyList known = BuiltInDescriptions();
  for (const FamilyDescription* family : known.all()) {
    for (const ModelPreset& preset : family->Presets()) RequireGpuSupport(preset.config);
  }
}

TEST(FamilyTest, AdaptersOfAttentionAndOfTheMlpAreChosenByTheFamilysNames) {
  for (const auto& [preset, attention, mlp] :
       {std::tuple("llama-1m", 4, 3), std::tuple("gpt2-124m", 2, 2), std::tuple("neox-tiny", 2, 2)}) {
    const ModelConfig config = BuiltInDescriptions().PresetConfig(preset, 300);
    std::vector<std::string> modules;
    for (const LayerMatrix& matrix : FamilyOf(config).LayerMatrices(config)) modules.push_back(matrix.module);
    const auto chosen = [&](const char* targets) {
      return static_cast<int64_t>(ChooseLoraTargets(targets, modules, FamilyOf(config).lora_blocks()).size());
    };
    EXPECT_EQ(chosen("attention"), config.num_layers * attention) << preset;
    EXPECT_EQ(chosen("mlp"), config.num_layers * mlp) << preset;
    EXPECT_EQ(chosen("all-linear"), config.num_layers * (attention + mlp)) << preset;
  }
}

TEST(SavedModulesTest, AreChosenByEndsOfTheirPathsAndByThoseOfLayersRefused) {
  const OuterModules llama = BuiltInDescriptions().PresetConfig("llama-1m", 300).family->outer_modules();
  const auto chosen = [&](const char* names, bool tied = false) {
    return ChooseSavedModules(names, llama, tied);
  };
  EXPECT_TRUE(chosen("").modules.empty());
  const SavedModules both = chosen("lm_head,embed_tokens,model.embed_tokens");
  EXPECT_EQ(both.modules, (std::vector<std::string>{"lm_head", "model.embed_tokens"}));
  EXPECT_TRUE(both.head && both.tables);
  const SavedModules norm = chosen("norm");
  EXPECT_EQ(norm.modules, std::vector<std::string>{"model.norm"});
  EXPECT_FALSE(norm.head || norm.tables);
  EXPECT_TRUE(chosen("embed_tokens", /*tied=*/true).head) << "the table is the head";
  for (const char* unknown : {"q_proj", "input_layernorm", "tokens", ",", "lm_head,"}) {
    EXPECT_THAT(test::MessageOf([&] { chosen(unknown); }), HasSubstr("embed_tokens, norm, lm_head"))
        << unknown;
  }
  EXPECT_THAT(test::MessageOf([&] { chosen("lm_head", /*tied=*/true); }), HasSubstr("write embed_tokens"));
  EXPECT_EQ(chosen("lm_head,embed_tokens", /*tied=*/true).modules,
            std::vector<std::string>{"model.embed_tokens"})
      << "the one matrix that both are";
}

TEST(SavedModulesTest, TheHeadOfNeoxIsCalledAsItsFilesOrAsTransformersCallsIt) {
  const OuterModules neox = BuiltInDescriptions().PresetConfig("neox-tiny", 300).family->outer_modules();
  for (const char* name : {"lm_head", "embed_out"}) {
    EXPECT_EQ(ChooseSavedModules(name, neox, false).modules, std::vector<std::string>{"embed_out"}) << name;
  }
}

// transformers 5 refuses such a Llama when it reads config.json, whatever head_dim says.
TEST(FamilyTest, ALlamaThatTransformersDoesNotOpenIsTold) {
  ModelConfig config;
  config.family = &LlamaFamily();
  config.hidden_size = 64;
  config.num_heads = 6;
  config.head_dim = 10;
  EXPECT_NE(LlamaFamily().ProblemInTransformers(config).find("num_attention_heads"), std::string::npos);
  config.num_heads = 4;
  EXPECT_EQ(LlamaFamily().ProblemInTransformers(config), "");
}

}  // namespace
}  // namespace trainwright
