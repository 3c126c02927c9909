#include "lib/report/table.h"

#include <gtest/gtest.h>

#include "tests/support/support.h"

namespace trainwright {
namespace {

TEST(TableTest, AlignsNumbersRightWordsLeftAndLeavesNoTrailingBlanks) {
  Table table({"shard", "tokens", "note"});
  table.AddRow({"a", "12", "x"});
  table.AddRow({"long name", "1234567", ""});
  table.AddRow({"b", "-", "yy"});
  EXPECT_EQ(table.ToString(),
            "shard       tokens  note\n"
            "a               12  x\n"
            "long name  1234567\n"
            "b                -  yy\n");
}

TEST(TableTest, CountsCharactersNotBytesAndPrintsNoEmptyHeader) {
  Table table({"", ""});
  table.AddRow({"größe", "1 kB"});
  table.AddRow({"x", "22 kB"});
  EXPECT_EQ(table.ToString(), "größe   1 kB\nx      22 kB\n");
}

TEST(TableTest, ARowOfTheWrongLengthIsABug) {
  Table table({"a", "b"});
  EXPECT_EQ(test::CodeOf([&] { table.AddRow({"1"}); }), ErrorCode::kInternal);
}

}  // namespace
}  // namespace trainwright
