// Models with low-rank adapters: what peft and PyTorch compute for the fixtures of make_lora_fixtures.py, and
// what adapters must leave alone.
#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/formats/safetensors.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"
#include "lib/model/hf_folder.h"
#include "lib/model/peft_folder.h"
#include "lib/model/weights_io.h"
#include "tests/model/families.h"
#include "tests/model/inputs.h"
#include "tests/model/small_models.h"
#include "tests/model/tensor_file.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::kCpu;

std::string FixtureFolder(const std::string& name) {
  return test::Fixture("model/fixtures/" + name);
}

/// A fixture's base with its adapter.
std::unique_ptr<LanguageModel> LoadAdapted(const std::string& name, const std::string& base,
                                           WeightFormat format = WeightFormat::kPlain) {
  const FineTuning tuning{ReadPeftConfig(FixtureFolder(name)).lora, format};
  auto model = MakeModel(test::Families(), ReadHfConfig(test::Families().descriptions(), FixtureFolder(base)),
                         Precision::kFp32, kCpu, std::nullopt, AttentionBackend::kAuto, tuning);
  LoadWeights(FixtureFolder(base), &model->parameters());
  LoadPeftWeights(FixtureFolder(name), &model->parameters());
  return model;
}

struct PeftCase {
  const char *name, *base;
  LoraOptions options;
};

class PeftParityTest : public testing::TestWithParam<PeftCase> {
 protected:
  std::string folder_ = FixtureFolder(GetParam().name);
  test::TensorFile expected_{folder_ + "/expected.safetensors"};
  ModelInput input_ = test::OneDocument(expected_["ids"][0]);
  ModelConfig config_ = ReadHfConfig(test::Families().descriptions(), FixtureFolder(GetParam().base));
};

TEST_P(PeftParityTest, ConfigIsRead) {
  const PeftConfig config = ReadPeftConfig(folder_);
  EXPECT_EQ(config.base_model, GetParam().base);
  EXPECT_EQ(config.lora.rank, GetParam().options.rank);
  EXPECT_EQ(config.lora.alpha, GetParam().options.alpha);
  EXPECT_EQ(config.lora.rank_stabilized, GetParam().options.rank_stabilized);
  EXPECT_EQ(config.lora.dora, GetParam().options.dora);
  EXPECT_EQ(config.lora.saved_modules, GetParam().options.saved_modules);
}

TEST_P(PeftParityTest, LogitsAndGradientsAgree) {
  const auto model = LoadAdapted(GetParam().name, GetParam().base);
  EXPECT_LT(test::MaxDifference(model->Logits(input_), expected_["logits"][0]), 1e-4);
  const LossSum loss = model->LossAndGradients(input_, 1.0);
  EXPECT_NEAR(loss.loss_nats, expected_["loss_sum"].item<double>(), 1e-5 * loss.loss_nats);
  int64_t compared = 0;
  for (const Parameter& parameter : model->parameters().all()) {
    const std::string name =
        "gradient.base_model.model." +
        (parameter.name == "embed_out.weight" ? std::string("lm_head.weight") : parameter.name);
    EXPECT_EQ(parameter.trainable, expected_.Holds(name)) << parameter.name;
    EXPECT_EQ(parameter.gradient.defined(), parameter.trainable) << parameter.name;
    if (!parameter.trainable) continue;
    at::Tensor expected = expected_[name];
    if (parameter.file_order == FileOrder::kHeadsOutside) {
      // GPT-NeoX's files have q, k and v of each head in turn, our rows all heads of q, of k, of v.
      const int64_t heads = config_.num_heads;
      expected = expected.view({heads, 3, config_.head_dim, -1}).transpose(0, 1).reshape(expected.sizes());
    }
    EXPECT_LT(test::RelativeDifference(parameter.gradient, expected), 3e-5) << parameter.name;
    ++compared;
  }
  EXPECT_GE(compared, 5);
}

TEST_P(PeftParityTest, MergedWeightsComputeWhatTheAdapterDoes) {
  const auto merged = LoadHfModel(test::Families(), FixtureFolder(GetParam().base), Precision::kFp32, kCpu);
  MergePeftFolder(folder_, &merged->parameters());
  const auto adapted = LoadAdapted(GetParam().name, GetParam().base);
  const at::Tensor logits = merged->Logits(input_);
  EXPECT_LT(test::RelativeDifference(logits, adapted->Logits(input_)), 1e-5);
  EXPECT_LT(test::MaxDifference(logits, expected_["merged_logits"][0]), 1e-4);
}

TEST_P(PeftParityTest, WhatIsWrittenIsReadAgain) {
  const auto model = LoadAdapted(GetParam().name, GetParam().base);
  const test::TemporaryFolder folder;
  WritePeftFolder(folder.path(), *model, "some/base");
  const PeftConfig config = ReadPeftConfig(folder.path());
  EXPECT_EQ(config.base_model, "some/base");
  const FineTuning tuning{config.lora};
  const auto again = MakeModel(test::Families(), model->config(), Precision::kFp32, kCpu, 3,
                               AttentionBackend::kAuto, tuning);
  LoadPeftWeights(folder.path(), &again->parameters());
  EXPECT_EQ(config.lora.dora, GetParam().options.dora);
  EXPECT_TRUE(at::equal(again->parameters().values(), model->parameters().values()));
  // The tensors of the file are those of peft's.
  const auto names = [](const std::string& path) {
    const MappedFile file(path);
    std::vector<std::string> names;
    for (const auto& entry : ParseSafetensors(file.bytes(), path).entries) names.push_back(entry.name);
    std::sort(names.begin(), names.end());
    return names;
  };
  EXPECT_EQ(names(folder.path() + "/adapter_model.safetensors"),
            names(folder_ + "/adapter_model.safetensors"));
}

INSTANTIATE_TEST_SUITE_P(
    Fixtures, PeftParityTest,
    testing::Values(
        PeftCase{"lora_untied", "untied", {.rank = 3, .alpha = 5}},
        PeftCase{"lora_tied", "tied", {.rank = 2, .alpha = 4, .rank_stabilized = true}},
        PeftCase{"lora_gpt2", "gpt2_tanh", {.rank = 2, .alpha = 3}},
        PeftCase{"lora_neox", "neox", {.rank = 3, .alpha = 4}},
        PeftCase{"lora_neox_sequential", "neox_sequential", {.rank = 2, .alpha = 5}},
        PeftCase{"lora_ten", "ten_windows", {.rank = 3, .alpha = 5}},
        PeftCase{"dora_untied", "untied", {.rank = 3, .alpha = 5, .dora = true}},
        PeftCase{"dora_gpt2", "gpt2_tanh", {.rank = 2, .alpha = 3, .rank_stabilized = true, .dora = true}},
        PeftCase{"dora_neox", "neox", {.rank = 3, .alpha = 4, .dora = true}},
        PeftCase{"saved_untied", "untied", {.rank = 2, .alpha = 4, .saved_modules = "embed_tokens,lm_head"}},
        PeftCase{"saved_tied",
                 "tied",
                 {.rank = 2, .alpha = 4, .saved_modules = "embed_tokens,model.embed_tokens"}},
        PeftCase{"saved_neox", "neox", {.rank = 2, .alpha = 4, .saved_modules = "lm_head"}}));

TEST(PeftConfigTest, WhatWouldChangeTheMathsIsRefusedByName) {
  const std::string path = FixtureFolder("lora_tied") + "/adapter_config.json";
  const std::vector<uint8_t> bytes = ReadWholeFile(path);
  const nlohmann::json good = nlohmann::json::parse(bytes);
  EXPECT_NO_THROW(DecodePeftConfig(good.dump(), path));
  const std::pair<const char*, nlohmann::json> changes[] = {
      {"use_dora", "yes"},
      {"lora_bias", true},
      {"bias", "all"},
      {"modules_to_save", "lm_head"},
      {"modules_to_save", {3}},
      {"rank_pattern", {{"q_proj", 4}}},
      {"alpha_pattern", {{"q_proj", 4}}},
      {"layers_to_transform", {0}},
      {"exclude_modules", {"q_proj"}},
      {"layer_replication", nlohmann::json::array({nlohmann::json::array({0, 1})})},
      {"init_lora_weights", "pissa"},
      {"peft_type", "IA3"},
      {"r", 0},
      {"r", 2.5},
      {"r", 65537},
      {"r", 1'000'000'000'000},
      {"r", 18'000'000'000'000'000'000u},
      {"lora_alpha", "x"},
      {"lora_dropout", 1.0},
      {"target_modules", ".*proj"},
      {"use_qalora", true},
      {"a_field_of_tomorrow", 3}};
  for (const auto& [field, value] : changes) {
    nlohmann::json changed = good;
    changed[field] = value;
    try {
      DecodePeftConfig(changed.dump(), path);
      ADD_FAILURE() << "took " << field << " " << value;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadInput);
      EXPECT_NE(std::string(error.what()).find(field), std::string::npos) << error.what();
    }
  }
}

/// Writes an adapter whose adapter_config.json says something else in one field.
void WriteAdapterThatSays(const std::string& field, const nlohmann::json& value, const std::string& folder) {
  const std::string adapter = FixtureFolder("lora_tied");
  test::WriteFile(folder + "/adapter_model.safetensors",
                  test::ReadFile(adapter + "/adapter_model.safetensors"));
  nlohmann::json config = nlohmann::json::parse(test::ReadFile(adapter + "/adapter_config.json"));
  config[field] = value;
  test::WriteFile(folder + "/adapter_config.json", config.dump());
}

// Memory for matrices of the rank that is claimed would be taken before they are looked at.
TEST(PeftConfigTest, ARankThatTheWeightsDoNotHaveIsRefusedByName) {
  const test::TemporaryFolder folder;
  WriteAdapterThatSays("r", 60000, folder.path());
  EXPECT_EQ(test::CodeOf([&] { ReadPeftConfig(folder.path()); }), ErrorCode::kBadInput);
  EXPECT_THAT(test::MessageOf([&] { ReadPeftConfig(folder.path()); }),
              testing::AllOf(testing::HasSubstr("adapter_config.json: is 60000"),
                             testing::HasSubstr("has rank 2"), testing::HasSubstr("field r")));
}

TEST(PeftConfigTest, AModuleThatTheWeightsDoNotHaveIsRefusedByName) {
  const test::TemporaryFolder folder;
  WriteAdapterThatSays("target_modules", {"nope"}, folder.path());
  EXPECT_EQ(test::CodeOf([&] { ReadPeftConfig(folder.path()); }), ErrorCode::kBadInput);
  EXPECT_THAT(test::MessageOf([&] { ReadPeftConfig(folder.path()); }),
              testing::AllOf(testing::HasSubstr("adapter_config.json: names nope"),
                             testing::HasSubstr("field target_modules")));
}

// Training scripts have one list for several families, and peft raises where nothing of it is found.
TEST(PeftConfigTest, TargetsThatNeitherTheWeightsNorTheModelHaveChangeNothing) {
  const test::TemporaryFolder folder;
  WriteAdapterThatSays("target_modules", {"c_attn", "down_proj", "q_proj", "query_key_value", "v_proj"},
                       folder.path());
  const PeftConfig config = ReadPeftConfig(folder.path());
  EXPECT_EQ(config.unused_targets, "c_attn,query_key_value");
  EXPECT_EQ(config.lora, ReadPeftConfig(FixtureFolder("lora_tied")).lora);
  const ModelConfig model = ReadHfConfig(test::Families().descriptions(), FixtureFolder("tied"));
  EXPECT_EQ(test::MessageOf([&] { RequireModelOfAdapter(folder.path(), config, model); }), "");
  const auto merged = LoadHfModel(test::Families(), FixtureFolder("tied"), Precision::kFp32, kCpu),
             expected = LoadHfModel(test::Families(), FixtureFolder("tied"), Precision::kFp32, kCpu);
  MergePeftFolder(folder.path(), &merged->parameters());
  MergePeftFolder(FixtureFolder("lora_tied"), &expected->parameters());
  EXPECT_TRUE(at::equal(merged->parameters().values(), expected->parameters().values()));
}

TEST(PeftConfigTest, ATargetOfTheModelThatTheWeightsLackIsRefusedByName) {
  const ModelConfig model = ReadHfConfig(test::Families().descriptions(), FixtureFolder("tied"));
  for (const char* name : {"k_proj", "lm_head", "embed_tokens"}) {
    const test::TemporaryFolder folder;
    WriteAdapterThatSays("target_modules", {"down_proj", "q_proj", "v_proj", name}, folder.path());
    const PeftConfig config = ReadPeftConfig(folder.path());
    const auto require = [&] { RequireModelOfAdapter(folder.path(), config, model); };
    EXPECT_EQ(test::CodeOf(require), ErrorCode::kBadInput) << name;
    EXPECT_THAT(test::MessageOf(require),
                testing::AllOf(testing::HasSubstr("adapter_config.json: names " + std::string(name)),
                               testing::HasSubstr("field target_modules")));
  }
}

TEST(PeftConfigTest, WeightsInTheFormatOfOlderVersionsAreRefusedWithWhatToDo) {
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path("adapter_config.json"),
                  test::ReadFile(FixtureFolder("lora_tied") + "/adapter_config.json"));
  test::WriteFile(folder.path("adapter_model.bin"), "PK");
  EXPECT_EQ(test::CodeOf([&] { ReadPeftConfig(folder.path()); }), ErrorCode::kBadInput);
  EXPECT_THAT(test::MessageOf([&] { ReadPeftConfig(folder.path()); }),
              testing::AllOf(testing::HasSubstr("holds adapter_model.bin and no adapter_model.safetensors"),
                             testing::HasSubstr("save_pretrained")));
}

/// The names of an embedding's adapter as peft 0.21 writes them, without ".weight".
void WriteAdapterOfEmbedding(const std::string& module, const std::string& folder) {
  WriteAdapterThatSays("target_modules", {module.substr(module.rfind('.') + 1)}, folder);
  const std::vector<float> zeros(2 * 8);
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(zeros.data()), zeros.size() * 4);
  AtomicFileSink sink(folder + "/adapter_model.safetensors");
  WriteSafetensors(&sink,
                   {{"base_model.model." + module + ".lora_embedding_A", "F32", {2, 8}, bytes},
                    {"base_model.model." + module + ".lora_embedding_B", "F32", {8, 2}, bytes}},
                   {});
  sink.Commit();
}

TEST(PeftConfigTest, AnAdapterOfAnEmbeddingIsRefusedAsOne) {
  for (const std::string& module : {std::string("model.embed_tokens"), std::string("transformer.wte"),
                                    std::string("gpt_neox.embed_in")}) {
    const test::TemporaryFolder folder;
    WriteAdapterOfEmbedding(module, folder.path());
    EXPECT_EQ(test::CodeOf([&] { ReadPeftConfig(folder.path()); }), ErrorCode::kBadInput);
    try {
      ReadPeftConfig(folder.path());
      FAIL() << module;
    } catch (const Error& error) {
      EXPECT_EQ(error.problem(),
                "names " + module.substr(module.rfind('.') + 1) + ", whose adapter is of an embedding");
      EXPECT_EQ(error.place(), "field target_modules");
      EXPECT_THAT(error.hint(), testing::AllOf(testing::HasSubstr("merge_and_unload"),
                                               testing::HasSubstr("modules_to_save")));
    }
  }
}

TEST(PeftConfigTest, AnAdapterOfAHeadIsSaidNotToBeRead) {
  const ModelConfig model = ReadHfConfig(test::Families().descriptions(), FixtureFolder("untied"));
  try {
    RequireModulesOfModel("a", {.targets = "q_proj,lm_head"}, model);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.problem(), testing::HasSubstr("'lm_head'"));
    EXPECT_THAT(error.hint(), testing::AllOf(testing::HasSubstr("heads are not read"),
                                             testing::HasSubstr("merge_and_unload")));
  }
}

TEST(PeftConfigTest, AModuleToSaveThatTheWeightsDoNotHaveIsRefusedByName) {
  const test::TemporaryFolder folder;
  WriteAdapterThatSays("modules_to_save", {"lm_head"}, folder.path());
  EXPECT_THAT(test::MessageOf([&] { ReadPeftConfig(folder.path()); }),
              testing::AllOf(testing::HasSubstr("adapter_config.json: names lm_head"),
                             testing::HasSubstr("field modules_to_save")));
}

TEST(PeftConfigTest, ModulesThatTheModelCannotAdaptAreBadInputOfTheFile) {
  const ModelConfig tied = ReadHfConfig(test::Families().descriptions(), FixtureFolder("tied"));
  const ModelConfig untied = ReadHfConfig(test::Families().descriptions(), FixtureFolder("untied"));
  const auto message = [](const LoraOptions& lora, const ModelConfig& model) {
    const auto require = [&] { RequireModulesOfModel("a", lora, model); };
    EXPECT_EQ(test::CodeOf(require), ErrorCode::kBadInput);
    return test::MessageOf(require);
  };
  EXPECT_THAT(message({.targets = "q_proj,lm_head"}, untied),
              testing::HasSubstr("a/adapter_config.json: no module of the model is called 'lm_head' (field "
                                 "target_modules)"));
  EXPECT_THAT(message({.targets = "q_proj", .saved_modules = "lm_head"}, tied),
              testing::AllOf(testing::HasSubstr("a/adapter_config.json: the model's head is its table"),
                             testing::HasSubstr("(field modules_to_save)")));
  EXPECT_EQ(test::MessageOf([&] {
              RequireModulesOfModel("a", {.targets = "q_proj", .saved_modules = "lm_head"}, untied);
              RequireModulesOfModel("a", {.targets = "all-linear"}, tied);
            }),
            "");
}

/// What loading an adapter says whose file lacks a tensor, or has it otherwise.
std::string LoadingWithout(const std::string& tensor, bool is_there_otherwise) {
  const std::string weights = FixtureFolder("saved_tied") + "/adapter_model.safetensors";
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path() + "/adapter_config.json",
                  test::ReadFile(FixtureFolder("saved_tied") + "/adapter_config.json"));
  const test::TensorFile stored(weights);
  const MappedFile file(weights);
  std::vector<at::Tensor> kept;
  std::vector<SafetensorsTensor> tensors;
  for (const SafetensorsEntry& entry : ParseSafetensors(file.bytes(), weights).entries) {
    if (entry.name == tensor && !is_there_otherwise) continue;
    kept.push_back(stored[entry.name].add(entry.name == tensor ? 1e-3 : 0.0));
    const auto* data = reinterpret_cast<const uint8_t*>(kept.back().const_data_ptr<float>());
    tensors.push_back({entry.name, "F32", entry.shape, {data, static_cast<size_t>(kept.back().nbytes())}});
  }
  AtomicFileSink sink(folder.path() + "/adapter_model.safetensors");
  WriteSafetensors(&sink, tensors, {});
  sink.Commit();
  return test::MessageOf([&] {
    const FineTuning tuning{ReadPeftConfig(folder.path()).lora};
    const auto model =
        MakeModel(test::Families(), ReadHfConfig(test::Families().descriptions(), FixtureFolder("tied")),
                  Precision::kFp32, kCpu, std::nullopt, AttentionBackend::kAuto, tuning);
    LoadPeftWeights(folder.path(), &model->parameters());
  });
}

// peft goes on with the base's head beside embeddings that were trained, or trains both.
TEST(PeftFolderTest, ATableThatPeftUntiedFromTheHeadIsRefusedByName) {
  EXPECT_EQ(LoadingWithout("none", false), "");
  for (const bool is_there_otherwise : {false, true}) {
    EXPECT_THAT(LoadingWithout("base_model.model.lm_head.weight", is_there_otherwise),
                testing::AllOf(testing::HasSubstr("base_model.model.lm_head.weight"),
                               testing::HasSubstr("ensure_weight_tying")));
  }
}

TEST(PeftFolderTest, WhatIsTrainedWholeIsNeitherQuantisedNorLeftOut) {
  for (const WeightFormat format : {WeightFormat::kNf4, WeightFormat::kInt8}) {
    const auto model = LoadAdapted("saved_untied", "untied", format);
    test::TensorFile stored(FixtureFolder("saved_untied") + "/adapter_model.safetensors");
    for (const char* name : {"lm_head.weight", "model.embed_tokens.weight"}) {
      const Parameter& parameter = *model->parameters().Find(name);
      EXPECT_FALSE(parameter.quantized()) << name;
      EXPECT_TRUE(at::equal(parameter.value, stored[std::string("base_model.model.") + name])) << name;
    }
  }
}

// peft would give those of TEN's multi-scale block that are called alike adapters of its own.
TEST(PeftFolderTest, TargetsNameNoModuleThatHasNoAdapter) {
  const FineTuning tuning{LoraOptions{.rank = 2, .alpha = 4}};
  const ModelConfig config = ReadHfConfig(test::Families().descriptions(), FixtureFolder("ten_windows"));
  const auto model =
      MakeModel(test::Families(), config, Precision::kFp32, kCpu, 3, AttentionBackend::kAuto, tuning);
  const test::TemporaryFolder folder;
  WritePeftFolder(folder.path(), *model, "some/base");
  const auto written = nlohmann::json::parse(test::ReadFile(folder.path() + "/adapter_config.json"));
  const std::vector<std::string> expected = {"cell.gate_proj", "cell.in_proj", "cell.out_proj",
                                             "down_proj",      "memory",       "up_proj"};
  EXPECT_EQ(written.at("target_modules").get<std::vector<std::string>>(), expected);
}

/// Adapters as peft stores them where the model is a body alone, as AutoModel opens it: the names of a
/// fixture's without their first part, and without its head.
struct BodyCase {
  const char *name, *base, *prefix;
};

std::string WithoutStart(const std::string& text, const std::string& start) {
  return text.starts_with(start) ? text.substr(start.size()) : text;
}

void WriteAdapterOfBody(const BodyCase& of, const std::string& folder) {
  const std::string source = FixtureFolder(of.name), in_peft = "base_model.model.";
  nlohmann::json config = nlohmann::json::parse(test::ReadFile(source + "/adapter_config.json"));
  config["task_type"] = "FEATURE_EXTRACTION";
  for (nlohmann::json& target : config["target_modules"]) {
    target = WithoutStart(target.get<std::string>(), of.prefix);
  }
  if (!config["modules_to_save"].is_null())
    config["modules_to_save"] = nlohmann::json::array({"embed_tokens"});
  test::WriteFile(folder + "/adapter_config.json", config.dump());
  const MappedFile file(source + "/adapter_model.safetensors");
  const SafetensorsHeader header = ParseSafetensors(file.bytes(), file.path());
  std::vector<SafetensorsTensor> tensors;
  for (const SafetensorsEntry& entry : header.entries) {
    const std::string of_model = entry.name.substr(in_peft.size());
    if (!of_model.starts_with(of.prefix)) continue;
    tensors.push_back({in_peft + WithoutStart(of_model, of.prefix), entry.dtype, entry.shape,
                       file.bytes().subspan(header.data_offset + entry.begin, entry.end - entry.begin)});
  }
  AtomicFileSink sink(folder + "/adapter_model.safetensors");
  WriteSafetensors(&sink, tensors, {});
  sink.Commit();
}

class AdapterOfBodyTest : public testing::TestWithParam<BodyCase> {
 protected:
  AdapterOfBodyTest() { WriteAdapterOfBody(GetParam(), folder_.path()); }
  test::TemporaryFolder folder_;
};

TEST_P(AdapterOfBodyTest, IsReadAsThatOfTheModel) {
  const auto expected = LoadAdapted(GetParam().name, GetParam().base);
  const FineTuning tuning{ReadPeftConfig(folder_.path()).lora};
  const auto model = MakeModel(test::Families(), expected->config(), Precision::kFp32, kCpu, 3,
                               AttentionBackend::kAuto, tuning);
  LoadPeftWeights(folder_.path(), &model->parameters());
  EXPECT_TRUE(at::equal(model->parameters().values(), expected->parameters().values()));
}

TEST_P(AdapterOfBodyTest, IsMergedAsThatOfTheModel) {
  const auto load = [&] {
    return LoadHfModel(test::Families(), FixtureFolder(GetParam().base), Precision::kFp32, kCpu);
  };
  const auto expected = load(), merged = load();
  MergePeftFolder(FixtureFolder(GetParam().name), &expected->parameters());
  MergePeftFolder(folder_.path(), &merged->parameters());
  EXPECT_TRUE(at::equal(merged->parameters().values(), expected->parameters().values()));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, AdapterOfBodyTest,
                         testing::Values(BodyCase{"lora_untied", "untied", "model."},
                                         BodyCase{"dora_untied", "untied", "model."},
                                         BodyCase{"saved_tied", "tied", "model."},
                                         BodyCase{"lora_gpt2", "gpt2_tanh", "transformer."},
                                         BodyCase{"lora_neox", "neox", "gpt_neox."}));

TEST(PeftFolderTest, TensorsThatDoNotFitAreNamed) {
  // The adapter of one model on another.
  const FineTuning tuning{ReadPeftConfig(FixtureFolder("lora_tied")).lora};
  const auto other =
      MakeModel(test::Families(), ReadHfConfig(test::Families().descriptions(), FixtureFolder("untied")),
                Precision::kFp32, kCpu, 1, AttentionBackend::kAuto, tuning);
  try {
    LoadPeftWeights(FixtureFolder("lora_tied"), &other->parameters());
    ADD_FAILURE() << "took it";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadInput);
    EXPECT_NE(std::string(error.what()).find("lora_A"), std::string::npos) << error.what();
  }
}

class LoraModelTest : public testing::TestWithParam<std::string> {
 protected:
  ModelConfig config() const {
    return GetParam() == "gpt2"   ? test::SmallGpt2()
           : GetParam() == "neox" ? test::SmallNeox()
                                  : test::SmallLlama();
  }
  std::unique_ptr<LanguageModel> Make(const LoraOptions& options, WeightFormat format = WeightFormat::kPlain,
                                      Precision precision = Precision::kFp32) const {
    auto model = MakeModel(test::Families(), config(), precision, kCpu, 5, AttentionBackend::kAuto,
                           FineTuning{options, format});
    for (size_t i = 0; i < model->parameters().all().size(); ++i) {
      const Parameter& parameter = model->parameters().all()[i];
      if (!parameter.name.ends_with("lora_B.weight")) continue;
      at::Tensor value = at::empty(parameter.shape);
      Rng(5, parameter.name)
          .FillNormal(0, static_cast<uint64_t>(parameter.size), 0.1, value.mutable_data_ptr<float>());
      model->parameters().Assign(i, value);
    }
    model->parameters().RefreshCompute();
    return model;
  }
};

TEST_P(LoraModelTest, TheBackwardPassMayEndAtTheLowestAdapter) {
  const ModelInput input = test::RandomInput(config(), {20, 13});
  const std::vector<std::string> sets =
      GetParam() == "gpt2"   ? std::vector<std::string>{"mlp", "attn.c_proj", "mlp.c_proj", "c_attn", "c_fc"}
      : GetParam() == "neox" ? std::vector<std::string>{"mlp", "attention.dense", "dense_4h_to_h",
                                                        "query_key_value", "dense_h_to_4h"}
                             : std::vector<std::string>{"mlp", "o_proj", "down_proj", "q_proj,v_proj"};
  for (const std::string& targets : sets) {
    const auto some = Make({.rank = 2, .alpha = 4, .targets = targets});
    // Of adapters everywhere those beside the targets add nothing: their B is zero.
    const auto all = Make({.rank = 2, .alpha = 4});
    for (const Parameter& parameter : all->parameters().all()) {
      if (!IsAdapterParameter(parameter) || some->parameters().Find(parameter.name) != nullptr) continue;
      if (parameter.name.ends_with("lora_B.weight")) at::Tensor(parameter.value).zero_();
    }
    all->parameters().RefreshCompute();
    EXPECT_NEAR(some->LossAndGradients(input, 1.0).loss_nats, all->LossAndGradients(input, 1.0).loss_nats,
                1e-3);
    for (const Parameter& parameter : some->parameters().all()) {
      if (!parameter.trainable) continue;
      EXPECT_LT(
          test::RelativeDifference(parameter.gradient, all->parameters().Find(parameter.name)->gradient),
          1e-5)
          << targets << " " << parameter.name;
    }
  }
}

TEST_P(LoraModelTest, DropoutFollowsTokensAndNotMicroBatches) {
  const LoraOptions options{.rank = 2, .alpha = 4, .dropout = 0.4};
  const ModelInput input = test::RandomInput(config(), {20, 13});
  const ModelInput first = test::Document(input, 0), second = test::Document(input, 1);
  using Samples = std::vector<DropoutPosition::Sample>;
  const auto gradients = [&](const std::vector<std::pair<ModelInput, Samples>>& parts, int64_t step) {
    const auto model = Make(options);
    for (auto [part, samples] : parts) {
      part.dropout = DropoutPosition{9, step, samples};
      model->LossAndGradients(part, 1.0);
    }
    return model->parameters().gradients().clone();
  };
  const at::Tensor whole = gradients({{input, {{0, 0}, {1, 20}}}}, 3);
  EXPECT_LT(test::RelativeDifference(gradients({{first, {{0, 0}}}, {second, {{1, 0}}}}, 3), whole), 1e-5);
  EXPECT_LT(test::RelativeDifference(gradients({{second, {{1, 0}}}, {first, {{0, 0}}}}, 3), whole), 1e-5);
  EXPECT_GT(test::RelativeDifference(gradients({{first, {{0, 0}}}, {second, {{2, 0}}}}, 3), whole), 1e-2);
  EXPECT_GT(test::RelativeDifference(gradients({{input, {{0, 0}}}}, 3), whole), 1e-2);
  EXPECT_GT(test::RelativeDifference(gradients({{input, {{0, 0}, {1, 20}}}}, 4), whole), 1e-2);
}

// A quantised base, threads and the lowest adapter: as of plain adapters.
TEST_P(LoraModelTest, DoraOnAQuantisedBaseStartsAsTheBaseAndThreadsChangeNoBit) {
  ModelInput input = test::RandomInput(config(), {40, 33});
  const double base = Make({.rank = 2, .alpha = 4}, WeightFormat::kNf4)->Loss(input).loss_nats;
  const int before = at::get_num_threads();
  std::vector<at::Tensor> gradients;
  for (const int threads : {1, 2}) {
    at::set_num_threads(threads);
    const auto model =
        MakeModel(test::Families(), config(), Precision::kFp32, kCpu, 5, AttentionBackend::kAuto,
                  FineTuning{LoraOptions{.rank = 2, .alpha = 4, .dora = true}, WeightFormat::kNf4});
    if (threads == 1) {
      const auto plain =
          MakeModel(test::Families(), config(), Precision::kFp32, kCpu, 5, AttentionBackend::kAuto,
                    FineTuning{LoraOptions{.rank = 2, .alpha = 4}, WeightFormat::kNf4});
      EXPECT_NEAR(model->Loss(input).loss_nats, plain->Loss(input).loss_nats, 1e-5 * base);
    }
    model->LossAndGradients(input, 1.0);
    gradients.push_back(model->parameters().gradients().clone());
  }
  at::set_num_threads(before);
  EXPECT_TRUE(at::equal(gradients[0], gradients[1]));
  EXPECT_GT(gradients[0].abs().max().item<double>(), 0);
}

TEST_P(LoraModelTest, AHeadThatIsTrainedBesideAdaptersHasTheGradientOfAWholeModel) {
  ModelConfig shape = config();
  const std::string name = GetParam() == "gpt2"   ? "transformer.wte"
                           : shape.tie_embeddings ? "model.embed_tokens"
                           : GetParam() == "neox" ? "embed_out"
                                                  : "lm_head";
  const ModelInput input = test::RandomInput(shape, {20, 13});
  const auto beside = MakeModel(test::Families(), shape, Precision::kFp32, kCpu, 5, AttentionBackend::kAuto,
                                FineTuning{LoraOptions{.rank = 2, .alpha = 4, .saved_modules = name}});
  const auto whole = MakeModel(test::Families(), shape, Precision::kFp32, kCpu, 5);
  beside->LossAndGradients(input, 1.0);
  whole->LossAndGradients(input, 1.0);
  EXPECT_LT(test::RelativeDifference(beside->parameters().Find(name + ".weight")->gradient,
                                     whole->parameters().Find(name + ".weight")->gradient),
            1e-5);
}

TEST_P(LoraModelTest, EvaluationDropsNothing) {
  const ModelInput input = test::RandomInput(config(), {20, 13});
  const auto with = Make({.rank = 2, .alpha = 4, .dropout = 0.5}), without = Make({.rank = 2, .alpha = 4});
  ModelInput dropping = input;
  dropping.dropout = DropoutPosition{9, 1, {{0, 0}}};
  const double trained = with->LossAndGradients(dropping, 1.0).loss_nats;
  EXPECT_NE(trained, without->Loss(input).loss_nats);
  EXPECT_EQ(with->Loss(dropping).loss_nats, without->Loss(input).loss_nats);
  EXPECT_TRUE(at::equal(with->Logits(dropping), without->Logits(input)));
}

TEST_P(LoraModelTest, ThreadsChangeNoBit) {
  ModelInput input = test::RandomInput(config(), {40, 33});
  input.dropout = DropoutPosition{9, 1, {{0, 0}}};
  const int before = at::get_num_threads();
  std::vector<at::Tensor> gradients;
  for (const int threads : {1, 2}) {
    at::set_num_threads(threads);
    const auto model = Make({.rank = 4, .alpha = 4, .dropout = 0.1}, WeightFormat::kNf4);
    model->LossAndGradients(input, 1.0);
    gradients.push_back(model->parameters().gradients().clone());
  }
  at::set_num_threads(before);
  EXPECT_TRUE(at::equal(gradients[0], gradients[1]));
}

TEST_P(LoraModelTest, QuantizedBaseGivesTheGradientsOfItsDequantizedWeights) {
  const ModelInput input = test::RandomInput(config(), {20, 13});
  for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kFp16}) {
    const LoraOptions options{.rank = 2, .alpha = 4};
    const auto quantized = Make(options, WeightFormat::kNf4, precision),
               plain = Make(options, WeightFormat::kPlain, precision);
    for (size_t i = 0; i < plain->parameters().all().size(); ++i) {
      const Parameter& parameter = quantized->parameters().all()[i];
      if (!parameter.quantized()) continue;
      const Numerics exact;
      at::Tensor read = at::empty(parameter.shape, at::kFloat);
      parameter.matrix->DequantizeRows(exact, 0, read);
      plain->parameters().Assign(i, read);
    }
    EXPECT_EQ(quantized->LossAndGradients(input, 1.0).loss_nats,
              plain->LossAndGradients(input, 1.0).loss_nats);
    EXPECT_TRUE(at::equal(quantized->parameters().gradients(), plain->parameters().gradients()));
  }
}

INSTANTIATE_TEST_SUITE_P(Families, LoraModelTest, testing::Values("llama", "gpt2", "neox"),
                         [](const auto& info) { return info.param; });

ModelConfig LlamaShape(int64_t width, int64_t layers, int64_t heads, int64_t kv_heads, int64_t wide,
                       int64_t vocabulary, bool tied) {
  ModelConfig config;
  config.family = &LlamaFamily();
  config.vocab_size = vocabulary;
  config.hidden_size = width;
  config.intermediate_size = wide;
  config.num_layers = layers;
  config.num_heads = heads;
  config.num_kv_heads = kv_heads;
  config.head_dim = width / heads;
  config.max_positions = 2048;
  config.tie_embeddings = tied;
  return config;
}

int64_t TrainableCount(const ModelConfig& config, const LoraOptions& options) {
  return MakeModel(test::Families(), config, Precision::kFp32, at::Device(at::kMeta), std::nullopt,
                   AttentionBackend::kAuto, FineTuning{options})
      ->parameters()
      .trainable_count();
}

TEST(LoraCountTest, AdaptersHaveThePublishedNumbersOfParameters) {
  const ModelConfig smollm2_360m = LlamaShape(960, 32, 15, 5, 2560, 49152, true);
  EXPECT_EQ(TrainableCount(smollm2_360m, {.rank = 16, .alpha = 64}), 8'683'520);
  EXPECT_EQ(TrainableCount(smollm2_360m, {.rank = 4, .alpha = 16}), 2'170'880);
  const ModelConfig tinyllama = LlamaShape(2048, 22, 32, 4, 5632, 32000, false);
  EXPECT_EQ(TrainableCount(tinyllama, {.rank = 16, .alpha = 32, .targets = "q_proj,k_proj,v_proj,o_proj"}),
            4'505'600);
}

TEST(LoraCountTest, MagnitudesAndModulesThatAreTrainedWholeAreCounted) {
  const ModelConfig config = LlamaShape(256, 4, 8, 8, 512, 1024, false);
  const int64_t plain = TrainableCount(config, {.rank = 8, .alpha = 8});
  EXPECT_EQ(TrainableCount(config, {.rank = 8, .alpha = 8, .dora = true}),
            plain + 4 * (4 * 256 + 2 * 512 + 256));
  EXPECT_EQ(TrainableCount(config, {.rank = 8, .alpha = 8, .saved_modules = "lm_head,norm"}),
            plain + 1024 * 256 + 256);
}

TEST(LoraMemoryTest, FrozenWeightsTakeTheirOwnTypeAlone) {
  const ModelConfig config = LlamaShape(256, 4, 8, 8, 512, 1024, false);
  const int64_t layer_matrices = 4 * (4 * 256 * 256 + 3 * 256 * 512), tables = 2 * 1024 * 256,
                norms = 9 * 256;
  const int64_t adapters = 4 * 8 * (4 * (256 + 256) + 3 * (256 + 512));
  for (const WeightFormat format : {WeightFormat::kPlain, WeightFormat::kNf4}) {
    const auto model =
        MakeModel(test::Families(), config, Precision::kBf16, at::Device(at::kMeta), std::nullopt,
                  AttentionBackend::kAuto, FineTuning{LoraOptions{.rank = 8, .alpha = 8}, format});
    FlatParameters& parameters = model->parameters();
    EXPECT_EQ(parameters.values().nbytes(), 4 * adapters);
    EXPECT_EQ(parameters.gradients().nbytes(), 4 * adapters);
    EXPECT_EQ(parameters.compute().nbytes(), 2 * adapters);
    int64_t matrices = 2 * layer_matrices;
    if (format == WeightFormat::kNf4) {
      const auto nf4 = [](int64_t size) { return size / 2 + size / 64 + 4 * ((size / 64 + 255) / 256) + 4; };
      matrices = 4 * (4 * nf4(256 * 256) + 3 * nf4(256 * 512));
    }
    EXPECT_EQ(parameters.frozen_bytes(), matrices + 2 * tables + 4 * norms);
  }
}

}  // namespace
}  // namespace trainwright
