#include "lib/documents/prompt_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/documents/chat_record.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

/// A list within a list, and so on.
std::string Nested(size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

/// What is said of a file of prompts whose second line is this one; empty: nothing.
std::string ProblemOfSecond(const std::string& line, bool conversations) {
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path("prompts"), "{\"prompt\": \"One\"}\n" + line + "\n");
  PromptReader reader(std::nullopt, folder.path("prompts"), conversations);
  EXPECT_TRUE(reader.Next());
  try {
    reader.Next();
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadInput);
    return error.what();
  }
}

TEST(PromptReaderTest, ALineThatIsNestedTooDeepIsRefusedByItsNumber) {
  const std::string deep = "{\"prompt\": \"Two\", \"note\": " + Nested(200'000) + "}";
  for (const bool conversations : {false, true}) {
    EXPECT_THAT(ProblemOfSecond(deep, conversations),
                testing::AllOf(testing::HasSubstr("line 2"), testing::HasSubstr("nested deeper than 1000")));
    EXPECT_EQ(ProblemOfSecond("{\"prompt\": \"Two\", \"note\": " + Nested(999) + "}", conversations), "");
  }
}

TEST(PromptReaderTest, BlankLinesAreCountedAndSkipped) {
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path("prompts"),
                  "\n{\"prompt\": \"One\"}\n\n \t\r\n\r\n{\"prompt\": \"Two\"}\r\n\n   ");
  for (const bool conversations : {false, true}) {
    PromptReader reader(std::nullopt, folder.path("prompts"), conversations);
    std::vector<std::pair<std::string, std::string>> read;
    while (const std::optional<PromptLine> line = reader.Next()) read.emplace_back(line->place, line->text);
    EXPECT_EQ(read, (std::vector<std::pair<std::string, std::string>>{{"line 2", "One"}, {"line 6", "Two"}}));
  }
}

TEST(PromptReaderTest, OtherMembersAreAsTheyAreWritten) {
  const test::TemporaryFolder folder;
  test::WriteFile(
      folder.path("prompts"),
      R"({"id": 123456789012345678901234567890, "prompt": "One", "x": [1.50, 0.1000000000000000000001, 1e400]})");
  PromptReader reader(std::nullopt, folder.path("prompts"), /*conversations=*/false);
  const std::optional<PromptLine> line = reader.Next();
  ASSERT_TRUE(line);
  EXPECT_EQ(line->others,
            (std::vector<std::pair<std::string, std::string>>{
                {"id", "123456789012345678901234567890"}, {"x", "[1.50, 0.1000000000000000000001, 1e400]"}}));
}

/// What the turns of a sample's line say, as training reads them; `prompt` is the JSON of the members that
/// its prompt's line has.
std::vector<std::string> TurnsOfSample(const std::string& prompt) {
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path("prompts"), "{" + prompt + "}");
  PromptReader prompts(std::nullopt, folder.path("prompts"), /*conversations=*/true);
  const std::optional<PromptLine> line = prompts.Next();
  if (!line) return {};
  std::string sample =
      "{\"prompt\": \"" + line->text + R"(", "text": "D", "ids": [1], "sample": 0, "finish": "eos")";
  for (const auto& [name, value] : line->others) sample += ", \"" + name + "\": " + value;
  ChatRecordReader reader({});
  ChatRecord record;
  const auto problem = reader.Read(sample + "}", &record);
  EXPECT_FALSE(problem) << problem->problem;
  std::vector<std::string> said;
  for (const ChatTurn& turn : record.turns) said.push_back(turn.content);
  return said;
}

TEST(PromptReaderTest, ASampleOfAPromptOfTurnsIsTrainedOnWithAllOfThem) {
  const std::string turns = R"([{"role": "system", "content": "S"}, {"role": "user", "content": "A"},)"
                            R"( {"role": "assistant", "content": "B"}, {"role": "user", "content": "C"}])";
  for (const char* name : {"messages", "prompt", "question"}) {
    EXPECT_EQ(TurnsOfSample("\"id\": 1, \"" + std::string(name) + "\": " + turns),
              (std::vector<std::string>{"S", "A", "B", "C", "D"}))
        << name;
  }
  EXPECT_EQ(TurnsOfSample(R"("prompt": "A")"), (std::vector<std::string>{"A", "D"}));
}

TEST(PromptReaderTest, AFileOfConversationsIsKnownByItsFirstLine) {
  const auto begins = [](const std::string& text) {
    const test::TemporaryFolder folder;
    test::WriteFile(folder.path("prompts"), text);
    return PromptReader(std::nullopt, folder.path("prompts"), /*conversations=*/false).BeginsWithTurns();
  };
  const std::string turns = R"([{"role": "user", "content": "One"}])";
  EXPECT_TRUE(begins("\n{\"messages\": " + turns + "}\n"));
  EXPECT_TRUE(begins("{\"conversations\": " + turns + ", \"n\": 1e999}"));
  EXPECT_TRUE(begins("{\"prompt\": " + turns + "}"));
  EXPECT_FALSE(begins("{\"prompt\": \"One\", \"messages\": " + turns + "}")) << "it has a text to continue";
  EXPECT_FALSE(begins("{\"messages\": \"One\"}"));
  for (const char* other : {"", "\n", "no JSON", "[]", "{\"text\": \"One\"}"}) EXPECT_FALSE(begins(other));
}

TEST(PromptReaderTest, ALineThatWasLookedAtIsReadAsAnyOther) {
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path("prompts"),
                  "\n{\"messages\": [{\"role\": \"user\", \"content\": \"One\"}]}\n"
                  "{\"messages\": [{\"role\": \"user\", \"content\": \"Two\"}]}\n");
  PromptReader reader(std::nullopt, folder.path("prompts"), /*conversations=*/false);
  ASSERT_TRUE(reader.BeginsWithTurns());
  reader.ReadConversations(/*whole_turns=*/false);
  std::vector<std::pair<std::string, std::string>> read;
  while (const std::optional<PromptLine> line = reader.Next()) read.emplace_back(line->place, line->text);
  EXPECT_EQ(read, (std::vector<std::pair<std::string, std::string>>{{"line 2", "One"}, {"line 3", "Two"}}));
}

}  // namespace
}  // namespace trainwright
