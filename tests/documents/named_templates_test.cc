// Folders with several chat templates in Jinja, each with a name. Expected is what apply_chat_template of
// transformers 5.23 wrote by such folders.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/documents/chat_encoder.h"
#include "lib/documents/folder_template.h"
#include "lib/documents/recorded_template.h"
#include "lib/formats/provenance.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

const std::string kForAll =
    "{% for m in messages %}{{ m.role + ': ' + m.content + eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}";
// Renders no conversation without tools.
const std::string kForTools = "{% for t in tools %}{{ t.function.name + '|' }}{% endfor %}" + kForAll;

class NamedTemplatesTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder_.path(name)).parent_path());
    std::ofstream(folder_.path(name)) << text;
  }
  void WriteConfig(const nlohmann::json& templates) {
    Write("tokenizer_config.json",
          nlohmann::json{{"eos_token", "</s>"}, {"chat_template", templates}}.dump());
  }
  std::string Path() const { return folder_.path(""); }
  test::TemporaryFolder folder_;
};

nlohmann::json ListOfBoth() {
  return {{{"name", "tool_use"}, {"template", kForTools}}, {{"name", "default"}, {"template", kForAll}}};
}

/// What a template writes of a question and its answer.
std::string Written(const ChatTemplate& chat_template, bool with_tools) {
  const auto tokenizer = LoadTokenizer("bytes");
  const ChatEncoder encoder(chat_template, tokenizer.get());
  ChatRecordReader reader({.prompt_key = "", .response_key = "", .whole_turns = true});
  ChatRecord record;
  const std::string tools = R"("tools": [{"type": "function", "function": {"name": "f"}}], )";
  const auto problem =
      reader.Read("{" + (with_tools ? tools : "") + R"("prompt": "q", "completion": "a"})", &record);
  EXPECT_FALSE(problem);
  EncodedChat chat;
  if (const auto refused = encoder.Encode(record, &chat)) return refused->problem;
  return tokenizer->Decode(chat.ids);
}

constexpr char kWithoutTools[] = "user: q</s>assistant: a</s>",
               kWithTools[] = "f|user: q</s>assistant: a</s>";

TEST_F(NamedTemplatesTest, ThatForToolsIsTakenOfAListWhereARecordHasSome) {
  WriteConfig(ListOfBoth());
  for (const char* name : {"", "tokenizer_config.json"}) {
    const ChatTemplate found = LoadChatTemplate(folder_.path(name));
    EXPECT_EQ(Written(found, /*with_tools=*/true), kWithTools) << name;
    EXPECT_EQ(Written(found, /*with_tools=*/false), kWithoutTools) << name;
  }
}

TEST_F(NamedTemplatesTest, ThatForToolsIsTakenOfTheFolderOfMoreTemplates) {
  WriteConfig(nullptr);
  Write("chat_template.jinja", kForAll);
  Write("additional_chat_templates/tool_use.jinja", kForTools);
  Write("additional_chat_templates/rag.jinja", "x");
  EXPECT_EQ(Written(*FindFolderTemplate(Path()), /*with_tools=*/true), kWithTools);
  EXPECT_EQ(Written(*FindFolderTemplate(Path()), /*with_tools=*/false), kWithoutTools);
}

TEST_F(NamedTemplatesTest, ADefaultInTheFolderOfMoreTemplatesGoesBeforeTheFileBesideIt) {
  WriteConfig(nullptr);
  Write("chat_template.jinja", "other");
  Write("additional_chat_templates/default.jinja", kForAll);
  EXPECT_EQ(Written(*FindFolderTemplate(Path()), /*with_tools=*/true), kWithoutTools);
}

TEST_F(NamedTemplatesTest, PromptsWithToolsAreWrittenByTheTemplateForThem) {
  WriteConfig(ListOfBoth());
  const auto tokenizer = LoadTokenizer("bytes");
  const ChatEncoder encoder(*FindFolderTemplate(Path()), tokenizer.get());
  ChatRecord record;
  record.turns.push_back({.role = ChatRole::kUser, .content = "q"});
  record.tools_json = R"([{"type": "function", "function": {"name": "f"}}])";
  std::vector<uint32_t> ids;
  ASSERT_FALSE(encoder.EncodePrompt(record, &ids));
  EXPECT_EQ(tokenizer->Decode(ids), "f|user: q</s>assistant: ");
}

TEST_F(NamedTemplatesTest, AnAnswerEndsAsTheTemplateEndsItThatWritesTheConversation) {
  nlohmann::json list = ListOfBoth();
  list[0]["template"] =
      "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content + '#' }}"
      "{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}";
  WriteConfig(list);
  const auto tokenizer = LoadTokenizer("bytes");
  const ChatEncoder encoder(*FindFolderTemplate(Path()), tokenizer.get());
  EXPECT_EQ(tokenizer->Decode(encoder.answer_end(/*with_tools=*/false)), "</s>");
  EXPECT_EQ(tokenizer->Decode(encoder.answer_end(/*with_tools=*/true)), "#");
}

TEST_F(NamedTemplatesTest, ATemplateForToolsThatIsNoJinjaIsRefusedByTheRecordsThatNeedIt) {
  WriteConfig(nullptr);
  Write("chat_template.jinja", kForAll);
  Write("additional_chat_templates/tool_use.jinja", "a\n{% include 'x' %}");
  const ChatTemplate found = *FindFolderTemplate(Path());
  EXPECT_EQ(Written(found, /*with_tools=*/false), kWithoutTools);
  EXPECT_THAT(Written(found, /*with_tools=*/true),
              testing::AllOf(testing::HasSubstr("chat_template.jinja (tool_use), line 2: "),
                             testing::HasSubstr("'include'")));
}

TEST_F(NamedTemplatesTest, ATemplateForToolsThatIsNoJinjaIsRecordedAsItIs) {
  nlohmann::json list = ListOfBoth();
  list[0]["template"] = "{% include 'x' %}";
  WriteConfig(list);
  const nlohmann::json record = RecordOfTemplate(*FindFolderTemplate(Path()));
  EXPECT_EQ(record.at("template_tool_use"), "{% include 'x' %}");
  EXPECT_FALSE(record.contains("template_time_s"));
}

TEST_F(NamedTemplatesTest, ProvenanceKeepsTheTemplateForTools) {
  WriteConfig(ListOfBoth());
  nlohmann::json options = {{"records", "sft"}};
  options.update(RecordOfTemplate(*FindFolderTemplate(Path())));
  const auto found =
      RecordedTemplate(nlohmann::ordered_json::parse(MakeProvenance("pretokenize", options, {})));
  ASSERT_TRUE(found);
  EXPECT_EQ(Written(*found, /*with_tools=*/true), kWithTools);
  EXPECT_EQ(Written(*found, /*with_tools=*/false), kWithoutTools);
}

TEST_F(NamedTemplatesTest, WhatIsWrittenForACheckpointHasTheTemplateForTools) {
  WriteConfig(ListOfBoth());
  const test::TemporaryFolder out;
  WriteFolderTemplate(out.path(""), *FindFolderTemplate(Path()), out.path(""));
  EXPECT_EQ(Written(*FindFolderTemplate(out.path("")), /*with_tools=*/true), kWithTools);
  EXPECT_EQ(test::ReadFile(out.path("additional_chat_templates/tool_use.jinja")),
            "{% set eos_token = \"</s>\" %}\n" + kForTools);
}

TEST_F(NamedTemplatesTest, ACopyHasAllTemplatesOfTheFolder) {
  const test::TemporaryFolder out;
  Write("additional_chat_templates/tool_use.jinja", kForTools);
  Write("additional_chat_templates/rag.jinja", "x");
  Write("additional_chat_templates/notes.txt", "y");
  CopyNamedTemplates(Path(), out.path(""));
  EXPECT_EQ(test::ReadFile(out.path("additional_chat_templates/tool_use.jinja")), kForTools);
  EXPECT_EQ(test::ReadFile(out.path("additional_chat_templates/rag.jinja")), "x");
  EXPECT_FALSE(std::filesystem::exists(out.path("additional_chat_templates/notes.txt")));
}

}  // namespace
}  // namespace trainwright
