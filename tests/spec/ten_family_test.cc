// What is said of the family ten before one is made. Counts were added up by hand from the shapes of
// lib/spec/ten_family.h.
#include "lib/spec/ten_family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "lib/spec/built_in_families.h"
#include "lib/spec/config_json.h"
#include "lib/spec/lora_targets.h"
#include "lib/spec/model_flops.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kGpt2Tokens = 50257, kByteTokens = 259;

ModelConfig TenPreset(const std::string& name, int64_t vocab_size = kGpt2Tokens) {
  return BuiltInDescriptions().PresetConfig(name, vocab_size);
}

/// D = 8, F = 12, L = 2, K = 4, H = 2, V = 10; all that can be left out is left out.
ModelConfig PlainTen(const TenFields& fields = {
                         .eigenstates = 4, .heads = 2, .convolution = 0, .layer_memory = false}) {
  ModelConfig config;
  config.family = &TenFamily();
  config.vocab_size = 10;
  config.hidden_size = 8;
  config.intermediate_size = 12;
  config.num_layers = 2;
  config.max_positions = 64;
  config.tie_embeddings = true;
  config.own = FamilyFields::Of(fields);
  return config;
}

/// The same with all of it.
ModelConfig WholeTen() {
  return PlainTen({.eigenstates = 4, .heads = 2, .selective = true, .convolution = 3, .windows = {2, 6}});
}

ModelConfig Decoded(const json& object) {
  return DecodeConfigJson(BuiltInDescriptions(), object.dump(), "some/config.json");
}

TEST(TenFamilyTest, PresetsHaveTheirExactNumbersOfParameters) {
  for (const auto& [name, count] :
       std::vector<std::pair<const char*, int64_t>>{{"ten-nano", 7096451},
                                                    {"ten-micro", 11196227},
                                                    {"ten-small", 40720645},
                                                    {"ten-medium", 106025483},
                                                    {"ten-large", 211262479},
                                                    {"ten-small-32k", 131355655},
                                                    {"ten-medium-32k", 281104651},
                                                    {"ten-large-32k", 493367823}}) {
    EXPECT_EQ(CountParameters(TenPreset(name)), count) << name;
  }
  EXPECT_EQ(CountParameters(TenPreset("ten-nano", kByteTokens)), 696707);
  EXPECT_EQ(CountParameters(TenPreset("ten-micro", kByteTokens)), 1596611);
}

TEST(TenFamilyTest, PartsOfALayerAreCountedWhereTheyAre) {
  // A layer: norms 2 * 16; in and out 2 * 8 * 8; decays 8; coupling 2 * 2 * 2; gate 64 + 8; MLP 2 * 8 * 12.
  const int64_t layer = 32 + 128 + 8 + 8 + 72 + 192, plain = 2 * layer + 16 + 80;
  EXPECT_EQ(CountParameters(PlainTen()), plain);
  const auto more = [&](const TenFields& fields) { return CountParameters(PlainTen(fields)) - plain; };
  TenFields fields = {.eigenstates = 4, .heads = 2, .convolution = 0, .layer_memory = false};
  fields.selective = true;
  EXPECT_EQ(more(fields), 2 * 8 * 8);
  fields.convolution = 3;
  EXPECT_EQ(more(fields), 2 * (8 * 8 + 8 * 3));
  fields.layer_memory = true;
  EXPECT_EQ(more(fields), 2 * (8 * 8 + 8 * 3) + 4 * 4 + 1) << "the first layer has none below";
  fields.windows = {2, 6};
  // Of each of two windows: in and out 2 * 4 * 8, decays 2 * 2. Of both: a norm 16, a gate 64 + 8.
  EXPECT_EQ(more(fields), 2 * (8 * 8 + 8 * 3) + 4 * 4 + 1 + 2 * (2 * (64 + 4) + 16 + 72));
  ModelConfig untied = PlainTen();
  untied.tie_embeddings = false;
  EXPECT_EQ(CountParameters(untied), plain + 80);
}

TEST(TenFamilyTest, PresetsAreWrittenAsConfigsThatSayTheSame) {
  for (const ModelPreset& preset : TenFamily().Presets()) {
    SCOPED_TRACE(preset.config.preset);
    ModelConfig config = TenPreset(preset.config.preset);
    config.preset.clear();
    const json written = json::parse(EncodeConfigJson(config));
    EXPECT_EQ(written["model_type"], "ten");
    EXPECT_EQ(written["architectures"], json::array({"TenForCausalLM"}));
    EXPECT_EQ(Decoded(written), config);
  }
}

TEST(TenFamilyTest, EveryFieldComesBackAsItWas) {
  ModelConfig config = PlainTen({.eigenstates = 6,
                                 .heads = 3,
                                 .init = TenInit::kCompat,
                                 .min_modulus = 0.25,
                                 .max_modulus = 0.5,
                                 .max_angle = 1.5,
                                 .selective = true,
                                 .convolution = 2,
                                 .depth_decay = false,
                                 .layer_memory = false,
                                 .windows = {1, 3},
                                 .scan_chunk = 7,
                                 .dynamics_rate = 0.375});
  config.rms_norm_eps = 1e-6;
  config.tie_embeddings = false;
  config.eos_id = 3;
  EXPECT_EQ(Decoded(json::parse(EncodeConfigJson(config))), config);
}

TEST(TenFamilyTest, AbsentFieldsHaveTheirDefaults) {
  const ModelConfig config = Decoded({{"model_type", "ten"},
                                      {"vocab_size", 10},
                                      {"hidden_size", 8},
                                      {"intermediate_size", 12},
                                      {"num_hidden_layers", 2},
                                      {"num_eigenstates", 4},
                                      {"max_position_embeddings", 64}});
  EXPECT_EQ(TenFieldsOf(config), (TenFields{.eigenstates = 4}));
  EXPECT_EQ(config.rms_norm_eps, 1e-5);
  EXPECT_TRUE(config.tie_embeddings);
}

TEST(TenFamilyTest, BadFieldsAreRefusedByName) {
  const std::vector<std::pair<const char*, json>> cases = {
      {"num_eigenstates", 0},
      {"num_eigenstates", nullptr},
      {"num_heads", 3},
      {"num_heads", 0},
      {"num_heads", -4},
      {"init", "random"},
      {"init", 1},
      {"min_modulus", 0.0},
      {"min_modulus", -0.5},
      {"min_modulus", 1.0},
      {"max_modulus", 1.0},
      {"min_modulus", 1e-200},  // whose square is 0
      {"max_modulus", 1.5},
      {"max_modulus", 0.9999999},  // would be clamped
      {"max_modulus", 0.5},        // below min_modulus
      {"max_angle", 0.0},
      {"max_angle", 7.0},
      {"selective", "yes"},
      {"conv_kernel", -1},
      {"conv_kernel", 65},
      {"depth_decay", 1},
      {"layer_memory", 1},
      {"windows", 4},
      {"windows", {1, 2.5}},
      {"windows", {0, 2}},
      {"windows", {2, 1}},
      {"windows", {2, 2}},
      {"windows", {2, 3}},     // 2 does not divide 3
      {"windows", {1, 2, 4}},  // 3 do not divide 4 eigenstates
      {"scan_chunk", 0},
      {"dynamics_rate", 0.0},
      {"dynamics_rate", -0.1},
      {"layer_norm_eps", -1e-5},   // no norm is a number then
      {"num_attention_heads", 4},  // of other families
  };
  const json good = json::parse(EncodeConfigJson(PlainTen()));
  EXPECT_NO_THROW(Decoded(good));
  for (const auto& [field, value] : cases) {
    json object = good;
    object[field] = value;
    const auto decode = [&] { Decoded(object); };
    EXPECT_EQ(test::CodeOf(decode), ErrorCode::kBadInput) << field << " " << value;
    EXPECT_THAT(test::MessageOf(decode), testing::AllOf(HasSubstr(field), HasSubstr("some/config.json")));
  }
}

TEST(TenFamilyTest, TheHintOfAShapeNamesShapesThatAre) {
  json object = json::parse(EncodeConfigJson(PlainTen({.eigenstates = 12})));
  object["num_heads"] = 5;
  const std::string of_heads = test::MessageOf([&] { Decoded(object); });
  EXPECT_THAT(of_heads, HasSubstr("give num_heads 1, 2, 3, 4, 6 or 12"));
  EXPECT_THAT(of_heads, testing::Not(HasSubstr("can be removed")));
}

TEST(TenFamilyTest, WhatAConfigMadeOtherwiseHasWrongIsToldByTheSameNames) {
  EXPECT_EQ(ProblemOfTen(WholeTen()).field, "");
  EXPECT_EQ(ProblemOfTen(PlainTen({.eigenstates = 0})).field, "num_eigenstates");
  EXPECT_EQ(ProblemOfTen(PlainTen({.eigenstates = 6})).field, "num_heads");
  EXPECT_EQ(ProblemOfTen(PlainTen({.eigenstates = 4, .windows = {1, 2, 4}})).field, "windows");
}

TEST(TenFamilyTest, OperationsAreTheHandComputedNumber) {
  // A layer: in, out and gate 3 * 64, MLP 2 * 96: 384 multiply-adds. The coupling: 2 parts of 4 * 2. The
  // scan: 8 operations for each of 4 eigenstates. The head: 80.
  const double plain = 2 * (2 * 384 + 2 * 16 + 8 * 4);
  const StepFlops of_plain = CountStepFlops(PlainTen(), {});
  EXPECT_EQ(of_plain.per_token, 3 * plain);
  EXPECT_EQ(of_plain.per_label, 3 * 2 * 80);
  EXPECT_EQ(of_plain.per_pair, 0);
  EXPECT_EQ(CountAttentionPairs({0, 5, 9}, PlainTen()), 0);
  // More: decays 64 multiply-adds and 3 taps for each of 8 channels in either layer; in the second a memory
  // of 2 parts of 16. The multi-scale block: a gate of 64; every 2 and every 6 tokens in and out of 2
  // eigenstates, 64, and their scan.
  const double windows = 2 * 64 + (2 * 64 + 8 * 2) * (1.0 / 2 + 1.0 / 6);
  const double whole = plain + 2 * (2 * 64 + 2 * 8 * 3) + 2 * 2 * 16 + 2 * windows;
  EXPECT_DOUBLE_EQ(CountStepFlops(WholeTen(), {}).per_token, 3 * whole);
}

StepFlops AdapterFlopsOf(const ModelConfig& config, const std::string& targets) {
  return CountStepFlops(config, {.lora = LoraOptions{.rank = 2, .alpha = 4, .targets = targets}});
}

TEST(TenFamilyTest, OperationsOfAdaptersAreTheHandComputedNumber) {
  const double forward = 2 * (2 * 384 + 2 * 16 + 8 * 4);
  // Beside the last product, [8, 12], of both layers: all inputs of the second lead to the first one's.
  const double down = 2 * 2 * (12 + 8) + 4 * 2 * 8 + 2 * 2 * 12, recurrence = 2 * 16 + 8 * 4;
  EXPECT_EQ(AdapterFlopsOf(PlainTen(), "down_proj").per_token,
            forward + 2 * down + 2 * 2 * 12 + 2 * 384 + recurrence);
  // Beside the gate, [8, 8]: the MLP of the first layer leads to it, what comes out of the scan does not.
  const double gate = 2 * 2 * (8 + 8) + 4 * 2 * 8 + 2 * 2 * 8;
  EXPECT_EQ(AdapterFlopsOf(PlainTen(), "gate_proj").per_token,
            forward + 2 * gate + 2 * 2 * 8 + 2 * 2 * 96 + 2 * 384 + recurrence);
  EXPECT_EQ(AdapterFlopsOf(PlainTen(), "gate_proj").per_label, 2 * 2 * 80);
  // Beside the memory, [4, 4], which the second layer alone has, for both parts of a number: what follows it
  // there leads to it.
  const ModelConfig with_memory = PlainTen({.eigenstates = 4, .heads = 2, .convolution = 0});
  const double memory = 2 * (2 * 2 * (4 + 4) + 4 * 2 * 4 + 2 * 2 * 4), to_out = 2 * 64, mlp = 2 * 2 * 96;
  EXPECT_EQ(AdapterFlopsOf(with_memory, "memory").per_token,
            forward + 2 * 2 * 16 + memory + to_out + mlp + recurrence);
}

TEST(TenFamilyTest, AdaptersStandBesideTheProjectionsOfCellAndMlp) {
  std::vector<std::string> modules;
  for (const LayerMatrix& matrix : TenFamily().LayerMatrices(WholeTen())) {
    if (matrix.layer == 1) modules.push_back(NameInLayer(matrix.module));
  }
  EXPECT_THAT(modules, ElementsAre("cell.in_proj", "cell.selective_proj", "cell.memory", "cell.out_proj",
                                   "cell.gate_proj", "mlp.up_proj", "mlp.down_proj"));
}

TEST(TenFamilyTest, ItsOptionsChangeWhatTheySay) {
  ModelConfig config = TenPreset("ten-nano");
  TenFamily().Apply({{"ten_init", "compat"}, {"ten_chunk", 64}, {"selective", "on"}}, &config);
  EXPECT_EQ(TenFieldsOf(config),
            (TenFields{.eigenstates = 32, .init = TenInit::kCompat, .selective = true, .scan_chunk = 64}));
  EXPECT_EQ(config.preset, "ten-nano");
  EXPECT_EQ(TenFamily().OptionsOf(config),
            (OwnOptions{{"ten_init", "compat"}, {"ten_chunk", 64}, {"selective", "on"}}));
}

TEST(TenFamilyTest, ItsOptionsAreThePresetsWhereNobodySaysThem) {
  OwnOptions defaults;
  for (const OwnOption& option : TenFamily().options()) defaults[option.name] = option.initial;
  for (const ModelPreset& preset : TenFamily().Presets()) {
    EXPECT_EQ(TenFamily().OptionsOf(preset.config), defaults) << preset.config.preset;
  }
}

TEST(TenFamilyTest, IsAlwaysCausal) {
  const FamilyList families = BuiltInDescriptions();
  for (const FamilyDescription* family : families.all()) {
    EXPECT_EQ(family->always_causal(), family == &TenFamily()) << family->model_type();
  }
}

}  // namespace
}  // namespace trainwright
