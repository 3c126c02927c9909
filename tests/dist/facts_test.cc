#include "lib/dist/facts.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/support.h"

namespace trainwright {
namespace {

TEST(FactsTest, ComeBackWhateverTheyHold) {
  const Facts facts{{"a", ""}, {"empty name next", "x"}, {"", "two\nlines"}, {"z", std::string("\0=,", 3)}};
  EXPECT_EQ(DecodeFacts(EncodeFacts(facts)), facts);
}

TEST(FactsTest, EqualOnesPass) {
  EXPECT_NO_THROW(CheckFacts({{{"a", "1"}}, {{"a", "1"}}}, 1));
}

TEST(FactsTest, ARankThatDiffersIsToldSoItself) {
  const auto check = [] { CheckFacts({{{"a", "1"}}, {{"a", "2"}}, {{"a", "1"}, {"b", "3"}}}, 2); };
  EXPECT_EQ(test::CodeOf(check), ErrorCode::kUsage);
  EXPECT_NE(test::MessageOf(check).find("rank 2 (this one): b is 3, in rank 0 none"), std::string::npos);
}

TEST(FactsTest, TheOthersAreToldTheFirstThatDiffers) {
  const auto check = [] { CheckFacts({{{"a", "1"}}, {{"a", "2"}}, {{"a", "3"}}}, 0); };
  EXPECT_EQ(test::CodeOf(check), ErrorCode::kIo);
  EXPECT_NE(test::MessageOf(check).find("rank 1: a is 2, in rank 0 1"), std::string::npos);
}

}  // namespace
}  // namespace trainwright
