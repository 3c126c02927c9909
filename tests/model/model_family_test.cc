// Descriptions of families against the models themselves.
#include "lib/model/model_family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/error.h"
#include "lib/model/built_in_families.h"
#include "lib/model/initialize.h"
#include "lib/nn/linear/lora.h"
#include "lib/spec/built_in_families.h"
#include "lib/spec/llama_family.h"
#include "lib/spec/model_flops.h"
#include "tests/model/families.h"
#include "tests/model/small_models.h"
#include "tests/model/ten_models.h"
#include "tests/model/toy_family.h"
#include "tests/spec/toy_recurrent_family.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

TEST(BuiltInFamiliesTest, AreThoseThatAreDescribed) {
  EXPECT_EQ(BuiltInFamilies().descriptions().all(), BuiltInDescriptions().all());
}

TEST(ModelFamiliesTest, AnUnknownFamilyIsRefusedWithTheKnownOnes) {
  const ModelFamilies families = BuiltInFamilies();
  const ModelFamilies none({});
  ModelConfig config = families.descriptions().PresetConfig("llama-1m", 300);
  const auto make = [&](const ModelFamilies& known) {
    MakeModel(known, config, Precision::kFp32, at::Device(at::kMeta), std::nullopt);
  };
  EXPECT_EQ(test::CodeOf([&] { make(none); }), ErrorCode::kUsage);
  const ModelFamilies another({{families.descriptions().Find("gpt2"), families.Of(config).make}});
  EXPECT_THAT(test::MessageOf([&] { make(another); }),
              testing::AllOf(testing::HasSubstr("llama"), testing::HasSubstr("gpt2")));
}

TEST(ModelFamiliesTest, AFamilyOfTheCpuIsRefusedOnAGpu) {
  const ModelFamilies families({{&test::ToyRecurrent(), test::MakeToyBody}});
  const ModelConfig config = families.descriptions().PresetConfig("toy-recurrent-tiny", 300);
  const auto make = [&] {
    MakeModel(families, config, Precision::kFp32, at::Device(at::kCUDA), std::nullopt);
  };
  EXPECT_EQ(test::CodeOf(make), ErrorCode::kDevice);
  EXPECT_THAT(test::MessageOf(make), testing::HasSubstr("toy-recurrent"));
}

TEST(InitialWeightsTest, MatricesHaveTheDeviationOfTheConfig) {
  for (ModelConfig config : {test::SmallLlama(), test::SmallGpt2(), test::SmallNeox()}) {
    const auto make = [&] {
      return MakeModel(test::Families(), config, Precision::kFp32, at::Device(at::kCPU), /*seed=*/3);
    };
    const auto usual = make();
    config.initializer_range *= 2;
    const auto wider = make();
    for (size_t i = 0; i < usual->parameters().all().size(); ++i) {
      const Parameter &one = usual->parameters().all()[i], &other = wider->parameters().all()[i];
      const double factor = one.shape.size() == 1 ? 1 : 2;
      EXPECT_TRUE(other.value.equal(one.value.mul(factor))) << one.name;
    }
  }
}

TEST(StandInsTest, AreOfTheSizeOfInitialWeightsAndLeaveNoneOut) {
  for (const ModelConfig& config : {test::SmallLlama(), test::SmallGpt2()}) {
    const auto model =
        MakeModel(test::Families(), config, Precision::kFp32, at::Device(at::kCPU), std::nullopt);
    FillWithStandIns(&model->parameters());
    for (const Parameter& parameter : model->parameters().all()) {
      SCOPED_TRACE(parameter.name);
      if (parameter.shape.size() == 1) {
        const double expected = parameter.name.ends_with(".bias") ? 0 : 1;
        EXPECT_EQ(parameter.value.min().item<double>(), expected);
        EXPECT_EQ(parameter.value.max().item<double>(), expected);
        continue;
      }
      EXPECT_NEAR(parameter.value.std().item<double>(), 0.02, 0.002);
      EXPECT_NE(parameter.value.abs().min().item<double>(), 0);
    }
  }
}

/// What memory and operations of adapters are counted by.
TEST(FamilyDescriptionTest, TheMatricesOfTheLayersAreThoseOfTheModel) {
  for (const char* preset : {"llama-1m", "mistral-7b", "qwen2-0.5b", "gpt2-124m", "nanogpt-10m", "neox-tiny",
                             "ten-nano", "ten-medium-32k"}) {
    const ModelConfig config = test::Families().descriptions().PresetConfig(preset, 300);
    const auto model =
        MakeModel(test::Families(), config, Precision::kFp32, at::Device(at::kMeta), std::nullopt);
    const std::vector<LayerMatrix> described = FamilyOf(config).LayerMatrices(config);
    const std::vector<size_t> indices = LayerMatrices(model->parameters());
    ASSERT_EQ(described.size(), indices.size()) << preset;
    for (size_t i = 0; i < indices.size(); ++i) {
      const Parameter& parameter = model->parameters().all()[indices[i]];
      EXPECT_EQ(described[i].module + ".weight", parameter.name);
      EXPECT_THAT(parameter.shape, testing::ElementsAre(described[i].outputs, described[i].inputs))
          << parameter.name;
    }
  }
}

/// Without attention it is 6 operations a token and weight that is multiplied (Kaplan et al. 2020), counted
/// here on the model itself.
TEST(TrainingFlops, IsSixATokenAndMatrixElement) {
  for (const char* preset : {"llama-1m", "nanogpt-10m", "gpt2-124m"}) {
    const ModelConfig config = test::Families().descriptions().PresetConfig(preset, 300);
    const auto model =
        MakeModel(test::Families(), config, Precision::kFp32, at::Device(at::kMeta), std::nullopt);
    int64_t elements = 0;
    for (const Parameter& parameter : model->parameters().all()) {
      const bool looked_up = parameter.name.find("embed_tokens") != std::string::npos ||
                             parameter.name.find("wte") != std::string::npos ||
                             parameter.name.find("wpe") != std::string::npos;
      if (parameter.shape.size() == 2 && !looked_up) elements += parameter.size;
    }
    if (config.tie_embeddings) elements += config.vocab_size * config.hidden_size;
    EXPECT_EQ(TrainingFlops(config, {.tokens = 7, .labels = 7}), 6.0 * 7 * static_cast<double>(elements))
        << preset;
  }
}

TEST(CountParametersTest, CountsWhatAModelOfEveryFamilyHolds) {
  for (const ModelConfig& config :
       {test::SmallLlama(), test::SmallMistral(), test::SmallQwen2(), test::SmallBiasedLlama(),
        test::SmallGpt2(), test::SmallGpt2(false), test::SmallNeox(), test::SmallNeox(false),
        test::TenOf(test::TenKinds()[0].fields), test::TenOf(test::TenKinds()[3].fields)}) {
    EXPECT_EQ(test::LivelyModel(config, test::kFp32Numerics)->parameters().count(), CountParameters(config));
  }
}

TEST(CountParametersTest, CountsWhatAModelHolds) {
  for (const bool tied : {false, true}) {
    for (const bool bias : {false, true}) {
      ModelConfig config =
          test::Families().descriptions().PresetConfig(bias ? "nanogpt-10m" : "llama-1m", 500);
      if (bias) config.biases = Biases::All();
      config.num_layers = 2;
      config.tie_embeddings = tied;
      EXPECT_EQ(MakeModel(test::Families(), config, Precision::kFp32, at::Device(at::kCPU), 1)
                    ->parameters()
                    .count(),
                CountParameters(config));
      if (!bias) continue;
      config.biases = {};
      EXPECT_EQ(MakeModel(test::Families(), config, Precision::kFp32, at::Device(at::kCPU), 1)
                    ->parameters()
                    .count(),
                CountParameters(config));
    }
  }
}

}  // namespace
}  // namespace trainwright
