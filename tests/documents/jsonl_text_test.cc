#include "lib/documents/jsonl_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "tests/support/support.h"

namespace trainwright {
namespace {

std::string TextOf(const std::string& line, const std::vector<std::string>& keys = {"text"}) {
  JsonlText reader(keys);
  std::string text;
  const auto problem = reader.Read(line, &text);
  EXPECT_FALSE(problem.has_value()) << (problem ? problem->problem : "");
  return text;
}

TEST(JsonlTextTest, UnescapesStrings) {
  EXPECT_EQ(TextOf(R"({"text": "a\n\t\"\\\/b"})"), "a\n\t\"\\/b");
  EXPECT_EQ(TextOf(R"({"text": "a\u0000b"})"), std::string("a\0b", 3));
  EXPECT_EQ(TextOf(R"({"text": "\u00e9\u65e5\ud83d\ude00"})"), "\xC3\xA9\xE6\x97\xA5\xF0\x9F\x98\x80");
  EXPECT_EQ(TextOf("{\"text\": \"\xF0\x9F\x98\x80\"}"), "\xF0\x9F\x98\x80");
  EXPECT_EQ(TextOf(R"({"text": ""})"), "");
}

TEST(JsonlTextTest, FollowsPathsThroughObjects) {
  EXPECT_EQ(TextOf(R"({"a": {"b": {"c": "deep"}}})", {"a.b.c"}), "deep");
  EXPECT_EQ(TextOf(R"({"a.b": {"c": "dotted"}})", {"a.b.c"}), "dotted");
  EXPECT_EQ(TextOf(R"({"a": {"b": "path"}, "a.b": "own name"})", {"a.b"}), "own name");
}

TEST(JsonlTextTest, OfMembersWithTheSameNameTheLastCounts) {
  EXPECT_EQ(TextOf(R"({"text": 1, "text": "a", "x": "c", "te\u0078t": "b"})"), "b");
  EXPECT_EQ(TextOf(R"({"a": {"b": "first"}, "a": {"b": "no", "b": "last"}})", {"a.b"}), "last");
}

TEST(JsonlTextTest, JoinsSeveralKeysInTheGivenOrder) {
  EXPECT_EQ(TextOf(R"({"answer": "A", "question": "Q"})", {"question", "answer"}), "Q\nA");
}

TEST(JsonlTextTest, OtherKeysTakeThePlaceOfOneThatIsNotThere) {
  JsonlText reader({"text"}, OtherTextKeys());
  std::string text;
  const auto read = [&](const std::string& line) {
    const auto problem = reader.Read(line, &text);
    return problem ? problem->problem : text;
  };
  EXPECT_EQ(read(R"({"article": "b", "content": "a"})"), "a");
  EXPECT_EQ(read(R"({"document": "d", "text": "t"})"), "t");
  EXPECT_EQ(read(R"({"document": "d"})"), "d");
  EXPECT_EQ(read(R"({"text": null, "content": "c"})"), "the value of \"text\" is null, not a string");
  EXPECT_EQ(read(R"({"body": "d"})"), "no key \"text\"");
  EXPECT_EQ(reader.Read(R"({"body": "d", "id": 1})", &text)->hint, "--key names one of its keys: body, id");
}

TEST(JsonlTextTest, OtherMembersMayHoldAnyJson) {
  EXPECT_EQ(TextOf(R"({"n": [1, -2.5e3, true, null, {}], "text": "x", "o": {"text": "y"}})"), "x");
  EXPECT_EQ(TextOf(R"({"id": 123456789012345678901234567890, "text": "big"})"), "big");
  EXPECT_EQ(TextOf(R"({"n": [1e400, -1E+999], "text": "bigger", "m": 123456789012345678901234567890})"),
            "bigger");
  EXPECT_EQ(TextOf(" {\"text\": \"x\"} \r"), "x");
}

TEST(JsonlTextTest, NamesWhatIsWrong) {
  const std::string deep_arrays = std::string(100000, '[') + std::string(100000, ']');
  const struct {
    std::string line;
    SkipReason reason;
    std::string expected;
  } cases[] = {
      {R"({"text": "a")", SkipReason::kBadJson, "not valid JSON"},
      {R"({"text": "a"} x)", SkipReason::kBadJson, "not valid JSON"},
      {R"({"text": "a"}{"text": "b"})", SkipReason::kBadJson, "not valid JSON"},
      {R"({"text": "a\x"})", SkipReason::kBadJson, "not valid JSON"},
      {R"({"text": "lone \ud800 surrogate"})", SkipReason::kBadJson, "not valid JSON"},
      {R"({"text": "a", "n": 01})", SkipReason::kBadJson, "not valid JSON"},
      {R"({"text": "a", "n": 99999999999999999999, "d": )" + deep_arrays + "}", SkipReason::kBadJson,
       "not valid JSON"},
      {"{\"text\": \"a\", \"d\": " + deep_arrays + "}", SkipReason::kBadJson, "not valid JSON"},
      {"{\"text\": \"tab\there\"}", SkipReason::kBadJson, "not valid JSON"},
      {R"({'text': 'a'})", SkipReason::kBadJson, "not valid JSON"},
      {"hello", SkipReason::kBadJson, "not valid JSON"},
      {R"(["text"])", SkipReason::kBadJson, "an array"},
      {R"("text")", SkipReason::kBadJson, "a string"},
      {R"({"Text": "a"})", SkipReason::kMissingKey, "no key \"text\""},
      {R"({})", SkipReason::kMissingKey, "no key \"text\""},
      {R"({"text": null})", SkipReason::kNotAString, "null"},
      {R"({"text": 5})", SkipReason::kNotAString, "a number"},
      {R"({"text": 1e400})", SkipReason::kNotAString, "a number"},
      {R"({"text": "a", "n": 1e400, "m": 1e})", SkipReason::kBadJson, "not valid JSON"},
      {R"({"text": ["a"]})", SkipReason::kNotAString, "an array"},
      {R"({"text": {"a": "b"}})", SkipReason::kNotAString, "an object"},
      {R"({"text": true})", SkipReason::kNotAString, "a boolean"},
      {"{\"text\": \"a\xFF\"}", SkipReason::kInvalidUtf8, "UTF-8"},
  };
  JsonlText reader({"text"});
  for (const auto& test_case : cases) {
    SCOPED_TRACE(test_case.line.substr(0, 60));
    std::string text;
    const auto problem = reader.Read(test_case.line, &text);
    ASSERT_TRUE(problem.has_value());
    EXPECT_EQ(problem->reason, test_case.reason) << problem->problem;
    EXPECT_NE(problem->problem.find(test_case.expected), std::string::npos) << problem->problem;
  }
}

TEST(JsonlTextTest, AReaderGoesOnAfterBadAndLongLines) {
  JsonlText reader({"text"});
  std::string text;
  const std::string longer(3 << 20, 'x');
  EXPECT_TRUE(reader.Read("{", &text).has_value());
  EXPECT_FALSE(reader.Read("{\"text\": \"" + longer + "\"}", &text).has_value());
  EXPECT_EQ(text, longer);
  EXPECT_FALSE(reader.Read("{\"text\": \"short\"}", &text).has_value());
  EXPECT_EQ(text, "short");
}

// nlohmann/json is the oracle, both for what a line means and for whether it is JSON.
TEST(JsonlTextTest, AgreesWithAnotherParserOnMutatedLines) {
  SCOPED_TRACE(test::TestSeed());
  std::mt19937_64 random(test::TestSeed());
  const std::string sample =
      R"({"id": 12, "text": "caf\u00e9 \ud83d\ude00\n\"x\"", "m": {"a": [1.5, null]}})";
  constexpr std::string_view kBytes = "{}[]\",:\\u0123456789abcdefdt nrl.eE+- ";
  JsonlText reader({"text"});
  int valid = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string line = sample;
    for (uint64_t edits = random() % 3; edits > 0; --edits)
      line[random() % line.size()] = kBytes[random() % kBytes.size()];
    const auto expected = nlohmann::json::parse(line, nullptr, false);
    std::string text;
    const auto problem = reader.Read(line, &text);
    const bool has_text = expected.is_object() && expected.contains("text") && expected["text"].is_string();
    ASSERT_EQ(!problem.has_value(), has_text) << line;
    if (has_text) {
      ASSERT_EQ(text, expected["text"].get<std::string>()) << line;
    }
    valid += has_text;
  }
  EXPECT_GT(valid, 1000);
}

}  // namespace
}  // namespace trainwright
