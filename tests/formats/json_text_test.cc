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

TEST(JsonTextTest, NumbersThatNoTypeHoldsBecomeTheLargestIntegerAndOthersStayAsWritten) {
  const std::string largest = "18446744073709551615";
  for (const char* fits : {"0", "-0", "9223372036854775807", "-9223372036854775808", "18446744073709551615",
                           "1.7976931348623157e308", "-1E+308", "1e-400", "123456789012345678901234.5",
                           "0.1000000000000000000000000000001", "1e0000000000000000000000000002"}) {
    const std::string text = std::string("{\"b\": [ ") + fits + "],\"a\":" + fits + "}";
    EXPECT_EQ(WithNumbersInRange(text), text);
  }
  for (const char* beyond : {"18446744073709551616", "-9223372036854775809", "123456789012345678901234567890",
                             "1e400", "-1.5E+309", "179769313486231580000000000000000e280"}) {
    const std::string number = beyond;
    EXPECT_EQ(WithNumbersInRange("{\"b\": [ " + number + ",17], \"a\":" + number + "}"),
              "{\"b\": [ " + largest + ",17], \"a\":" + largest + "}");
    EXPECT_EQ(WithNumbersInRange(number), largest);
    const std::string quoted = "{\"\\\"" + number + "\": \"" + number + "\\\\\"}";
    EXPECT_EQ(WithNumbersInRange(quoted), quoted);
  }
  for (const char* wrong : {"[1e400, 01e5]", "[1e400, 1e]", "[1e400, 1.e400]", "[1e400, -]", "[+1e400",
                            "[99999999999999999999-1]", "[0099999999999999999999]"}) {
    EXPECT_TRUE(JsonOf(WithNumbersInRange(wrong)).is_discarded()) << wrong;
  }
}

}  // namespace
}  // namespace trainwright
