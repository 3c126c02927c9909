// What a model that embeds has beside its layers: what of it is trained, and where its folder keeps it.
#include "lib/model/embedding_projection.h"

#include <ATen/ops/any.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/formats/safetensors.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"
#include "lib/model/hf_folder.h"
#include "lib/model/initialize.h"
#include "lib/model/peft_folder.h"
#include "tests/model/small_models.h"
#include "tests/model/tensor_file.h"
#include "tests/support/bytes_identity.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::kCpu;

constexpr int64_t kSize = 20;

FineTuning Embedding(int64_t projection, bool train_head) {
  FineTuning tuning;
  tuning.embedding = EmbeddingTuning{.projection = projection, .train_head = train_head};
  return tuning;
}

std::unique_ptr<LanguageModel> MakeEmbedding(const ModelConfig& config, const FineTuning& tuning,
                                             uint64_t seed = 5) {
  return std::make_unique<LanguageModel>(test::MakeBody(config, test::kFp32Numerics, kCpu, seed, tuning));
}

const Parameter& ProjectionMatrix(const LanguageModel& model) {
  return *model.parameters().Find("embedding_projection.weight");
}

SafetensorsHeader HeaderOfFile(const std::string& path) {
  const std::vector<uint8_t> bytes = ReadWholeFile(path);
  return ParseSafetensors(bytes, path);
}

TEST(EmbeddingProjectionTest, ABodyNamesItsMatrixAndTheBiasFollows) {
  const auto model = MakeEmbedding(test::SmallLlama(), Embedding(kSize, true));
  const std::optional<size_t> matrix = model->body().projection();
  ASSERT_TRUE(matrix);
  EXPECT_EQ(model->parameters().all()[*matrix].shape, (std::vector<int64_t>{kSize, 48}));
  EXPECT_EQ(model->parameters().all()[*matrix + 1].shape, (std::vector<int64_t>{kSize}));
  EXPECT_TRUE(model->parameters().all()[*matrix].trainable);
}

TEST(EmbeddingProjectionTest, WithoutASizeThereIsNone) {
  const auto model = MakeEmbedding(test::SmallLlama(), Embedding(0, true));
  EXPECT_FALSE(model->body().projection());
  EXPECT_EQ(model->parameters().Find("embedding_projection.weight"), nullptr);
}

TEST(EmbeddingProjectionTest, ANegativeSizeIsRefused) {
  EXPECT_THROW(MakeEmbedding(test::SmallLlama(), Embedding(-1, true)), Error);
}

TEST(EmbeddingProjectionTest, AHeadOfItsOwnThatNoLossReadsIsFrozen) {
  const auto model = MakeEmbedding(test::SmallLlama(), Embedding(0, false));
  EXPECT_FALSE(model->parameters().all()[model->body().head()].trainable);
}

TEST(EmbeddingProjectionTest, ATiedHeadIsTrainedAsEmbeddings) {
  const auto model = MakeEmbedding(test::SmallGpt2(), Embedding(0, false));
  EXPECT_TRUE(model->parameters().all()[model->body().head()].trainable);
}

TEST(EmbeddingProjectionTest, AdaptersLeaveItTrained) {
  FineTuning tuning = Embedding(kSize, false);
  tuning.lora = LoraOptions{.rank = 2, .alpha = 4};
  const auto model = MakeEmbedding(test::SmallLlama(), tuning);
  EXPECT_TRUE(ProjectionMatrix(*model).trainable);
  EXPECT_FALSE(model->parameters().Find("model.norm.weight")->trainable);
}

TEST(EmbeddingProjectionTest, TheOtherWeightsStartAsWithoutIt) {
  const auto plain = MakeEmbedding(test::SmallLlama(), {});
  const auto projecting = MakeEmbedding(test::SmallLlama(), Embedding(kSize, true));
  for (const Parameter& parameter : plain->parameters().all()) {
    EXPECT_TRUE(at::equal(parameter.value, projecting->parameters().Find(parameter.name)->value))
        << parameter.name;
  }
}

TEST(EmbeddingProjectionTest, BesideTrainedWeightsItStartsAsAmongRandomOnes) {
  const auto all = MakeEmbedding(test::SmallLlama(), Embedding(kSize, true), 7);
  const auto model = MakeEmbedding(test::SmallLlama(), Embedding(kSize, true), 8);
  InitializeProjection(7, &model->parameters());
  EXPECT_TRUE(at::equal(ProjectionMatrix(*all).value, ProjectionMatrix(*model).value));
  EXPECT_FALSE(at::equal(all->parameters().all()[0].value, model->parameters().all()[0].value));
}

TEST(EmbeddingProjectionTest, AFolderKeepsItApartAndGivesItBack) {
  const test::TemporaryFolder folder;
  const auto model = MakeEmbedding(test::SmallLlama(), Embedding(kSize, true));
  WriteHfFolder(folder.path(), *model, test::BytesIdentity());
  EXPECT_EQ(HeaderOfFile(folder.path() + "/model.safetensors").Find("embedding_projection.weight"), nullptr);
  const SafetensorsHeader own = HeaderOfFile(folder.path() + "/2_Dense/model.safetensors");
  ASSERT_NE(own.Find("linear.weight"), nullptr);
  EXPECT_EQ(own.Find("linear.weight")->shape, (std::vector<int64_t>{kSize, 48}));
  EXPECT_EQ(own.Find("linear.bias")->shape, (std::vector<int64_t>{kSize}));
  const auto loaded = LoadHfModel(test::Families(), folder.path(), Precision::kFp32, kCpu);
  for (const Parameter& parameter : model->parameters().all()) {
    EXPECT_TRUE(at::equal(parameter.value, loaded->parameters().Find(parameter.name)->value))
        << parameter.name;
  }
}

/// As other programs write a layer without a bias.
void TakeBiasFrom(const std::string& folder, bool says_so) {
  const std::string weights = folder + "/2_Dense/model.safetensors";
  const at::Tensor matrix = test::TensorFile(weights)["linear.weight"];
  const SafetensorsTensor tensor = {"linear.weight",
                                    "F32",
                                    matrix.sizes().vec(),
                                    {static_cast<const uint8_t*>(matrix.const_data_ptr()), matrix.nbytes()}};
  AtomicFileSink sink(weights);
  WriteSafetensors(&sink, {tensor}, {});
  sink.Commit();
  test::WriteFile(folder + "/2_Dense/config.json", says_so ? R"({"bias": false})" : R"({"bias": true})");
}

TEST(EmbeddingProjectionTest, ALayerWithoutABiasIsReadAsOneOfZeros) {
  const test::TemporaryFolder folder;
  const auto model = MakeEmbedding(test::SmallLlama(), Embedding(kSize, true));
  WriteHfFolder(folder.path(), *model, test::BytesIdentity());
  TakeBiasFrom(folder.path(), /*says_so=*/true);
  const auto loaded = LoadHfModel(test::Families(), folder.path(), Precision::kFp32, kCpu);
  EXPECT_TRUE(at::equal(ProjectionMatrix(*loaded).value, ProjectionMatrix(*model).value));
  EXPECT_FALSE(loaded->parameters().Find("embedding_projection.bias")->value.any().item<bool>());
}

TEST(EmbeddingProjectionTest, ABiasThatOneShouldHaveIsMissed) {
  const test::TemporaryFolder folder;
  WriteHfFolder(folder.path(), *MakeEmbedding(test::SmallLlama(), Embedding(kSize, true)),
                test::BytesIdentity());
  TakeBiasFrom(folder.path(), /*says_so=*/false);
  try {
    LoadHfModel(test::Families(), folder.path(), Precision::kFp32, kCpu);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadInput);
    EXPECT_EQ(error.place(), "tensor linear.bias");
  }
}

TEST(EmbeddingProjectionTest, ItsConfigIsThatOfADenseModule) {
  const test::TemporaryFolder folder;
  WriteHfFolder(folder.path(), *MakeEmbedding(test::SmallLlama(), Embedding(kSize, true)),
                test::BytesIdentity());
  const std::vector<uint8_t> text = ReadWholeFile(folder.path() + "/2_Dense/config.json");
  const auto config = nlohmann::json::parse(text.begin(), text.end());
  EXPECT_EQ(config, nlohmann::json::parse(R"json({"in_features": 48, "out_features": 20, "bias": true,
      "activation_function": "torch.nn.modules.linear.Identity"})json"));
}

TEST(EmbeddingProjectionTest, AFolderWithoutOneIsAsItWas) {
  const test::TemporaryFolder folder;
  WriteHfFolder(folder.path(), *MakeEmbedding(test::SmallLlama(), {}), test::BytesIdentity());
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/2_Dense"));
  EXPECT_FALSE(ProjectionOf(folder.path()));
}

TEST(EmbeddingProjectionTest, WeightsThatWereCopiedAreWrittenInPlaceOfThoseInTraining) {
  const test::TemporaryFolder folder;
  const auto model = MakeEmbedding(test::SmallLlama(), Embedding(kSize, true));
  const at::Tensor copied = model->parameters().values().clone(),
                   before = ProjectionMatrix(*model).value.clone();
  at::Tensor(ProjectionMatrix(*model).value).zero_();
  WriteHfFolder(folder.path(), *model, test::BytesIdentity(), {.values = copied});
  const auto loaded = LoadHfModel(test::Families(), folder.path(), Precision::kFp32, kCpu);
  EXPECT_TRUE(at::equal(ProjectionMatrix(*loaded).value, before));
}

TEST(EmbeddingProjectionTest, AnotherSizeIsRefusedByName) {
  const test::TemporaryFolder folder;
  WriteHfFolder(folder.path(), *MakeEmbedding(test::SmallLlama(), Embedding(kSize, true)),
                test::BytesIdentity());
  const auto other = MakeEmbedding(test::SmallLlama(), Embedding(kSize + 1, true));
  try {
    LoadProjection(folder.path(), &other->parameters());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadInput);
    EXPECT_EQ(error.place(), "tensor linear.weight");
  }
}

TEST(EmbeddingProjectionTest, AnAdaptersFolderHasNoneOfItInItsOwnFile) {
  const test::TemporaryFolder folder;
  FineTuning tuning = Embedding(kSize, false);
  tuning.lora = LoraOptions{.rank = 2, .alpha = 4};
  const auto model = MakeEmbedding(test::SmallLlama(), tuning);
  WritePeftFolder(folder.path(), *model, "base");
  WriteProjection(folder.path(), model->parameters());
  const SafetensorsHeader header = HeaderOfFile(folder.path() + "/adapter_model.safetensors");
  for (const SafetensorsEntry& entry : header.entries) {
    EXPECT_EQ(entry.name.find("embedding_projection"), std::string::npos) << entry.name;
  }
  EXPECT_EQ(ProjectionOf(folder.path()), kSize);
}

}  // namespace
}  // namespace trainwright
