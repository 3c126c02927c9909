#include "lib/embedding/embedding_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "lib/embedding/similarity.h"
#include "lib/formats/safetensors.h"
#include "lib/io/byte_sink.h"
#include "tests/support/on_ranks.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

constexpr char kText[] = R"json({
  "schema": "trainwright.embedding/1",
  "pooling": "weightedmean",
  "attention": "cccc",
  "normalize": false,
  "dimension": 64,
  "projection": 64,
  "query_max_len": 32,
  "passage_max_len": 128,
  "template": "begin {bos}\ntext [ {content} ]\n",
  "similarity": "cosine"
}
)json";

EmbeddingSpec SpecOfText() {
  EmbeddingSpec spec;
  spec.pooling = Pooling::kWeightedMean;
  spec.attention = "cccc";
  spec.mask = AttentionMask::kCausal;
  spec.normalize = false;
  spec.dimension = spec.projection = 64;
  spec.query_max_len = 32;
  spec.passage_max_len = 128;
  spec.template_text = "begin {bos}\ntext [ {content} ]\n";
  return spec;
}

/// kText with one piece replaced.
std::string With(const std::string& piece, const std::string& by) {
  std::string text = kText;
  const size_t at = text.find(piece);
  EXPECT_NE(at, std::string::npos) << piece;
  return text.replace(at, piece.size(), by);
}

TEST(EmbeddingSpecTest, IsWrittenAsTheFormatSays) {
  EXPECT_EQ(EncodeEmbeddingSpec(SpecOfText()), kText);
}

TEST(EmbeddingSpecTest, IsReadAsItWasWritten) {
  EXPECT_EQ(DecodeEmbeddingSpec(kText, "embedding.json"), SpecOfText());
}

TEST(EmbeddingSpecTest, TheSimilarityIsReadAsItWasWritten) {
  EmbeddingSpec spec = SpecOfText();
  spec.similarity = Similarity::kDot;
  EXPECT_EQ(EncodeEmbeddingSpec(spec), With("cosine", "dot"));
  EXPECT_EQ(DecodeEmbeddingSpec(With("cosine", "dot"), "embedding.json"), spec);
}

TEST(EmbeddingSpecTest, TemplatesOfRolesAreReadAsTheyWereWritten) {
  EmbeddingSpec spec = SpecOfText();
  spec.query_template = "user {content}\nassistant [ {content} ]\nno-instruction \"query:\"\n";
  EXPECT_EQ(DecodeEmbeddingSpec(EncodeEmbeddingSpec(spec), "embedding.json"), spec);
}

TEST(EmbeddingSpecTest, CodesOfAttentionMeanTheMaskOfTextsToEmbed) {
  EXPECT_EQ(FindEmbeddingMask("bbcc"), AttentionMask::kBidirectional);
  EXPECT_EQ(FindEmbeddingMask("bb"), AttentionMask::kBidirectional);
  EXPECT_EQ(FindEmbeddingMask("cccc"), AttentionMask::kCausal);
  EXPECT_EQ(FindEmbeddingMask("cc"), AttentionMask::kCausal);
  EXPECT_FALSE(FindEmbeddingMask("bccc").has_value());
}

TEST(EmbeddingSpecTest, WhatIsOtherwiseIsTold) {
  EXPECT_EQ(DescribeOtherEmbedding(SpecOfText(), SpecOfText()), "");
  EmbeddingSpec other = SpecOfText();
  other.query_max_len = 64;
  other.attention = "cc";
  EXPECT_EQ(DescribeOtherEmbedding(SpecOfText(), other), "") << "the same vectors";
  other.pooling = Pooling::kCls;
  other.projection = 0;
  other.attention = "bbcc";
  other.mask = AttentionMask::kBidirectional;
  other.normalize = true;
  EXPECT_EQ(DescribeOtherEmbedding(SpecOfText(), other),
            "pooling cls instead of weightedmean, attn bbcc instead of cccc, projection 0 instead of 64, "
            "normalize on instead of off");
}

TEST(EmbeddingSpecTest, WhatIsWrongIsNamed) {
  const auto message = [](const std::string& text) {
    return test::MessageOf([&] { DecodeEmbeddingSpec(text, "embedding.json"); });
  };
  EXPECT_NE(message(With("weightedmean", "max")).find("pooling"), std::string::npos);
  EXPECT_NE(message(With("cccc", "cbcb")).find("attention"), std::string::npos);
  EXPECT_NE(message(With("embedding/1", "embedding/2")).find("version"), std::string::npos);
  EXPECT_NE(message(With("32", "-1")).find("query_max_len"), std::string::npos);
  EXPECT_NE(message(With("cosine", "manhattan")).find("similarity"), std::string::npos);
  EXPECT_NE(message(With("\"template\"", "\"other\"")).find("missing"), std::string::npos);
  EXPECT_NE(message("[]").find("embedding.json"), std::string::npos);
  EXPECT_NE(message("{").find("embedding.json"), std::string::npos);
}

constexpr char kTurns[] = "user {content}\nassistant [ {content} ]\n";
constexpr char kKept[] = "instruction {content}\nkeep instruction\n";
/// Of a folder without marks and prompts.
std::string PlainTemplate() {
  return std::string(kTurns) + kKept + "text [ {content} ]\n";
}

/// The same of a mean over the prompt, too.
std::string PoolingTemplate() {
  return std::string(kTurns) + "instruction [ {content} ]\nkeep instruction\ntext [ {content} ]\n";
}

/// A folder as sentence-transformers writes it.
class EmbeddingSpecFolderTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder_.path(name)).parent_path());
    test::WriteFile(folder_.path(name), text);
  }
  void WriteModules(bool with_dense) {
    std::string modules = R"json([
      {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
      {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},)json";
    if (with_dense) {
      modules +=
          R"json({"idx": 2, "name": "2", "path": "2_Dense",
              "type": "sentence_transformers.models.Dense"},)json";
      Write("2_Dense/config.json", R"json({"in_features": 48, "out_features": 16, "bias": true,
          "activation_function": "torch.nn.modules.linear.Identity"})json");
      WriteMatrix(16);
    }
    modules += R"json({"idx": 3, "name": "3", "path": "3_Normalize",
      "type": "sentence_transformers.models.Normalize"}])json";
    Write("modules.json", modules);
    Write("config.json", R"json({"model_type": "llama"})json");
    Write("sentence_bert_config.json", R"json({"max_seq_length": 256, "do_lower_case": false})json");
    WritePooling("pooling_mode_lasttoken");
  }
  void WriteMatrix(int64_t rows) {
    const std::vector<uint8_t> zeros(static_cast<size_t>(rows) * 48 * sizeof(float));
    AtomicFileSink sink(folder_.path("2_Dense/model.safetensors"));
    WriteSafetensors(&sink, {{"linear.weight", "F32", {rows, 48}, zeros}}, {});
    sink.Commit();
  }
  void WritePooling(const std::string& mode) {
    Write("1_Pooling/config.json", R"json({"word_embedding_dimension": 48, "include_prompt": true,
        "pooling_mode_max_tokens": false, ")json" +
                                       mode + R"json(": true})json");
  }
  std::optional<EmbeddingSpec> Read() const { return ReadEmbeddingSpec(folder_.path()); }

  test::TemporaryFolder folder_;
};

TEST_F(EmbeddingSpecFolderTest, AFolderWithoutEitherSaysNothing) {
  EXPECT_FALSE(Read().has_value());
}

TEST_F(EmbeddingSpecFolderTest, ModulesOfSentenceTransformersAreRead) {
  WriteModules(/*with_dense=*/true);
  EmbeddingSpec expected;
  expected.pooling = Pooling::kLastToken;
  expected.attention = "cc";
  expected.mask = AttentionMask::kCausal;
  expected.projection = 16;
  expected.query_max_len = expected.passage_max_len = 256;
  expected.template_text = PlainTemplate();
  EXPECT_EQ(Read(), expected);
}

TEST_F(EmbeddingSpecFolderTest, APoolingIsReadByTheNameThatNewerFilesHave) {
  WriteModules(/*with_dense=*/false);
  const auto name_mode = [&](const std::string& mode) {
    Write("1_Pooling/config.json", R"json({"embedding_dimension": 48, "include_prompt": false,
        "pooling_mode": )json" + mode + "}");
  };
  name_mode("\"cls\"");
  EXPECT_EQ(Read()->pooling, Pooling::kCls);
  name_mode("\"mean\"");
  EXPECT_EQ(Read()->pooling, Pooling::kMean);
}

TEST_F(EmbeddingSpecFolderTest, AListOfPoolingsIsReadWhereItNamesOne) {
  WriteModules(/*with_dense=*/false);
  const auto name_modes = [&](const std::string& modes) {
    Write("1_Pooling/config.json", R"json({"embedding_dimension": 48, "pooling_mode": )json" + modes + "}");
  };
  name_modes("[\"lasttoken\"]");
  EXPECT_EQ(Read()->pooling, Pooling::kLastToken);
  for (const char* modes : {R"(["mean", "cls"])", R"(["mean", "max"])", "[]", "[1]", "3"}) {
    name_modes(modes);
    EXPECT_THAT(test::MessageOf([&] { Read(); }),
                testing::HasSubstr("names no pooling that is known here, or several"))
        << modes;
    EXPECT_EQ(test::CodeOf([&] { Read(); }), ErrorCode::kBadInput) << modes;
  }
}

TEST_F(EmbeddingSpecFolderTest, TheLongestTextIsTheOneThatTheLibraryTakes) {
  // What sentence-transformers 5.7 has as max_seq_length of such folders; 0 stands for the positions.
  const struct {
    const char *library, *tokenizer, *model;
    int64_t expected;
  } kFolders[] = {
      {"{}", R"({"model_max_length": 5})", R"({"max_position_embeddings": 100})", 5},
      {"{}", R"({"model_max_length": 5})", R"({"n_positions": 100})", 5},
      {"{}", R"({"max_len": 7})", R"({"max_position_embeddings": 100})", 7},
      {R"({"max_seq_length": null})", R"({"model_max_length": 5})", "{}", 5},
      {R"({"max_seq_length": 9})", R"({"model_max_length": 5})", "{}", 9},
      {R"({"max_seq_length": 9, "tokenizer_args": {"model_max_length": 3}})", "{}", "{}", 3},
      {R"({"max_seq_length": 9, "processor_kwargs": {"model_max_length": 3}})", "{}", "{}", 3},
      {R"({"tokenizer_args": {}, "processor_kwargs": {"model_max_length": 3}})", R"({"model_max_length": 5})",
       "{}", 5},
      {R"({"tokenizer_args": {"padding_side": "left"}})", R"({"model_max_length": 5})", "{}", 5},
      {"{}", R"({"model_max_length": 500})", R"({"max_position_embeddings": 100})", 0},
      {"{}", R"({"model_max_length": 500})", R"({"n_positions": 100})", 0},
      {"{}", R"({"model_max_length": 1000000000000000019884624838656})", "{}", 0},
      {"{}", R"({"model_max_length": null})", "{}", 0},
      {"{}", "{}", R"({"max_position_embeddings": 100})", 0},
  };
  WriteModules(/*with_dense=*/false);
  for (const auto& folder : kFolders) {
    Write("sentence_bert_config.json", folder.library);
    Write("tokenizer_config.json", folder.tokenizer);
    Write("config.json", folder.model);
    ASSERT_TRUE(Read().has_value());
    EXPECT_EQ(Read()->query_max_len, folder.expected) << folder.library << folder.tokenizer << folder.model;
    EXPECT_EQ(Read()->passage_max_len, folder.expected) << folder.library << folder.tokenizer;
  }
}

TEST_F(EmbeddingSpecFolderTest, ABodyOfItsOwnIsBidirectional) {
  WriteModules(/*with_dense=*/false);
  Write("config.json", R"json({"auto_map": {"AutoModel": "modeling_other.OtherModel"}})json");
  ASSERT_TRUE(Read().has_value());
  EXPECT_EQ(Read()->mask, AttentionMask::kBidirectional);
  EXPECT_EQ(Read()->projection, 0);
}

TEST_F(EmbeddingSpecFolderTest, ABodyOfTheLanguageModelsOwnFileIsCausal) {
  WriteModules(/*with_dense=*/false);
  Write("config.json", R"json({"auto_map": {"AutoModel": "modeling_other.OtherModel",
      "AutoModelForCausalLM": "modeling_other.OtherForCausalLM"}})json");
  ASSERT_TRUE(Read().has_value());
  EXPECT_EQ(Read()->mask, AttentionMask::kCausal);
}

TEST_F(EmbeddingSpecFolderTest, AModelThatConfigJsonCallsNotCausalIsBidirectional) {
  WriteModules(/*with_dense=*/false);
  Write("config.json", R"json({"model_type": "qwen2", "is_causal": false})json");
  ASSERT_TRUE(Read().has_value());
  EXPECT_EQ(Read()->mask, AttentionMask::kBidirectional);
  EXPECT_EQ(Read()->attention, "bb");
  Write("config.json", R"json({"model_type": "qwen2", "is_causal": true})json");
  EXPECT_EQ(Read()->mask, AttentionMask::kCausal);
}

// sentence-transformers writes no config.json beside an adapter, and opens its base.
TEST_F(EmbeddingSpecFolderTest, AnAdaptersAttentionAndPositionsAreThoseOfItsBase) {
  WriteModules(/*with_dense=*/false);
  std::filesystem::remove(folder_.path("config.json"));
  Write("sentence_bert_config.json", "{}");
  Write("tokenizer_config.json", R"json({"model_max_length": 131072})json");
  Write("base/config.json",
        R"json({"model_type": "qwen2", "is_causal": false, "max_position_embeddings": 32768})json");
  const std::optional<EmbeddingSpec> spec = ReadEmbeddingSpec(folder_.path(), folder_.path("base"));
  ASSERT_TRUE(spec.has_value());
  EXPECT_EQ(spec->attention, "bb");
  EXPECT_EQ(spec->mask, AttentionMask::kBidirectional);
  EXPECT_EQ(spec->query_max_len, 0);  // as many as the positions
}

TEST_F(EmbeddingSpecFolderTest, EmbeddingJsonSaysMoreAndIsPreferred) {
  WriteModules(/*with_dense=*/true);
  Write("embedding.json", kText);
  EXPECT_EQ(Read(), SpecOfText());
}

TEST_F(EmbeddingSpecFolderTest, AnUnknownPoolingIsRefused) {
  WriteModules(/*with_dense=*/false);
  WritePooling("pooling_mode_mean_sqrt_len_tokens");
  EXPECT_EQ(test::CodeOf([&] { Read(); }), ErrorCode::kBadInput);
}

TEST_F(EmbeddingSpecFolderTest, APoolingThatIsNamedIsRead) {
  WriteModules(/*with_dense=*/false);
  Write("1_Pooling/config.json", R"json({"embedding_dimension": 48, "pooling_mode": "weightedmean"})json");
  EXPECT_EQ(Read()->pooling, Pooling::kWeightedMean);
  Write("1_Pooling/config.json", R"json({"embedding_dimension": 48, "pooling_mode": "max"})json");
  EXPECT_EQ(test::CodeOf([&] { Read(); }), ErrorCode::kBadInput);
}

TEST_F(EmbeddingSpecFolderTest, ALinearLayerWhoseWeightsAreNotReadIsRefused) {
  WriteModules(/*with_dense=*/false);
  Write("modules.json", R"json([{"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
      {"path": "3_Dense", "type": "sentence_transformers.models.Dense"}])json");
  EXPECT_EQ(test::CodeOf([&] { Read(); }), ErrorCode::kBadInput);
}

TEST_F(EmbeddingSpecFolderTest, ALinearLayerIsAsWideAsItsMatrix) {
  WriteModules(/*with_dense=*/true);
  WriteMatrix(8);
  EXPECT_THAT(test::MessageOf([&] { Read(); }),
              testing::HasSubstr("makes 16 elements, and its matrix makes 8"));
  std::filesystem::remove(folder_.path("2_Dense/model.safetensors"));
  EXPECT_THAT(test::MessageOf([&] { Read(); }), testing::HasSubstr("has no model.safetensors beside it"));
}

TEST_F(EmbeddingSpecFolderTest, ALinearLayerBehindNormalizeIsRefused) {
  WriteModules(/*with_dense=*/true);
  Write("modules.json", R"json([{"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
      {"path": "3_Normalize", "type": "sentence_transformers.models.Normalize"},
      {"path": "2_Dense", "type": "sentence_transformers.models.Dense"}])json");
  EXPECT_THAT(test::MessageOf([&] { Read(); }), testing::HasSubstr("is a linear layer after Normalize"));
}

TEST_F(EmbeddingSpecFolderTest, AModuleOfAnotherKindIsRefusedByName) {
  WriteModules(/*with_dense=*/false);
  Write("modules.json", R"json([{"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
      {"path": "2_LayerNorm", "type": "sentence_transformers.models.LayerNorm"}])json");
  EXPECT_THAT(test::MessageOf([&] { Read(); }),
              testing::HasSubstr("unknown here: sentence_transformers.models.LayerNorm"));
}

constexpr char kMarks[] = R"json({"post_processor": {"type": "Sequence", "processors": [{"type": "ByteLevel"},
    {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
     {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "<end>", "type_id": 0}}]}]}})json";

TEST_F(EmbeddingSpecFolderTest, MarksThatTheTokenizerPutsAroundTextsArePooledAsTheLibraryDoes) {
  WriteModules(/*with_dense=*/false);
  Write("tokenizer.json", kMarks);
  Write("tokenizer_config.json", R"json({"bos_token": {"content": "<s>"}, "eos_token": "</s>"})json");
  EXPECT_EQ(Read()->template_text,
            kTurns + std::string("begin {bos}\n") + kKept + "text [ {content} \"<end>\" ]\n");
  WritePooling("pooling_mode_mean_tokens");
  EXPECT_EQ(Read()->template_text, kTurns + std::string("text [ {bos} {content} \"<end>\" ]\n"));
}

TEST_F(EmbeddingSpecFolderTest, WithoutATokenizerJsonItsConfigSaysWhichMarksItPuts) {
  WriteModules(/*with_dense=*/false);
  WritePooling("pooling_mode_mean_tokens");
  Write("tokenizer_config.json", R"json({"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>",
      "eos_token": "</s>", "add_eos_token": true})json");
  EXPECT_EQ(Read()->template_text, kTurns + std::string("text [ {bos} {content} {eos} ]\n"));
  Write("tokenizer_config.json", R"json({"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>",
      "add_bos_token": false})json");
  EXPECT_EQ(Read()->template_text, PoolingTemplate());
  Write("tokenizer_config.json", R"json({"tokenizer_class": "CodeLlamaTokenizer", "bos_token": "<s>"})json");
  EXPECT_EQ(Read()->template_text, kTurns + std::string("text [ {bos} {content} ]\n"));
}

TEST_F(EmbeddingSpecFolderTest, AnInstructionIsOfTheMeanWhereTheFolderPoolsPrompts) {
  WriteModules(/*with_dense=*/false);
  for (const std::string pooling : {"mean", "weightedmean"}) {
    const auto template_with = [&](const std::string& include_prompt) {
      Write("1_Pooling/config.json", R"json({"pooling_mode": ")json" + pooling + "\"" + include_prompt + "}");
      return Read()->template_text;
    };
    EXPECT_EQ(template_with(""), PoolingTemplate()) << pooling;
    EXPECT_EQ(template_with(R"(, "include_prompt": true)"), PoolingTemplate()) << pooling;
    EXPECT_EQ(template_with(R"(, "include_prompt": false)"), PlainTemplate()) << pooling;
  }
}

TEST_F(EmbeddingSpecFolderTest, TheDefaultPromptStandsBeforeATextThatComesWithNone) {
  WriteModules(/*with_dense=*/false);
  const auto set_default = [&](const std::string& name) {
    Write("config_sentence_transformers.json",
          R"json({"prompts": {"passage": "passage: ", "other": "x"}, "default_prompt_name": )json" + name +
              "}");
  };
  set_default("null");
  EXPECT_EQ(Read()->template_text, PlainTemplate());
  set_default("\"passage\"");
  EXPECT_EQ(Read()->template_text,
            kTurns + std::string("no-instruction \"passage:\"\n") + kKept + "text [ { content} ]\n");
  WritePooling("pooling_mode_mean_tokens");
  EXPECT_EQ(Read()->template_text, kTurns + std::string("text [ \"passage:\" { content} ]\n"));
  set_default("\"query\"");
  EXPECT_THAT(test::MessageOf([&] { Read(); }), testing::HasSubstr("default_prompt_name"));
}

TEST_F(EmbeddingSpecFolderTest, PromptsNamedForRolesStandBeforeTheirTextsThatComeWithNone) {
  WriteModules(/*with_dense=*/false);
  Write("config_sentence_transformers.json", R"json({"prompts": {"query": "Find:\nQuery:",
      "passage": "passage: ", "corpus": "c"}, "default_prompt_name": null})json");
  EXPECT_EQ(Read()->template_text, PlainTemplate());
  EXPECT_EQ(Read()->query_template,
            kTurns + std::string("no-instruction \"Find:\\nQuery:\"\n") + kKept + "text [ {content} ]\n");
  EXPECT_EQ(Read()->passage_template,
            kTurns + std::string("no-instruction \"passage:\"\n") + kKept + "text [ { content} ]\n");
  WritePooling("pooling_mode_mean_tokens");
  EXPECT_EQ(Read()->passage_template, kTurns + std::string("text [ \"passage:\" { content} ]\n"));
}

// As sentence-transformers writes one of each, be it empty.
TEST_F(EmbeddingSpecFolderTest, AnEmptyPromptOfARoleIsNone) {
  WriteModules(/*with_dense=*/false);
  Write("config_sentence_transformers.json", R"json({"prompts": {"query": "", "document": "x:",
      "passage": "p:"}, "default_prompt_name": "document"})json");
  EXPECT_EQ(Read()->query_template, PlainTemplate());
  EXPECT_FALSE(Read()->passage_template.has_value());
}

TEST_F(EmbeddingSpecFolderTest, APromptOfARoleThatIsTheDefaultIsNamedOnce) {
  WriteModules(/*with_dense=*/false);
  Write("config_sentence_transformers.json",
        R"json({"prompts": {"query": "x:", "document": "x:"}, "default_prompt_name": "document"})json");
  EXPECT_FALSE(Read()->query_template.has_value());
  EXPECT_FALSE(Read()->passage_template.has_value());
}

TEST_F(EmbeddingSpecFolderTest, APromptOfARoleThatAWeightedMeanLeavesOutIsWarnedOf) {
  WriteModules(/*with_dense=*/false);
  Write("config_sentence_transformers.json", R"json({"prompts": {"query": "query:"}})json");
  Write("1_Pooling/config.json", R"json({"include_prompt": false, "pooling_mode": "weightedmean"})json");
  testing::internal::CaptureStderr();
  EXPECT_FALSE(Read()->query_template.has_value());
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("its prompt of queries is left out"));
}

TEST_F(EmbeddingSpecFolderTest, OfSeveralRanksOneWarnsOfAPromptThatIsLeftOut) {
  WriteModules(/*with_dense=*/false);
  Write("config_sentence_transformers.json", R"json({"prompts": {"query": "query:"}})json");
  Write("1_Pooling/config.json", R"json({"include_prompt": false, "pooling_mode": "weightedmean"})json");
  testing::internal::CaptureStderr();
  test::OnRanks(3, [&](World* world) {
    return ReadEmbeddingSpec(folder_.path(), folder_.path(), *world)->query_template;
  });
  const std::string told = testing::internal::GetCapturedStderr(), warning = "its prompt of queries";
  const size_t first = told.find(warning);
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(told.find(warning, first + 1), std::string::npos) << told;
}

TEST_F(EmbeddingSpecFolderTest, VectorsThatKeepTheirLengthsAreComparedAsTheLibrarysFileSays) {
  WriteModules(/*with_dense=*/false);
  const auto similarity_of = [&](const std::string& name) {
    Write("config_sentence_transformers.json", R"json({"similarity_fn_name": )json" + name + "}");
    return Read()->similarity;
  };
  EXPECT_EQ(similarity_of("\"dot\""), Similarity::kCosine) << "of length 1 both are the same";
  Write("modules.json", R"json([
      {"path": "", "type": "sentence_transformers.models.Transformer"},
      {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])json");
  EXPECT_EQ(similarity_of("\"dot\""), Similarity::kDot);
  EXPECT_EQ(similarity_of("null"), Similarity::kCosine);
  testing::internal::CaptureStderr();
  EXPECT_EQ(similarity_of("\"euclidean\""), Similarity::kCosine);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("config_sentence_transformers.json: compares vectors by \"euclidean\""));
}

TEST_F(EmbeddingSpecFolderTest, AWeightedMeanThatLeavesADefaultPromptOutIsRefused) {
  WriteModules(/*with_dense=*/false);
  Write("config_sentence_transformers.json",
        R"json({"prompts": {"passage": "passage:"}, "default_prompt_name": "passage"})json");
  Write("1_Pooling/config.json", R"json({"include_prompt": false, "pooling_mode": "weightedmean"})json");
  EXPECT_THAT(test::MessageOf([&] { Read(); }), testing::HasSubstr("does not pool"));
}

TEST_F(EmbeddingSpecFolderTest, LowerCasingIsRefused) {
  WriteModules(/*with_dense=*/false);
  Write("sentence_bert_config.json", R"json({"max_seq_length": 256, "do_lower_case": true})json");
  EXPECT_THAT(test::MessageOf([&] { Read(); }), testing::HasSubstr("do_lower_case"));
}

TEST_F(EmbeddingSpecFolderTest, TheUsualActivationThatAFileLeavesOutIsRefusedByName) {
  WriteModules(/*with_dense=*/true);
  Write("2_Dense/config.json", R"json({"in_features": 48, "out_features": 16})json");
  EXPECT_THAT(test::MessageOf([&] { Read(); }), testing::HasSubstr("activation.Tanh"));
}

TEST_F(EmbeddingSpecFolderTest, AnActivationBehindTheLinearLayerIsRefused) {
  WriteModules(/*with_dense=*/true);
  Write("2_Dense/config.json", R"json({"in_features": 48, "out_features": 16, "bias": true,
      "activation_function": "torch.nn.modules.activation.Tanh"})json");
  EXPECT_EQ(test::CodeOf([&] { Read(); }), ErrorCode::kBadInput);
}

}  // namespace
}  // namespace trainwright
