#include "lib/cli/tool_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/error.h"

namespace trainwright::test {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string ProblemOf(std::string_view text) {
  try {
    ParseToolText(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(ToolTextTest, JoinsTheLinesOfAParagraphAndKeepsThoseBehindTwoBlanks) {
  const ToolText text = ParseToolText("# DESCRIPTION\nOne\ntwo.\n\n  as  it\n  stands\nThree.\n\n");
  EXPECT_EQ(text.description, "One two.\n\n  as  it\n  stands\nThree.");
}

TEST(ToolTextTest, KeepsSectionsInTheirOrder) {
  const ToolText text = ParseToolText("# LATER\nb\n\n# DESCRIPTION\nd\n\n# FILES\n  f\n");
  EXPECT_EQ(text.description, "d");
  ASSERT_THAT(text.sections, SizeIs(2));
  EXPECT_EQ(text.sections[0].title, "LATER");
  EXPECT_EQ(text.sections[1].title, "FILES");
  EXPECT_EQ(text.sections[1].text, "  f");
}

TEST(ToolTextTest, PutsExplanationsBesideTheirCommands) {
  const ToolText text = ParseToolText("# EXAMPLES\nFirst\none.\n\n  a | \\\n  b\n\nSecond.\n\n  c\n");
  ASSERT_THAT(text.examples, SizeIs(2));
  EXPECT_EQ(text.examples[0].explanation, "First one.");
  EXPECT_EQ(text.examples[0].command, "a | b");
  EXPECT_EQ(text.examples[1].explanation, "Second.");
  EXPECT_EQ(text.examples[1].command, "c");
}

TEST(ToolTextTest, RefusesWhatBelongsNowhere) {
  EXPECT_THAT(ProblemOf("lost\n# DESCRIPTION\n"), HasSubstr("before the first heading"));
  EXPECT_THAT(ProblemOf("# A\n\n# A\n"), HasSubstr("comes twice"));
  EXPECT_THAT(ProblemOf("# EXAMPLES\n  command\n"), HasSubstr("no explanation"));
  EXPECT_THAT(ProblemOf("# EXAMPLES\nOne.\n\n  a\n\n  b\n"), HasSubstr("no explanation"));
  EXPECT_THAT(ProblemOf("# EXAMPLES\nOne.\n"), HasSubstr("no command"));
}

}  // namespace
}  // namespace trainwright::test
