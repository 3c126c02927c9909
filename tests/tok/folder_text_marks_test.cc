// Which tokens the tokenizer of a folder puts around texts, as transformers 4.57 and 5.24 do.
#include "lib/tok/folder_text_marks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/support.h"

namespace trainwright {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class FolderTextMarksTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) { test::WriteFile(folder_.path(name), text); }
  test::TemporaryFolder folder_;
};

TEST_F(FolderTextMarksTest, ThePostProcessorsOfRobertaAndBertPutTheirClsAndSep) {
  for (const char* type : {"RobertaProcessing", "BertProcessing"}) {
    Write("tokenizer.json", std::string(R"({"post_processor": {"type": ")") + type +
                                R"(", "sep": ["</s>", 2], "cls": ["<s>", 0]}})");
    const TextMarks marks = ReadTextMarks(folder_.path());
    EXPECT_THAT(marks.begin, ElementsAre("<s>")) << type;
    EXPECT_THAT(marks.end, ElementsAre("</s>")) << type;
  }
}

TEST_F(FolderTextMarksTest, InTransformers4LlamasKindGoesByTheConfigurationBesideATokenizerJson) {
  Write("tokenizer.json", R"({"post_processor": {"type": "ByteLevel"}})");
  const auto marks = [&](const std::string& config) {
    Write("tokenizer_config.json", config);
    return ReadTextMarksOfTransformers4(folder_.path());
  };
  for (const char* name :
       {"LlamaTokenizer", "LlamaTokenizerFast", "GemmaTokenizerFast", "CohereTokenizerFast"}) {
    const std::string config =
        std::string(R"({"tokenizer_class": ")") + name + R"(", "bos_token": "<s>", "eos_token": "</s>")";
    EXPECT_THAT(marks(config + "}").begin, ElementsAre("<s>")) << name;
    EXPECT_THAT(marks(config + R"(, "add_bos_token": false})").begin, IsEmpty()) << name;
    EXPECT_THAT(marks(config + R"(, "add_eos_token": true})").end, ElementsAre("</s>")) << name;
  }
}

TEST_F(FolderTextMarksTest, OtherClassesAndTransformers5GoByThePostProcessorOfATokenizerJson) {
  Write("tokenizer.json", R"({"post_processor": {"type": "ByteLevel"}})");
  Write("tokenizer_config.json",
        R"({"tokenizer_class": "LlamaTokenizerFast", "add_bos_token": true, "bos_token": "<s>"})");
  EXPECT_THAT(ReadTextMarks(folder_.path()).begin, IsEmpty());
  Write("tokenizer_config.json",
        R"({"tokenizer_class": "PreTrainedTokenizerFast", "add_bos_token": true, "bos_token": "<s>"})");
  EXPECT_THAT(ReadTextMarksOfTransformers4(folder_.path()).begin, IsEmpty());
}

}  // namespace
}  // namespace trainwright
