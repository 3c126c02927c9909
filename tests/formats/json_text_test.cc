#include "lib/formats/json_text.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

std::string Nested(size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

TEST(JsonTextTest, WhatIsNestedTooDeepIsNoValue) {
  EXPECT_TRUE(JsonOf(Nested(kMostJsonNesting)).is_array());
  EXPECT_TRUE(OrderedJsonOf(Nested(kMostJsonNesting)).is_array());
  EXPECT_TRUE(JsonOf(Nested(kMostJsonNesting + 1)).is_discarded());
  EXPECT_TRUE(OrderedJsonOf(Nested(1'000'000)).is_discarded());
  EXPECT_THROW(RefuseDeepJson(Nested(kMostJsonNesting + 1), "deep.json"), Error);
  EXPECT_TRUE(JsonOf("[1,").is_discarded());
}

TEST(JsonTextTest, BracketsOfTextsAndThoseSideBySideDoNotNest) {
  const std::string quoted = "\"\\\"\\\\" + std::string(3000, '[') + "\"";
  EXPECT_FALSE(IsNestedTooDeep("{\"a\": " + quoted + "}"));
  std::string flat = "[";
  for (int i = 0; i < 3000; ++i) flat += i == 0 ? "[]" : ",{}";
  EXPECT_EQ(JsonOf(flat + "]").size(), 3000u);
}

TEST(JsonTextTest, MembersAreGivenAsTheyAreWritten) {
  using Members = std::vector<std::pair<std::string, std::string_view>>;
  EXPECT_EQ(
      MembersAsWritten(
          R"( {"a" : 123456789012345678901234567890, "b\u0022,:": "}\"]", "c":[ {"d": 1.50 }, "," ] ,
      "a":1.0e0 , "e" :{} } )"),
      (Members{{"a", "1.0e0"}, {"b\",:", "\"}\\\"]\""}, {"c", "[ {\"d\": 1.50 }, \",\" ]"}, {"e", "{}"}}));
  EXPECT_EQ(MembersAsWritten(" {\t} "), Members());
}

// As many as a model of many experts has tensors: in a time that grows as their square, this takes minutes.
TEST(JsonTextTest, ManyObjectsSideBySideAreParsedInOnePass) {
  std::string text = "{";
  for (int i = 0; i < 100'000; ++i) text += "\"tensor." + std::to_string(i) + "\":{\"shape\":[1]},";
  text.back() = '}';
  EXPECT_EQ(ParseJson(text, "a header").size(), 100'000u);
  text.back() = ',';
  text += "\"tensor.7\":1}";
  EXPECT_NE(test::MessageOf([&] { ParseJson(text, "a header"); }).find("\"tensor.7\" twice"),
            std::string::npos);
}

}  // namespace
}  // namespace trainwright
