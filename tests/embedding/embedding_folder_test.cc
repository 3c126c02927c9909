// The files that sentence-transformers and transformers read of a model that embeds.
#include "lib/embedding/embedding_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "lib/documents/chat_template.h"
#include "lib/embedding/similarity.h"
#include "lib/io/byte_source.h"
#include "lib/model/hf_folder.h"
#include "tests/model/small_models.h"
#include "tests/support/bytes_identity.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using nlohmann::json;

EmbeddingSpec GritSpec() {
  EmbeddingSpec spec;
  spec.pooling = Pooling::kMean;
  spec.mask = AttentionMask::kBidirectional;
  spec.attention = "bbcc";
  spec.normalize = true;
  spec.projection = 0;
  spec.query_max_len = 32;
  spec.passage_max_len = 128;
  spec.template_text = std::string(BuiltInTemplateText("grit"));
  return spec;
}

class EmbeddingFolderTest : public testing::Test {
 protected:
  void Write(const EmbeddingSpec& spec, const ModelConfig& config = test::SmallLlama()) {
    const LanguageModel model(test::MakeBody(config, test::kFp32Numerics, test::kCpu, 5));
    WriteHfFolder(folder_.path(), model, test::BytesIdentity());
    WriteEmbeddingFolder(folder_.path(), config, spec);
  }
  std::string Text(const std::string& name) const {
    const std::vector<uint8_t> bytes = ReadWholeFile(folder_.path() + "/" + name);
    return {bytes.begin(), bytes.end()};
  }
  json Read(const std::string& name) const { return json::parse(Text(name)); }
  bool Has(const std::string& name) const { return std::filesystem::exists(folder_.path() + "/" + name); }
  std::vector<std::string> ModuleTypes() const {
    std::vector<std::string> types;
    for (const json& module : Read("modules.json")) types.push_back(module.at("type").get<std::string>());
    return types;
  }

  const test::TemporaryFolder folder_;
};

TEST_F(EmbeddingFolderTest, ModulesAreBodyPoolingAndNormalisation) {
  Write(GritSpec());
  EXPECT_EQ(ModuleTypes(), (std::vector<std::string>{"sentence_transformers.models.Transformer",
                                                     "sentence_transformers.models.Pooling",
                                                     "sentence_transformers.models.Normalize"}));
}

TEST_F(EmbeddingFolderTest, AProjectionStandsBetweenPoolingAndNormalisation) {
  EmbeddingSpec spec = GritSpec();
  spec.projection = 20;
  Write(spec);
  const json modules = Read("modules.json");
  ASSERT_EQ(modules.size(), 4u);
  EXPECT_EQ(modules[2].at("path"), "2_Dense");
  EXPECT_EQ(modules[2].at("idx"), 2);
}

TEST_F(EmbeddingFolderTest, VectorsThatAreNotNormalisedHaveNoModuleForIt) {
  EmbeddingSpec spec = GritSpec();
  spec.normalize = false;
  Write(spec);
  EXPECT_EQ(ModuleTypes().back(), "sentence_transformers.models.Pooling");
}

TEST_F(EmbeddingFolderTest, TheLibraryComparesVectorsAsTheSpecSays) {
  EmbeddingSpec spec = GritSpec();
  Write(spec);
  EXPECT_EQ(Read("config_sentence_transformers.json").at("similarity_fn_name"), "cosine");
  spec.normalize = false;
  spec.similarity = Similarity::kDot;
  Write(spec);
  EXPECT_EQ(Read("config_sentence_transformers.json").at("similarity_fn_name"), "dot");
}

TEST_F(EmbeddingFolderTest, EachPoolingSetsItsModeAloneAndAllButClsLeaveThePromptOut) {
  const std::pair<Pooling, const char*> modes[] = {{Pooling::kMean, "pooling_mode_mean_tokens"},
                                                   {Pooling::kCls, "pooling_mode_cls_token"},
                                                   {Pooling::kLastToken, "pooling_mode_lasttoken"}};
  for (const auto& [pooling, mode] : modes) {
    EmbeddingSpec spec = GritSpec();
    spec.pooling = pooling;
    Write(spec);
    const json config = Read("1_Pooling/config.json");
    EXPECT_EQ(config.at("include_prompt"), pooling == Pooling::kCls);
    EXPECT_EQ(config.at("word_embedding_dimension"), 48);
    for (const auto& [name, value] : config.items()) {
      if (!name.starts_with("pooling_mode_")) continue;
      EXPECT_EQ(value.get<bool>(), name == mode) << name;
    }
  }
}

TEST_F(EmbeddingFolderTest, AWeightedMeanBehindAPromptHasAModuleOfOurs) {
  EmbeddingSpec spec = GritSpec();
  spec.pooling = Pooling::kWeightedMean;
  Write(spec);
  EXPECT_EQ(ModuleTypes()[1], "trainwright_pooling.WeightedMeanBehindPrompt");
  EXPECT_NE(Text("trainwright_pooling.py").find("class WeightedMeanBehindPrompt"), std::string::npos);
}

TEST_F(EmbeddingFolderTest, AWeightedMeanWithoutAPromptIsTheLibrarysOwn) {
  EmbeddingSpec spec = GritSpec();
  spec.pooling = Pooling::kWeightedMean;
  spec.template_text.clear();
  Write(spec);
  EXPECT_EQ(Read("1_Pooling/config.json").at("pooling_mode_weightedmean_tokens"), true);
  EXPECT_FALSE(Has("trainwright_pooling.py"));
}

TEST_F(EmbeddingFolderTest, PromptsAreWhatTheTemplateWritesBeforeATextWithoutInstruction) {
  Write(GritSpec());
  const json config = Read("config_sentence_transformers.json");
  EXPECT_EQ(config.at("prompts"), (json{{"query", "<s><|embed|>\n"}, {"document", "<s><|embed|>\n"}}));
  EXPECT_EQ(config.at("default_prompt_name"), "document");
}

TEST_F(EmbeddingFolderTest, WhatTheTemplateWritesBeforeTheTextItselfIsOfThePrompt) {
  EmbeddingSpec spec = GritSpec();
  spec.template_text += "text \"passage: \" [ {content} ]\n";
  Write(spec);
  EXPECT_EQ(Read("config_sentence_transformers.json").at("prompts").at("document"),
            "<s><|embed|>\npassage: ");
}

TEST_F(EmbeddingFolderTest, AMarkThatTheTokenizerItselfPutsFirstIsNotInThePrompt) {
  const json begins = json::parse(R"json({"type": "TemplateProcessing", "single": [
      {"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]})json");
  const json ends = json::parse(R"json({"type": "TemplateProcessing", "single": [
      {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}]})json");
  Write(GritSpec());
  json tokenizer = Read("tokenizer.json");
  const auto prompt_with = [&](const json& post_processor) {
    tokenizer["post_processor"] = post_processor;
    test::WriteFile(folder_.path("tokenizer.json"), tokenizer.dump());
    WriteEmbeddingFolder(folder_.path(), test::SmallLlama(), GritSpec());
    return Read("config_sentence_transformers.json").at("prompts").at("document").get<std::string>();
  };
  EXPECT_EQ(prompt_with(begins), "<|embed|>\n");
  EXPECT_EQ(prompt_with({{"type", "Sequence"}, {"processors", json::array({ends, begins})}}), "<|embed|>\n");
  EXPECT_EQ(prompt_with(ends), "<s><|embed|>\n");
}

TEST_F(EmbeddingFolderTest, WhatIsPooledBeforeTheTextIsAPromptThatIsPooled) {
  EmbeddingSpec spec = GritSpec();
  spec.pooling = Pooling::kWeightedMean;
  spec.template_text = "user {content}\nassistant [ {content} ]\ntext [ {bos} \"passage:\" { content} ]\n";
  Write(spec);
  EXPECT_EQ(Read("config_sentence_transformers.json").at("prompts").at("document"), "<s>passage: ");
  EXPECT_EQ(Read("1_Pooling/config.json").at("include_prompt"), true);
  EXPECT_FALSE(Has("trainwright_pooling.py"));
}

TEST_F(EmbeddingFolderTest, WhereInstructionsArePooledPromptsAre) {
  EmbeddingSpec spec = GritSpec();
  spec.template_text = "user {content}\nassistant [ {content} ]\ninstruction [ {content} ]\n";
  Write(spec);
  EXPECT_EQ(Read("1_Pooling/config.json").at("include_prompt"), true);
}

TEST_F(EmbeddingFolderTest, PromptsOfRolesAreNamedForThem) {
  EmbeddingSpec spec = GritSpec();
  spec.pooling = Pooling::kLastToken;
  spec.template_text = "user {content}\nassistant [ {content} ]\n";
  spec.query_template = spec.template_text + "no-instruction \"query:\"\ntext [ { content} ]\n";
  Write(spec);
  const json config = Read("config_sentence_transformers.json");
  EXPECT_EQ(config.at("prompts"), (json{{"query", "query: "}, {"document", ""}}));
  EXPECT_TRUE(config.at("default_prompt_name").is_null());
}

TEST_F(EmbeddingFolderTest, WithoutATemplateThereIsNoPrompt) {
  EmbeddingSpec spec = GritSpec();
  spec.template_text.clear();
  Write(spec);
  const json config = Read("config_sentence_transformers.json");
  EXPECT_TRUE(config.at("prompts").empty());
  EXPECT_TRUE(config.at("default_prompt_name").is_null());
}

TEST_F(EmbeddingFolderTest, BidirectionalAttentionIsThatOfAFileBesideIt) {
  Write(GritSpec());
  EXPECT_EQ(Read("config.json").at("auto_map"),
            (json{{"AutoModel", "modeling_trainwright_bidirectional.BidirectionalLlamaModel"}}));
  EXPECT_NE(Text("modeling_trainwright_bidirectional.py").find("class BidirectionalLlamaModel"),
            std::string::npos);
}

TEST_F(EmbeddingFolderTest, EachFamilysClassIsInTheFile) {
  for (const ModelConfig& config :
       {test::SmallLlama(), test::SmallMistral(), test::SmallQwen2(), test::SmallGpt2(), test::SmallNeox()}) {
    Write(GritSpec(), config);
    const auto named = Read("config.json").at("auto_map").at("AutoModel").get<std::string>();
    const std::string python_class = named.substr(named.find('.') + 1);
    EXPECT_NE(Text("modeling_trainwright_bidirectional.py").find("class " + python_class + "("),
              std::string::npos)
        << python_class;
  }
}

TEST_F(EmbeddingFolderTest, CausalAttentionNeedsNoCodeOfOurs) {
  EmbeddingSpec spec = GritSpec();
  spec.attention = "cccc";
  spec.mask = AttentionMask::kCausal;
  Write(spec);
  EXPECT_FALSE(Has("modeling_trainwright_bidirectional.py"));
  EXPECT_FALSE(Read("config.json").contains("auto_map"));
}

TEST_F(EmbeddingFolderTest, AHeadPredictsByCausalAttentionWhateverItsConfigSaid) {
  ModelConfig config = test::SmallLlama();
  config.is_causal = false;
  Write(GritSpec(), config);
  EXPECT_FALSE(Read("config.json").contains("is_causal"));
  EXPECT_TRUE(Read("config.json").contains("auto_map"));
}

TEST_F(EmbeddingFolderTest, TheModelOpensHereAsBefore) {
  Write(GritSpec());
  EXPECT_EQ(ReadHfConfig(test::Families().descriptions(), folder_.path()).hidden_size, 48);
}

TEST_F(EmbeddingFolderTest, ATokenizerWithoutAMarkForPaddingPadsWithTheBeginning) {
  Write(GritSpec());
  const json config = Read("tokenizer_config.json");
  EXPECT_EQ(config.at("pad_token"), "<s>");
  EXPECT_EQ(config.at("model_input_names"), (json{"input_ids", "attention_mask"}));
}

TEST_F(EmbeddingFolderTest, TextsArePaddedAndCutBehindTheirTokens) {
  Write(GritSpec());
  const json config = Read("tokenizer_config.json");
  EXPECT_EQ(config.at("padding_side"), "right");
  EXPECT_EQ(config.at("truncation_side"), "right");
}

TEST_F(EmbeddingFolderTest, ASentencePieceTokenizerMarksTheBeginningBehindItsFirstMark) {
  Write(GritSpec());
  test::WriteFile(folder_.path("tokenizer_config.json"),
                  R"json({"bos_token": "<s>", "legacy": false, "tokenizer_class": "LlamaTokenizer"})json");
  WriteEmbeddingFolder(folder_.path(), test::SmallLlama(), GritSpec());
  EXPECT_EQ(Read("tokenizer_config.json").at("legacy"), true);
}

TEST_F(EmbeddingFolderTest, ASentencePieceTokenizerThatPutsItsFirstMarkItselfMarksTextAsBefore) {
  Write(GritSpec());
  std::filesystem::remove(folder_.path("tokenizer.json"));
  for (const char* legacy : {"", R"json("legacy": false, )json", R"json("legacy": true, )json"}) {
    const std::string config = std::string(R"json({"bos_token": "<s>", )json") + legacy +
                               R"json("tokenizer_class": "LlamaTokenizer"})json";
    test::WriteFile(folder_.path("tokenizer_config.json"), config);
    WriteEmbeddingFolder(folder_.path(), test::SmallLlama(), GritSpec());
    const json before = json::parse(config), after = Read("tokenizer_config.json");
    EXPECT_EQ(after.value("legacy", json()), before.value("legacy", json())) << config;
  }
}

TEST_F(EmbeddingFolderTest, TextsAreCutAtTheLongerOfTheTwoLengths) {
  Write(GritSpec());
  EXPECT_EQ(Read("sentence_bert_config.json").at("max_seq_length"), 128);
}

TEST_F(EmbeddingFolderTest, WithoutLengthsTextsAreCutAtTheModelsPositions) {
  EmbeddingSpec spec = GritSpec();
  spec.query_max_len = spec.passage_max_len = 0;
  Write(spec);
  EXPECT_EQ(Read("sentence_bert_config.json").at("max_seq_length"), 256);
}

TEST_F(EmbeddingFolderTest, TheSpecIsReadBackWithTheSizeOfAVector) {
  Write(GritSpec());
  EmbeddingSpec expected = GritSpec();
  expected.dimension = 48;
  EXPECT_EQ(ReadEmbeddingSpec(folder_.path()), expected);
}

TEST_F(EmbeddingFolderTest, WritingItTwiceGivesTheSameBytes) {
  Write(GritSpec());
  const std::string config = Text("config.json"), tokenizer = Text("tokenizer_config.json");
  WriteEmbeddingFolder(folder_.path(), test::SmallLlama(), GritSpec());
  EXPECT_EQ(Text("config.json"), config);
  EXPECT_EQ(Text("tokenizer_config.json"), tokenizer);
}

}  // namespace
}  // namespace trainwright
