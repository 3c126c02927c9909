#include "lib/model/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lib/model/language_model.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using nlohmann::json;

/// A config.json with one field changed.
std::string With(const char* field, const json& value) {
  json object = json::parse(EncodeConfigJson(PresetConfig("llama-5m", 1000)));
  object[field] = value;
  return object.dump();
}

TEST(ModelConfigTest, ConfigJsonComesBackAsItWas) {
  for (const std::string& name : PresetNames()) {
    ModelConfig config = PresetConfig(name, 32000);
    config.preset.clear();
    if (config.family == ModelFamily::kLlama) config.rope_theta = 123456.0;
    config.eos_id = 2;
    EXPECT_EQ(DecodeConfigJson(EncodeConfigJson(config), "config.json"), config) << name;
  }
}

TEST(ModelConfigTest, PresetsHaveTheSizeOfTheirName) {
  for (const auto& [name, size] : std::vector<std::pair<const char*, double>>{{"llama-1m", 1e6},
                                                                              {"llama-5m", 5e6},
                                                                              {"llama-15m", 15e6},
                                                                              {"llama-60m", 60e6},
                                                                              {"llama-125m", 125e6},
                                                                              {"llama-350m", 350e6},
                                                                              {"llama-1b", 1e9}}) {
    ModelConfig config = PresetConfig(name, 0);
    EXPECT_NEAR(static_cast<double>(CountParameters(config)), size, 0.06 * size) << name;
  }
  EXPECT_EQ(PresetNames().size(), 12u);
}

TEST(ModelConfigTest, Gpt2PresetsHaveThePublishedNumbersOfParameters) {
  for (const auto& [name, count] : std::vector<std::pair<const char*, int64_t>>{{"gpt2-124m", 124439808},
                                                                               {"gpt2-350m", 354823168},
                                                                               {"gpt2-774m", 774030080},
                                                                               {"gpt2-1558m", 1557611200}}) {
    EXPECT_EQ(CountParameters(PresetConfig(name, 50257)), count) << name;
  }
  // nanoGPT prints 10.65M for its character-level model of 65 tokens, positions not counted.
  const int64_t nano = CountParameters(PresetConfig("nanogpt-10m", 65)) - 256 * 384;
  EXPECT_NEAR(static_cast<double>(nano), 10.65e6, 5e3);
}

TEST(ModelConfigTest, CountParametersCountsWhatAModelHolds) {
  for (const bool tied : {false, true}) {
    for (const bool bias : {false, true}) {
      ModelConfig config = PresetConfig(bias ? "nanogpt-10m" : "llama-1m", 500);
      config.bias = bias;
      config.num_layers = 2;
      config.tie_embeddings = tied;
      EXPECT_EQ(MakeModel(config, Precision::kFp32, at::Device(at::kCPU), 1)->parameters().count(),
                CountParameters(config));
      if (!bias) continue;
      config.bias = false;
      EXPECT_EQ(MakeModel(config, Precision::kFp32, at::Device(at::kCPU), 1)->parameters().count(),
                CountParameters(config));
    }
  }
}

TEST(ModelConfigTest, ReadsTheSpellingOfTransformers4) {
  const ModelConfig config =
      DecodeConfigJson(R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": 4096,
      "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "rms_norm_eps": 1e-05,
      "max_position_embeddings": 4096, "rope_theta": 50000.0, "rope_scaling": null, "torch_dtype": "float16",
      "pretraining_tp": 1, "bos_token_id": 1, "eos_token_id": [2, 3], "hidden_act": "silu"})",
                       "config.json");
  EXPECT_EQ(config.num_kv_heads, 32);
  EXPECT_EQ(config.head_dim, 128);
  EXPECT_EQ(config.rope_theta, 50000.0);
  EXPECT_EQ(config.eos_id, 2);
  EXPECT_FALSE(config.tie_embeddings);
}

TEST(ModelConfigTest, ReadsTheSpellingOfTransformers5) {
  json object = json::parse(EncodeConfigJson(PresetConfig("llama-5m", 1000)));
  object.erase("rope_theta");
  object["rope_parameters"] = {{"rope_theta", 777.0}, {"rope_type", "default"}};
  EXPECT_EQ(DecodeConfigJson(object.dump(), "config.json").rope_theta, 777.0);
}

TEST(ModelConfigTest, FieldsThatChangeTheMathsAreRefusedByName) {
  const std::vector<std::pair<const char*, json>> cases = {
      {"model_type", "qwen3"},
      {"hidden_act", "gelu"},
      {"attention_bias", true},
      {"mlp_bias", true},
      {"attention_dropout", 0.1},
      {"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}},
      {"rope_parameters", {{"rope_type", "llama3"}, {"rope_theta", 5e5}}},
      {"quantization_config", json::object()},
      {"sliding_window", 4096},
      {"num_key_value_heads", 3},
      {"head_dim", 7},
      {"hidden_size", "many"},
      {"vocab_size", nullptr},
  };
  for (const auto& [field, value] : cases) {
    const std::string text = With(field, value);
    EXPECT_EQ(test::CodeOf([&] { DecodeConfigJson(text, "config.json"); }), ErrorCode::kBadInput) << field;
    EXPECT_THAT(test::MessageOf([&] { DecodeConfigJson(text, "some/config.json"); }),
                testing::AllOf(testing::HasSubstr(field), testing::HasSubstr("some/config.json")));
  }
}

TEST(ModelConfigTest, ReadsPublishedGpt2) {
  // config.json of the first release, spelled as transformers 2 to 4 did; dropout is for training alone.
  const ModelConfig config = DecodeConfigJson(R"({"activation_function": "gelu_new",
      "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "bos_token_id": 50256, "embd_pdrop": 0.1,
      "eos_token_id": 50256, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "gpt2",
      "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024, "resid_pdrop": 0.1,
      "summary_activation": null, "summary_first_dropout": 0.1, "summary_proj_to_labels": true,
      "summary_type": "cls_index", "summary_use_proj": true, "vocab_size": 50257,
      "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}}})",
                                              "config.json");
  ModelConfig expected = PresetConfig("gpt2-124m", 50257);
  expected.preset.clear();
  expected.bos_id = expected.eos_id = 50256;
  EXPECT_EQ(config, expected);
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
      {"n_positions", nullptr},
  };
  const json usual = json::parse(EncodeConfigJson(PresetConfig("gpt2-124m", 1000)));
  for (const auto& [field, value] : cases) {
    json object = usual;
    object[field] = value;
    EXPECT_EQ(test::CodeOf([&] { DecodeConfigJson(object.dump(), "c"); }), ErrorCode::kBadInput) << field;
    EXPECT_THAT(test::MessageOf([&] { DecodeConfigJson(object.dump(), "c"); }), testing::HasSubstr(field));
  }
}

TEST(ModelConfigTest, UnknownPresetsListTheKnownOnes) {
  EXPECT_EQ(test::CodeOf([] { PresetConfig("llama-2t", 1); }), ErrorCode::kUsage);
  EXPECT_THAT(test::MessageOf([] { PresetConfig("llama-2t", 1); }), testing::HasSubstr("llama-15m"));
}

}  // namespace
}  // namespace trainwright
