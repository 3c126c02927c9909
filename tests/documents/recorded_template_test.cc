// The chat template of training data by its provenance, and of models' folders.
#include "lib/documents/recorded_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <time.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/checksum.h"
#include "lib/documents/folder_template.h"
#include "lib/formats/provenance.h"
#include "lib/tok/tokenizer.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using Tokens = std::vector<std::pair<std::string, std::string>>;

ChatTemplate JinjaTemplate(const std::string& text, Tokens tokens = {}) {
  ChatTemplate chat_template;
  chat_template.text = text;
  chat_template.is_jinja = true;
  chat_template.named_tokens = std::move(tokens);
  return chat_template;
}

/// As pretokenize writes it.
std::string Pretokenized(const ChatTemplate& chat_template, const std::string& records = "sft") {
  nlohmann::json options = {{"records", records}};
  options.update(RecordOfTemplate(chat_template));
  return MakeProvenance("pretokenize", options, {});
}

/// As pack writes it.
nlohmann::ordered_json Packed(const std::vector<std::string>& inputs) {
  std::vector<ProvenanceInput> packed;
  for (const std::string& input : inputs) packed.push_back({.hash = "", .provenance_json = input});
  return nlohmann::ordered_json::parse(MakeProvenance("pack", {}, packed));
}

std::optional<ChatTemplate> RecordedIn(const std::vector<std::string>& inputs) {
  return RecordedTemplate(Packed(inputs));
}

TEST(RecordedTemplateTest, AJinjaTemplateIsFoundThroughPackWithItsTokens) {
  const Tokens tokens = {{"bos_token", "<s>"}, {"eos_token", "é\n"}};
  const std::string data = Pretokenized(JinjaTemplate("{{ bos_token }}", tokens));
  const auto found = RecordedIn({data, MakeProvenance("pretokenize", {{"bos", true}}, {}), data});
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->is_jinja);
  EXPECT_EQ(found->text, "{{ bos_token }}");
  EXPECT_EQ(found->named_tokens, tokens);
}

TEST(RecordedTemplateTest, ThatTextIsMarkedBehindSpecialTokensIsKept) {
  ChatTemplate marked = JinjaTemplate("a");
  EXPECT_FALSE(RecordOfTemplate(marked).contains("template_marks_behind_specials"));
  EXPECT_EQ(RecordedIn({Pretokenized(marked)})->start_marks, StartMarks::kBehindBos);
  for (const StartMarks marks : {StartMarks::kBehindSpecials, StartMarks::kFirst, StartMarks::kNone}) {
    marked.start_marks = marks;
    EXPECT_EQ(RecordedIn({Pretokenized(marked)})->start_marks, marks);
  }
}

TEST(RecordedTemplateTest, TemplatesOfLinesAreParsedAndBuiltInOnesAreNamed) {
  for (const std::string& name : BuiltInTemplateNames()) {
    const ChatTemplate built_in = LoadChatTemplate(name);
    const auto found = RecordedIn({Pretokenized(built_in)});
    ASSERT_TRUE(found) << name;
    EXPECT_EQ(found->text, built_in.text);
    EXPECT_EQ(found->marks_are_text, built_in.marks_are_text) << name;
  }
  const std::string lines = "user \"u:\" {content}\nassistant \"a:\" [ {content} ]\n";
  const auto found = RecordedIn({Pretokenized(ParseChatTemplate(lines, "mine"))});
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->is_jinja);
  EXPECT_EQ(found->part(TemplatePart::kUser)[0].literal, "u:");
}

TEST(RecordedTemplateTest, SeveralTemplatesOrNoConversationsRecordNone) {
  const std::string one = Pretokenized(JinjaTemplate("a")), other = Pretokenized(JinjaTemplate("b"));
  EXPECT_FALSE(RecordedIn({one, other}));
  EXPECT_FALSE(RecordedIn({one, Pretokenized(JinjaTemplate("a", {{"eos_token", "x"}}))}));
  EXPECT_FALSE(RecordedIn({Pretokenized(LoadChatTemplate("grit"), "contrastive")}));
  EXPECT_FALSE(RecordedIn({}));
  for (const char* junk : {"null", "[]", R"({"inputs": 3})", R"({"options": []})",
                           R"({"options": {"records": "sft", "template": 1}})",
                           R"({"options": {"records": "sft"}, "inputs": [null, {"provenance": 1}]})"}) {
    EXPECT_FALSE(RecordedTemplate(nlohmann::ordered_json::parse(junk))) << junk;
  }
}

TEST(RecordedTemplateTest, SeveralTemplatesAreKnownFromNoConversations) {
  const std::string one = Pretokenized(JinjaTemplate("a")), other = Pretokenized(LoadChatTemplate("alpaca"));
  EXPECT_TRUE(HasSeveralTemplates(Packed({one, other})));
  EXPECT_TRUE(HasSeveralTemplates(nlohmann::ordered_json::array({Packed({one}), Packed({other})})));
  EXPECT_FALSE(HasSeveralTemplates(Packed({one, one, MakeProvenance("pretokenize", {{"bos", true}}, {})})));
  EXPECT_FALSE(HasSeveralTemplates(Packed({Pretokenized(LoadChatTemplate("grit"), "contrastive")})));
  EXPECT_FALSE(HasSeveralTemplates(nullptr));
}

TEST(RecordedTemplateTest, ConversationsThatNoOneTemplateInJinjaWroteAreKnown) {
  const std::string jinja = Pretokenized(JinjaTemplate("a")),
                    lines = Pretokenized(LoadChatTemplate("alpaca"));
  EXPECT_TRUE(LacksJinjaTemplate(Packed({lines})));
  EXPECT_TRUE(LacksJinjaTemplate(Packed({jinja, lines})));
  EXPECT_TRUE(LacksJinjaTemplate(Packed({jinja, Pretokenized(JinjaTemplate("b"))})));
  EXPECT_FALSE(LacksJinjaTemplate(Packed({jinja})));
  EXPECT_FALSE(LacksJinjaTemplate(Packed({Pretokenized(LoadChatTemplate("grit"), "contrastive")})));
  EXPECT_FALSE(LacksJinjaTemplate(nullptr));
}

TEST(RecordedTemplateTest, TheTimeIsRecordedWhereItShapesTheText) {
  ASSERT_EQ(setenv("SOURCE_DATE_EPOCH", "86400", 1), 0);
  ChatTemplate dated = JinjaTemplate("{{ strftime_now('%d') }}");
  dated.now = TemplateTime();
  EXPECT_EQ(RecordOfTemplate(dated).at("template_time_s"), 86400);
  EXPECT_FALSE(RecordOfTemplate(JinjaTemplate("{{ 1 }}")).contains("template_time_s"));
  ASSERT_EQ(setenv("SOURCE_DATE_EPOCH", "soon", 1), 0);
  EXPECT_EQ(test::CodeOf([] { TemplateTime(); }), ErrorCode::kUsage);
  ASSERT_EQ(unsetenv("SOURCE_DATE_EPOCH"), 0);
}

TEST(RecordedTemplateTest, TheTimeIsFoundWhereItIsRecorded) {
  ChatTemplate dated = JinjaTemplate("{{ strftime_now('%d') }}");
  dated.now = std::chrono::sys_seconds(std::chrono::seconds(86400));
  const auto time_in = [](const ChatTemplate& chat_template) {
    return RecordedTemplateTime(nlohmann::ordered_json::parse(Pretokenized(chat_template)));
  };
  EXPECT_EQ(time_in(dated), dated.now);
  EXPECT_EQ(time_in(JinjaTemplate("{{ 1 }}")), std::nullopt);
}

/// A time zone 14 hours ahead of UTC.
class FarEast {
 public:
  FarEast() {
    setenv("TZ", "FAR-14", 1);
    tzset();
  }
  ~FarEast() {
    unsetenv("TZ");
    tzset();
  }
};

TEST(TemplateTimeTest, IsTheLocalTimeAsInTransformers) {
  using namespace std::chrono_literals;
  const FarEast zone;
  ASSERT_EQ(unsetenv("SOURCE_DATE_EPOCH"), 0);
  const auto ahead = TemplateTime() - std::chrono::system_clock::now();
  EXPECT_GT(ahead, 14h - 1min);
  EXPECT_LT(ahead, 14h + 1min);
}

TEST(TemplateTimeTest, OfAnEpochIsInUtc) {
  const FarEast zone;
  ASSERT_EQ(setenv("SOURCE_DATE_EPOCH", "86400", 1), 0);
  EXPECT_EQ(TemplateTime().time_since_epoch(), std::chrono::seconds(86400));
  ASSERT_EQ(unsetenv("SOURCE_DATE_EPOCH"), 0);
}

class FolderTemplateTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) { std::ofstream(folder_.path(name)) << text; }
  std::string Path() const { return folder_.path(""); }
  test::TemporaryFolder folder_;
};

TEST_F(FolderTemplateTest, TokensThatTheFolderNamesOtherwiseAreSetInTheText) {
  Write("tokenizer_config.json",
        R"({"bos_token": "<s>", "eos_token": {"content": "</s>"}, "pad_token": null})");
  const std::string text = "\n  {{ bos_token }}{{ eos_token }}{{ unk_token }}";
  WriteFolderTemplate(
      Path(), JinjaTemplate(text, {{"bos_token", "<s>"}, {"eos_token", "a\"b\\"}, {"sep_token", "x"}}),
      Path());
  EXPECT_EQ(FindFolderTemplate(Path())->text, "{% set eos_token = \"a\\\"b\\\\\" %}\n" + text);
  WriteFolderTemplate(Path(), JinjaTemplate(text, {{"bos_token", "<s>"}, {"eos_token", "</s>"}}), Path());
  EXPECT_EQ(FindFolderTemplate(Path())->text, text);
}

TEST_F(FolderTemplateTest, IsTakenAwayFromBothFilesThatMayHaveIt) {
  Write("chat_template.jinja", "a");
  Write("tokenizer_config.json", R"({"eos_token": "</s>", "chat_template": "b"})");
  RemoveFolderTemplate(Path());
  EXPECT_FALSE(FindFolderTemplate(Path()).has_value());
  EXPECT_EQ(test::ReadFile(folder_.path("tokenizer_config.json")), "{\n  \"eos_token\": \"</s>\"\n}\n");
  RemoveFolderTemplate(Path());  // there is none
}

TEST_F(FolderTemplateTest, AFileThatNamesNoTokensKeepsNoTemplateFromBeingWritten) {
  Write("tokenizer_config.json", "[broken");
  WriteFolderTemplate(Path(), JinjaTemplate("{{ eos_token }}", {{"eos_token", "x"}}), Path());
  EXPECT_EQ(test::ReadFile(folder_.path("chat_template.jinja")),
            "{% set eos_token = \"x\" %}\n{{ eos_token }}");
}

TEST_F(FolderTemplateTest, ACheckpointMarksTextBehindSpecialTokensAsItsTrainingDataDid) {
  Write("tokenizer.model", "");
  Write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer", "legacy": false})");
  ChatTemplate chat_template = JinjaTemplate("a");
  const auto marks_of_copy = [&] {
    WriteFolderTemplate(Path(), chat_template, Path());
    return FindFolderTemplate(Path())->start_marks;
  };
  EXPECT_EQ(marks_of_copy(), StartMarks::kBehindBos);
  for (const StartMarks marks : {StartMarks::kFirst, StartMarks::kNone, StartMarks::kBehindSpecials}) {
    chat_template.start_marks = marks;
    EXPECT_EQ(marks_of_copy(), marks);
  }
  EXPECT_EQ(LoadChatTemplate(folder_.path("chat_template.jinja")).start_marks, StartMarks::kBehindSpecials);
  // Also in the copy of a folder that does not say whether its tokenizer is legacy.
  Write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer"})");
  EXPECT_EQ(FindFolderTemplate(Path())->start_marks, StartMarks::kBehindBos);
  EXPECT_EQ(marks_of_copy(), StartMarks::kBehindSpecials);
}

TEST_F(FolderTemplateTest, ATemplateWithoutMarksLeavesTheTokenizerOfACheckpointAsItIs) {
  const std::string model = test::Fixture("../examples/data/mistral-v1.model");
  std::filesystem::copy(model, folder_.path("tokenizer.model"));
  Write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer", "legacy": false})");
  const Sha256Digest before = LoadTokenizer(Path())->identity().sha256;
  ChatTemplate chat_template = JinjaTemplate("a");
  chat_template.start_marks = StartMarks::kNone;
  WriteFolderTemplate(Path(), chat_template, Path());
  ASSERT_EQ(FindFolderTemplate(Path())->start_marks, StartMarks::kNone);
  EXPECT_EQ(LoadTokenizer(Path())->identity().sha256, before);
}

// So it is of a checkpoint whose tokenizer.model puts no mark, and of a model merged into such a folder.
TEST_F(FolderTemplateTest, ATokenizerThatPutsNoMarkStaysAsItIsWhereverATemplateMarksText) {
  const std::string model = test::Fixture("../examples/data/mistral-v1.model");
  std::filesystem::copy(model, folder_.path("tokenizer.model"));
  Write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer", "add_prefix_space": false})");
  const std::string config = test::ReadFile(folder_.path("tokenizer_config.json"));
  const Sha256Digest before = LoadTokenizer(Path())->identity().sha256;
  ChatTemplate chat_template = JinjaTemplate("a");
  for (const StartMarks marks : {StartMarks::kBehindBos, StartMarks::kFirst, StartMarks::kBehindSpecials}) {
    chat_template.start_marks = marks;
    WriteFolderTemplate(Path(), chat_template, Path());
    EXPECT_EQ(test::ReadFile(folder_.path("tokenizer_config.json")), config);
    EXPECT_EQ(LoadTokenizer(Path())->identity().sha256, before);
  }
}

TEST_F(FolderTemplateTest, AnAdaptersTemplateMarksTextAsItsBaseDoes) {
  const test::TemporaryFolder adapter;
  std::ofstream(adapter.path("chat_template.jinja")) << "own";
  Write("tokenizer.model", "");
  Write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer", "legacy": false})");
  EXPECT_EQ(FindAdapterTemplate(adapter.path(""), Path())->start_marks, StartMarks::kFirst);
}

TEST_F(FolderTemplateTest, AnAdaptersTemplateGoesBeforeItsBases) {
  const test::TemporaryFolder adapter;
  Write("tokenizer_config.json", R"({"bos_token": "<s>", "eos_token": "</s>", "chat_template": "base"})");
  EXPECT_EQ(FindAdapterTemplate(adapter.path(""), Path())->text, "base");
  std::ofstream(adapter.path("tokenizer_config.json")) << R"({"eos_token": "<end>"})";
  std::ofstream(adapter.path("chat_template.jinja")) << "own";
  const auto found = FindAdapterTemplate(adapter.path(""), Path());
  EXPECT_EQ(found->text, "own");
  EXPECT_THAT(found->named_tokens,
              ::testing::UnorderedElementsAre(std::pair<std::string, std::string>("eos_token", "<end>"),
                                              std::pair<std::string, std::string>("bos_token", "<s>")));
}

}  // namespace
}  // namespace trainwright
