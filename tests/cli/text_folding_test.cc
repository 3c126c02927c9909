// Help texts within a width.
#include "lib/cli/text_folding.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/support.h"

namespace trainwright {
namespace {

TEST(TextFoldingTest, WordsStayWhole) {
  EXPECT_EQ(Fold("a bb  ccc\ndddd", 2, 8), "  a bb\n  ccc\n  dddd\n");
  EXPECT_EQ(Fold("a muchtoolongword b", 1, 8), " a\n muchtoolongword\n b\n");
  EXPECT_EQ(Fold("äöü äöü", 0, 7), "äöü äöü\n");
  EXPECT_EQ(Fold("", 2, 8), "");
}

TEST(TextFoldingTest, DescriptionsStandBehindTheirNames) {
  EXPECT_EQ(FoldBehind("  -a", "one two three", 6, 12), "  -a  one\n      two\n      three\n");
  EXPECT_EQ(FoldBehind("  --long", "one two", 6, 20), "  --long\n      one two\n");
  EXPECT_EQ(FoldBehind("  -a", "", 6, 20), "  -a\n");
}

TEST(TextFoldingTest, RowsAreFoldedOnlyWhereTheyAreTooLong) {
  const std::string rows =
      "A paragraph\nof two lines.\n\n  short  row\n         goes on\n  code that has no description\n";
  EXPECT_EQ(FoldParagraphs(rows, 2, 40),
            "  A paragraph of two lines.\n\n    short  row\n           goes on\n    code that has no "
            "description\n");
  EXPECT_EQ(FoldParagraphs("  name  one two three\n        four\n  b     x\n", 2, 18),
            "    name  one two\n          three\n          four\n    b     x\n");
  EXPECT_EQ(FoldParagraphs("  name: one two\n  b: x\n", 0, 14), "  name: one\n    two\n  b: x\n");
}

// The shell itself is the oracle.
TEST(TextFoldingTest, AFoldedCommandIsTheSameCommand) {
  const std::string commands[] = {
      R"sh(printf '%s\n' 'a b  c' "d 'e  f" g\ h "i\" j" > out && cat out | tr a-z A-Z; echo $((1 + 2)) "$(echo 'x  y')")sh",
      R"(printf '{"query": ["Find", "question %d"]}\n' 1 2 && test "a b" = 'a b' && echo done done done done done)"};
  for (const std::string& command : commands) {
    const test::TemporaryFolder folder;
    const auto said = [&](const std::string& text) {
      return test::RunShell("cd '" + folder.path() + "' && " + text).standard_output;
    };
    for (const size_t width : {20, 30, 50, 200}) {
      EXPECT_EQ(said(FoldCommand(command, 4, width)), said(command)) << FoldCommand(command, 4, width);
    }
    EXPECT_NE(FoldCommand(command, 4, 50).find(" \\\n    "), std::string::npos);
    EXPECT_EQ(FoldCommand(command, 4, 400), "    " + command + "\n");
  }
}

}  // namespace
}  // namespace trainwright
