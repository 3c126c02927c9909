// YAML of any depth as JSON, with lines and texts.
#include "lib/formats/yaml_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/support.h"

namespace trainwright {
namespace {

using nlohmann::json;
using test::CodeOf;
using ::testing::HasSubstr;

json RootOf(const std::string& text) {
  return ParseYaml(text, "f").root;
}

TEST(YamlTextTest, PlainScalarsAreTypedAndQuotedOnesAreTexts) {
  EXPECT_EQ(RootOf("a: true\nb: No\nc: 3\nd: 2e-4\ne: +1.5\nf: null\ng:\nh: 1.2.3\ni: tRue\n"),
            json::parse(R"({"a": true, "b": false, "c": 3, "d": 2e-4, "e": 1.5, "f": null, "g": null,
                            "h": "1.2.3", "i": "tRue"})"));
  EXPECT_EQ(RootOf("a: \"3\"\nb: 'true'\nc: |\n  x\n  y\n"),
            json::parse(R"({"a": "3", "b": "true", "c": "x\ny\n"})"));
}

TEST(YamlTextTest, MappingsAndListsNestInBothStyles) {
  EXPECT_EQ(RootOf("a:\n  - path: x  # a comment\n    type: {b: [1, two]}\n  - y\nc: {}\n"),
            json::parse(R"({"a": [{"path": "x", "type": {"b": [1, "two"]}}, "y"], "c": {}})"));
  EXPECT_TRUE(RootOf("").is_null());
}

TEST(YamlTextTest, EachValueHasItsLineAndItsText) {
  const YamlText yaml = ParseYaml("---\na:\n  b: 1e-4\nlist:\n  - x: 'q'\n", "f");
  EXPECT_EQ(yaml.places.at("a").line, 2);
  EXPECT_EQ(yaml.places.at("a.b").line, 3);
  EXPECT_EQ(yaml.places.at("a.b").text, "1e-4");
  EXPECT_EQ(yaml.places.at("list.0.x").line, 5);
  EXPECT_EQ(yaml.places.at("list.0.x").text, "q");
  EXPECT_EQ(yaml.problem, "");
}

TEST(YamlTextTest, WhatChangesTheMeaningOfATextIsAProblemWithItsLine) {
  for (const auto& [text, problem, line] : std::vector<std::tuple<std::string, std::string, int>>{
           {"a: &x 1\n", "anchor", 1},
           {"a: 1\nb: *x\n", "is not YAML", 0},
           {"a: &x 1\nb: *x\n", "anchor", 1},
           {"a: 1\nb: !!str 2\n", "tag", 2},
           {"a: {b: 1,\n b: 2}\n", "'a.b' is given twice", 2},
           {"<<: {a: 1}\n", "merge key", 1},
           {"a: 1\n---\nb: 2\n", "second document", 2}}) {
    if (line == 0) {
      EXPECT_EQ(CodeOf([&] { ParseYaml(text, "f"); }), ErrorCode::kBadInput);
      continue;
    }
    const YamlText yaml = ParseYaml(text, "f");
    EXPECT_THAT(yaml.problem, HasSubstr(problem)) << text;
    EXPECT_EQ(yaml.problem_line, line) << text;
  }
}

TEST(YamlTextTest, WhatIsNotYamlNotUtf8OrTooDeepIsBadInput) {
  for (const std::string& text :
       {std::string("a: [1"), std::string("a: \"\xff\""), std::string(33, '['),
        "a: " + std::string(40, '[') + std::string(40, ']'), std::string("[a]: b")}) {
    EXPECT_EQ(CodeOf([&] { ParseYaml(text, "f"); }), ErrorCode::kBadInput) << text;
  }
}

}  // namespace
}  // namespace trainwright
