#include "lib/spec/config_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "lib/spec/built_in_families.h"
#include "lib/spec/family.h"
#include "lib/spec/gpt2_family.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using nlohmann::json;

const FamilyList kFamilies = BuiltInDescriptions();

/// A config.json with one field changed.
std::string With(const char* field, const json& value) {
  json object = json::parse(EncodeConfigJson(kFamilies.PresetConfig("llama-5m", 1000)));
  object[field] = value;
  return object.dump();
}

TEST(ModelConfigTest, ConfigJsonComesBackAsItWas) {
  for (const std::string& name : kFamilies.PresetNames()) {
    ModelConfig config = kFamilies.PresetConfig(name, 32000);
    config.preset.clear();
    if (config.num_heads > 0 && config.family != &Gpt2Family()) config.rope.theta = 123456.0;
    config.eos_id = 2;
    EXPECT_EQ(DecodeConfigJson(kFamilies, EncodeConfigJson(config), "config.json"), config) << name;
  }
}

TEST(ModelConfigTest, EveryEndOfAListComesBack) {
  for (const json& ends : {json::array({50258, 50256}), json::array({2, 7, 5}), json(2)}) {
    const ModelConfig config = DecodeConfigJson(kFamilies, With("eos_token_id", ends), "config.json");
    EXPECT_EQ(json::parse(EncodeConfigJson(config))["eos_token_id"], ends);
  }
  EXPECT_EQ(test::CodeOf([] {
              DecodeConfigJson(kFamilies, With("eos_token_id", {2, "</s>"}), "c");
            }),
            ErrorCode::kBadInput);
}

TEST(ModelConfigTest, PresetsHaveTheSizeOfTheirName) {
  for (const auto& [name, size] : std::vector<std::pair<const char*, double>>{{"llama-1m", 1e6},
                                                                              {"llama-5m", 5e6},
                                                                              {"llama-15m", 15e6},
                                                                              {"llama-60m", 60e6},
                                                                              {"llama-125m", 125e6},
                                                                              {"llama-350m", 350e6},
                                                                              {"llama-1b", 1e9}}) {
    ModelConfig config = kFamilies.PresetConfig(name, 0);
    EXPECT_NEAR(static_cast<double>(CountParameters(config)), size, 0.06 * size) << name;
  }
  EXPECT_EQ(kFamilies.PresetNames().size(), 27u);
}

TEST(ModelConfigTest, Gpt2PresetsHaveThePublishedNumbersOfParameters) {
  for (const auto& [name, count] : std::vector<std::pair<const char*, int64_t>>{{"gpt2-124m", 124439808},
                                                                                {"gpt2-350m", 354823168},
                                                                                {"gpt2-774m", 774030080},
                                                                                {"gpt2-1558m", 1557611200}}) {
    EXPECT_EQ(CountParameters(kFamilies.PresetConfig(name, 50257)), count) << name;
  }
  // nanoGPT prints 10.65M for its character-level model of 65 tokens, positions not counted.
  const int64_t nano = CountParameters(kFamilies.PresetConfig("nanogpt-10m", 65)) - 256 * 384;
  EXPECT_NEAR(static_cast<double>(nano), 10.65e6, 5e3);
}

TEST(ModelConfigTest, ReadsTheSpellingOfTransformers4) {
  const ModelConfig config =
      DecodeConfigJson(kFamilies, R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": 4096,
      "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "rms_norm_eps": 1e-05,
      "max_position_embeddings": 4096, "rope_theta": 50000.0, "rope_scaling": null, "torch_dtype": "float16",
      "pretraining_tp": 1, "bos_token_id": 1, "eos_token_id": [2, 3], "hidden_act": "silu"})",
                       "config.json");
  EXPECT_EQ(config.num_kv_heads, 32);
  EXPECT_EQ(config.head_dim, 128);
  EXPECT_EQ(config.rope.theta, 50000.0);
  EXPECT_EQ(config.eos_id, 2);
  EXPECT_FALSE(config.tie_embeddings);
}

TEST(ModelConfigTest, ReadsTheSpellingOfTransformers5) {
  json object = json::parse(EncodeConfigJson(kFamilies.PresetConfig("llama-5m", 1000)));
  object.erase("rope_theta");
  object["rope_parameters"] = {{"rope_theta", 777.0}, {"rope_type", "default"}};
  EXPECT_EQ(DecodeConfigJson(kFamilies, object.dump(), "config.json").rope.theta, 777.0);
}

TEST(ModelConfigTest, FieldsThatChangeTheMathsAreRefusedByName) {
  const std::vector<std::pair<const char*, json>> cases = {
      {"model_type", "qwen3"},
      {"hidden_act", "gelu"},
      {"attention_dropout", 1.5},
      {"rope_scaling", {{"type", "mrope"}, {"factor", 2.0}}},
      {"rope_scaling", {{"type", "linear"}}},
      {"rope_scaling", {{"type", "linear"}, {"factor", 2.0}, {"mrope_section", {1, 2}}}},
      {"rope_parameters", {{"rope_type", "llama3"}, {"rope_theta", 5e5}}},
      {"rope_parameters", {{"full_attention", {{"rope_type", "default"}}}}},
      {"partial_rotary_factor", 0.5},
      {"attn_logit_softcapping", 50.0},
      {"embedding_multiplier", 12.0},
      {"rope_interleaved", true},
      {"quantization_config", json::object()},
      {"sliding_window", 4096},
      {"num_key_value_heads", 3},
      {"head_dim", 7},
      {"rms_norm_eps", -1e-6},
      {"initializer_range", -0.02},
      {"is_causal", 0},
      {"hidden_size", "many"},
      {"vocab_size", nullptr},
  };
  for (const auto& [field, value] : cases) {
    const std::string text = With(field, value);
    EXPECT_EQ(test::CodeOf([&] { DecodeConfigJson(kFamilies, text, "config.json"); }), ErrorCode::kBadInput)
        << field;
    EXPECT_THAT(test::MessageOf([&] { DecodeConfigJson(kFamilies, text, "some/config.json"); }),
                testing::AllOf(testing::HasSubstr(field), testing::HasSubstr("some/config.json")));
  }
}

TEST(ModelConfigTest, ReadsPublishedGpt2) {
  // config.json of the first release, spelled as transformers 2 to 4 did; dropout is for training alone.
  const ModelConfig config = DecodeConfigJson(kFamilies, R"({"activation_function": "gelu_new",
      "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "bos_token_id": 50256, "embd_pdrop": 0.1,
      "eos_token_id": 50256, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "gpt2",
      "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024, "resid_pdrop": 0.1,
      "summary_activation": null, "summary_first_dropout": 0.1, "summary_proj_to_labels": true,
      "summary_type": "cls_index", "summary_use_proj": true, "vocab_size": 50257,
      "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}}})",
                                              "config.json");
  ModelConfig expected = kFamilies.PresetConfig("gpt2-124m", 50257);
  expected.preset.clear();
  expected.bos_id = expected.eos_id = 50256;
  expected.dropouts = {{"attn_pdrop", 0.1}, {"embd_pdrop", 0.1}, {"resid_pdrop", 0.1}};
  EXPECT_EQ(config, expected);
}

/// config.json of a small model with the fields of one family.
json Small(const char* type, const json& fields) {
  json object = {{"model_type", type},      {"vocab_size", 100},      {"hidden_size", 48},
                 {"intermediate_size", 96}, {"num_hidden_layers", 3}, {"num_attention_heads", 4},
                 {"num_key_value_heads", 2}};
  if (object["model_type"] == "gpt_neox") object.erase("num_key_value_heads");
  object.update(fields);
  return object;
}

ModelConfig Decode(const char* type, const json& fields) {
  return DecodeConfigJson(kFamilies, Small(type, fields).dump(), "config.json");
}

TEST(ModelConfigTest, FieldsThatAreAbsentHaveTransformersDefaults) {
  using Windows = std::vector<int64_t>;
  EXPECT_EQ(Decode("mistral", json::object()).layer_windows, Windows(3, 4096));
  EXPECT_EQ(Decode("mistral", {{"sliding_window", nullptr}}).layer_windows, Windows());
  EXPECT_EQ(Decode("qwen2", {{"sliding_window", 7}}).layer_windows, Windows());
  EXPECT_EQ(Decode("qwen2", {{"use_sliding_window", true}, {"max_window_layers", 2}}).layer_windows,
            (Windows{0, 0, 4096}));
  EXPECT_EQ(Decode("qwen2", {{"use_sliding_window", true}}).layer_windows, Windows());  // 28 layers have none
  EXPECT_EQ(Decode("gpt_neox", json::object()).rope.partial_rotary_factor, 0.25);
  EXPECT_TRUE(Decode("gpt_neox", json::object()).parallel_residual);
  json eight_groups = Small("mistral", {{"num_attention_heads", 16}, {"hidden_size", 64}});
  eight_groups.erase("num_key_value_heads");
  EXPECT_EQ(DecodeConfigJson(kFamilies, eight_groups.dump(), "c").num_kv_heads, 8);
  eight_groups["num_key_value_heads"] = nullptr;
  EXPECT_EQ(DecodeConfigJson(kFamilies, eight_groups.dump(), "c").num_kv_heads, 16);
}

TEST(ModelConfigTest, BothSpellingsOfRotaryPositionsMeanTheSame) {
  const json scaling = {{"factor", 4.0}, {"original_max_position_embeddings", 512}};
  json old_spelling = scaling, new_spelling = scaling;
  old_spelling["type"] = "yarn";
  new_spelling.update({{"rope_type", "yarn"}, {"rope_theta", 500.0}});
  EXPECT_EQ(Decode("llama", {{"rope_theta", 500.0}, {"rope_scaling", old_spelling}}),
            Decode("llama", {{"rope_parameters", new_spelling}}));
  EXPECT_EQ(
      Decode("gpt_neox", {{"rotary_pct", 0.5}, {"rotary_emb_base", 500}}),
      Decode("gpt_neox", {{"rope_parameters", {{"rope_theta", 500.0}, {"partial_rotary_factor", 0.5}}}}));
}

TEST(ModelConfigTest, EveryScalingComesBackAsItWas) {
  const json factors = {1.0, 1.5, 2.0, 2.5, 3.0, 3.5};
  for (const json& scaling : std::vector<json>{
           {{"rope_type", "linear"}, {"factor", 2.0}},
           {{"rope_type", "dynamic"}, {"factor", 2.0}},
           {{"rope_type", "yarn"},
            {"factor", 2.0},
            {"mscale", 0.7},
            {"mscale_all_dim", 1.1},
            {"truncate", false}},
           {{"rope_type", "yarn"}, {"factor", 2.0}, {"attention_factor", 1.3}, {"beta_fast", 20}},
           {{"rope_type", "llama3"}, {"factor", 8.0}, {"low_freq_factor", 1}, {"high_freq_factor", 4}},
           {{"rope_type", "longrope"}, {"short_factor", factors}, {"long_factor", factors}}}) {
    const ModelConfig config = Decode("llama", {{"rope_parameters", scaling}});
    EXPECT_NE(config.rope, RopeParameters()) << scaling;
    EXPECT_EQ(DecodeConfigJson(kFamilies, EncodeConfigJson(config), "c"), config) << scaling;
  }
}

// transformers 4 looks there alone, and takes the context for max_position_embeddings where there is none.
TEST(ModelConfigTest, TheOriginalContextOfLongropeStandsBesideTheScalingToo) {
  const char* name = "original_max_position_embeddings";
  for (const auto& [type, pairs] : {std::pair{"llama", size_t{6}}, std::pair{"gpt_neox", size_t{3}}}) {
    const json scaling = {{"rope_type", "longrope"},
                          {"factor", 4.0},
                          {"short_factor", std::vector<double>(pairs, 1.0)},
                          {"long_factor", std::vector<double>(pairs, 2.0)}};
    json fields = {{"rope_scaling", scaling}, {"max_position_embeddings", 256}};
    if (pairs == 3) fields["rotary_pct"] = 0.5;  // of heads of 12 elements
    const ModelConfig whole = Decode(type, fields);
    EXPECT_FALSE(json::parse(EncodeConfigJson(whole)).contains(name)) << type;
    fields[name] = 64;
    const ModelConfig config = Decode(type, fields);
    const json written = json::parse(EncodeConfigJson(config));
    EXPECT_EQ(written.at(name), 64) << type;
    EXPECT_EQ(written.at("rope_parameters").at(name), 64) << type;
    EXPECT_EQ(DecodeConfigJson(kFamilies, EncodeConfigJson(config), "c"), config) << type;
  }
}

TEST(ModelConfigTest, AQuantisedModelIsRefusedWithWhatToDo) {
  const std::string text = With("quantization_config", {{"quant_method", "gptq"}, {"bits", 4}});
  EXPECT_THAT(test::MessageOf([&] { DecodeConfigJson(kFamilies, text, "config.json"); }),
              testing::AllOf(testing::HasSubstr("quantization_config is not supported"),
                             testing::HasSubstr("dequantize"),
                             testing::Not(testing::HasSubstr("can be removed from the file"))));
}

TEST(ModelConfigTest, PublishedConfigsAreReadAndHaveThePublishedNumbersOfParameters) {
  const ModelConfig smollm =
      DecodeConfigJson(kFamilies, R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false,
      "attention_dropout": 0.0, "bos_token_id": 0, "eos_token_id": 0, "hidden_act": "silu", "hidden_size": 576,
      "initializer_range": 0.041666666666666664, "intermediate_size": 1536, "is_llama_config": true,
      "max_position_embeddings": 8192, "model_type": "llama", "num_attention_heads": 9, "num_hidden_layers": 30,
      "num_key_value_heads": 3, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_interleaved": false,
      "rope_scaling": null, "rope_theta": 100000, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
      "transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16"}}, "transformers_version": "4.40.1",
      "use_cache": true, "vocab_size": 49152})",
                       "config.json");
  ModelConfig preset = kFamilies.PresetConfig("smollm2-135m", 49152);
  preset.preset.clear();
  preset.bos_id = preset.eos_id = 0;
  preset.initializer_range = 0.041666666666666664;
  EXPECT_EQ(smollm, preset);
  for (const auto& [name, vocabulary, count] :
       std::vector<std::tuple<const char*, int64_t, int64_t>>{{"smollm2-135m", 49152, 134515008},
                                                              {"smollm2-360m", 49152, 361821120},
                                                              {"tinyllama-1.1b", 32000, 1100048384},
                                                              {"mistral-7b", 32000, 7241732096},
                                                              {"qwen2-0.5b", 151936, 494032768},
                                                              {"neox-1.4b", 50257, 1414455296}}) {
    EXPECT_EQ(CountParameters(kFamilies.PresetConfig(name, vocabulary)), count) << name;
  }
}

TEST(ModelConfigTest, FieldsOfGpt2ThatChangeTheMathsAreRefusedByName) {
  const std::vector<std::pair<const char*, json>> cases = {
      {"activation_function", "relu"},
      {"scale_attn_by_inverse_layer_idx", true},
      {"scale_attn_weights", false},
      {"reorder_and_upcast_attn", true},
      {"add_cross_attention", true},
      {"pruned_heads", {{"1", {0}}}},
      {"quantization_config", json::object()},
      {"n_head", 7},
      {"n_embd", int64_t{1} << 62},
      {"n_inner", -1},
      {"layer_norm_epsilon", -1e-6},
      {"n_positions", nullptr},
  };
  const json usual = json::parse(EncodeConfigJson(kFamilies.PresetConfig("gpt2-124m", 1000)));
  for (const auto& [field, value] : cases) {
    json object = usual;
    object[field] = value;
    EXPECT_EQ(test::CodeOf([&] { DecodeConfigJson(kFamilies, object.dump(), "c"); }), ErrorCode::kBadInput)
        << field;
    EXPECT_THAT(test::MessageOf([&] { DecodeConfigJson(kFamilies, object.dump(), "c"); }),
                testing::HasSubstr(field));
  }
}

TEST(ModelConfigTest, AnEpsilonBelowZeroIsRefusedInEveryFamily) {
  for (const auto& [preset, field] : {std::pair("llama-1m", "rms_norm_eps"),
                                      {"gpt2-124m", "layer_norm_epsilon"},
                                      {"neox-tiny", "layer_norm_eps"}}) {
    json object = json::parse(EncodeConfigJson(kFamilies.PresetConfig(preset, 1000)));
    object[field] = 0.0;
    EXPECT_FALSE(test::CodeOf([&] { DecodeConfigJson(kFamilies, object.dump(), "c"); })) << preset;
    object[field] = -1e-9;
    EXPECT_THAT(test::MessageOf([&] { DecodeConfigJson(kFamilies, object.dump(), "c"); }),
                testing::HasSubstr(std::string(field) + " must be at least 0"));
  }
}

TEST(ModelConfigTest, DropoutIsReadInEveryFamilyAndWrittenAgain) {
  const std::vector<std::pair<const char*, std::vector<const char*>>> families = {
      {"llama-1m", {"attention_dropout"}},
      {"mistral-7b", {"attention_dropout"}},
      {"qwen2-0.5b", {"attention_dropout"}},
      {"gpt2-124m", {"attn_pdrop", "embd_pdrop", "resid_pdrop"}},
      {"neox-tiny", {"attention_dropout", "hidden_dropout"}}};
  for (const auto& [preset, names] : families) {
    json object = json::parse(EncodeConfigJson(kFamilies.PresetConfig(preset, 1000)));
    for (const char* name : names) {
      EXPECT_EQ(object[name], 0.0) << preset;
      object[name] = 0.25;
    }
    const json written =
        json::parse(EncodeConfigJson(DecodeConfigJson(kFamilies, object.dump(), "config.json")));
    EXPECT_EQ(written, object) << preset;
  }
}

TEST(ModelConfigTest, DropoutOfGpt2IsTransformersWhereItIsAbsent) {
  json object = json::parse(EncodeConfigJson(kFamilies.PresetConfig("gpt2-124m", 1000)));
  object.erase("resid_pdrop");
  const ModelConfig config = DecodeConfigJson(kFamilies, object.dump(), "config.json");
  EXPECT_EQ(config.dropouts, (std::map<std::string, double>{{"resid_pdrop", 0.1}}));
}

TEST(ModelConfigTest, TheDeviationOfInitialWeightsComesBack) {
  const ModelConfig config = DecodeConfigJson(kFamilies, With("initializer_range", 0.006), "config.json");
  EXPECT_EQ(config.initializer_range, 0.006);
  EXPECT_EQ(json::parse(EncodeConfigJson(config))["initializer_range"], 0.006);
  for (const json& usual : {json(), json(0)}) {
    EXPECT_EQ(DecodeConfigJson(kFamilies, With("initializer_range", usual), "c").initializer_range, 0.02);
  }
}

TEST(ModelConfigTest, AttentionInBothDirectionsIsKeptAndRefusedWhereItPredicts) {
  const std::string text = With("is_causal", false);
  const ModelConfig config = DecodeConfigJson(kFamilies, text, "config.json");
  EXPECT_FALSE(config.is_causal);
  EXPECT_EQ(json::parse(EncodeConfigJson(config)), json::parse(text));
  EXPECT_EQ(test::CodeOf([] { RequireCausal(false, "c"); }), ErrorCode::kBadInput);
  EXPECT_THAT(test::MessageOf([] { RequireCausal(false, "some/config.json"); }),
              testing::AllOf(testing::HasSubstr("some/config.json: is_causal false is not supported"),
                             testing::HasSubstr("--objective grit")));
}

TEST(ModelConfigTest, CausalAttentionIsTheUsualOneAndNotWritten) {
  const ModelConfig config = DecodeConfigJson(kFamilies, With("is_causal", true), "config.json");
  EXPECT_TRUE(config.is_causal);
  EXPECT_FALSE(json::parse(EncodeConfigJson(config)).contains("is_causal"));
}

TEST(ModelConfigTest, TenIsAlwaysCausal) {
  json object = json::parse(EncodeConfigJson(kFamilies.PresetConfig("ten-nano", 1000)));
  object["is_causal"] = false;
  EXPECT_THAT(test::MessageOf([&] { DecodeConfigJson(kFamilies, object.dump(), "c"); }),
              testing::HasSubstr("is_causal false is not supported"));
}

TEST(ModelConfigTest, WhatNoForwardPassDependsOnIsLeftOutOfTheComputedPart) {
  const ModelConfig usual = kFamilies.PresetConfig("llama-1m", 1000);
  ModelConfig other = usual;
  other.initializer_range = 0.006;
  other.dropouts = {{"attention_dropout", 0.1}};
  EXPECT_EQ(ComputedPart(other), usual);
  other.hidden_size *= 2;
  EXPECT_NE(ComputedPart(other), usual);
}

TEST(ModelConfigTest, UnknownPresetsListTheKnownOnes) {
  EXPECT_EQ(test::CodeOf([] { kFamilies.PresetConfig("llama-2t", 1); }), ErrorCode::kUsage);
  EXPECT_THAT(test::MessageOf([] { kFamilies.PresetConfig("llama-2t", 1); }),
              testing::HasSubstr("llama-15m"));
}

}  // namespace
}  // namespace trainwright
