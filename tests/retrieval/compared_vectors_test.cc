#include "lib/retrieval/compared_vectors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/support.h"

namespace trainwright {
namespace {

using testing::HasSubstr;

class ComparedVectorsTest : public testing::Test {
 protected:
  ComparedVectorsTest() {
    test::WriteFile(three_, "{\"embedding\": [1, 2, 3]}\n{\"embedding\": [4, 5, 6]}\n");
    test::WriteFile(other_three_, "{\"embedding\": [7, 8, 9]}\n");
    test::WriteFile(two_, "{\"embedding\": [1, 2]}\n");
  }
  test::TemporaryFolder folder_;
  const std::string three_ = folder_.path("three.jsonl"), other_three_ = folder_.path("other.jsonl"),
                    two_ = folder_.path("two.jsonl");
};

TEST_F(ComparedVectorsTest, AllColumnsAreKeptOrTheFirst) {
  const ComparedVectors whole = OpenComparedVectors(three_, other_three_, /*truncate_dim=*/0);
  EXPECT_EQ(whole.columns, 3);
  EXPECT_EQ(whole.kept_columns, 3);
  EXPECT_EQ(ReadAllVectors(whole.second.get(), nullptr), (std::vector<float>{7, 8, 9}));
  EXPECT_EQ(OpenComparedVectors(three_, other_three_, /*truncate_dim=*/2).kept_columns, 2);
}

TEST_F(ComparedVectorsTest, VectorsOfUnlikeLengthsAreRefused) {
  EXPECT_EQ(test::CodeOf([&] { OpenComparedVectors(three_, two_, 0); }), ErrorCode::kBadInput);
  EXPECT_THAT(test::MessageOf([&] { OpenComparedVectors(three_, two_, 0); }),
              HasSubstr(three_ + ": has vectors of 3 numbers, and " + two_ + " of 2"));
}

TEST_F(ComparedVectorsTest, MoreColumnsThanThereAreAreRefused) {
  EXPECT_EQ(test::CodeOf([&] { OpenComparedVectors(three_, other_three_, 4); }), ErrorCode::kUsage);
}

}  // namespace
}  // namespace trainwright
