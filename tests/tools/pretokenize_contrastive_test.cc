// pretokenize --records contrastive and what pack makes of it, as processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/tool_test.h"

namespace trainwright::test {
namespace {

constexpr char kRecords[] =
    R"({"query": ["Find: ", "q one"], "pos": [["Find:", "p1"], ["", "p2é"]], "neg": [["", "n1"], ["a\t", "n2"], ["", "n3"]], "id": 7}
{"neg": [], "query": "plain", "pos": ["near"]}
)";

constexpr char kBadRecords[] = R"({"query": "q", "pos": ["p"], "neg": ["n"]}
{"query": "q"}
{"pos": ["p"]}
{"query": "q", "pos": []}
{"query": "q", "pos": "p"}
{"query": "q", "pos": ["p", ["i", "x", "y"]]}
{"query": "q", "pos": [3]}
{"query": ["i", null], "pos": ["p"]}
{"query": "", "pos": ["p"]}
{"query": "q", "pos": ["p"], "neg": [["i", ""]]}
[1]
)";

std::vector<nlohmann::json> LinesOf(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

/// What the GRIT recipe says of a text, in bytes: BOS is 256.
nlohmann::json Expected(const std::string& instruction, const std::string& text) {
  const std::string before =
      instruction.empty() ? "<|embed|>\n" : "<|user|>\n" + instruction + "\n<|embed|>\n";
  nlohmann::json ids = {256};
  for (const char byte : before + text) ids.push_back(static_cast<uint8_t>(byte));
  return {{"instruction_tokens", 1 + before.size()}, {"ids", ids}};
}

using PretokenizeContrastiveTest = ToolTest;

TEST_F(PretokenizeContrastiveTest, EveryTextIsWrittenAsTheGritRecipeSaysWithItsInstructionCounted) {
  WriteFile(folder_.path("in.jsonl"), kRecords);
  const ProcessResult result = Shell("pretokenize -q --records contrastive --to jsonl in.jsonl");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  const std::vector<nlohmann::json> lines = LinesOf(result.standard_output);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0],
            (nlohmann::json{{"doc", 0},
                            {"query", Expected("Find", "q one")},
                            {"pos", {Expected("Find", "p1"), Expected("", "p2é")}},
                            {"neg", {Expected("", "n1"), Expected("a", "n2"), Expected("", "n3")}}}));
  EXPECT_EQ(lines[1], (nlohmann::json{{"doc", 1},
                                      {"query", Expected("", "plain")},
                                      {"pos", {Expected("", "near")}},
                                      {"neg", nlohmann::json::array()}}));
}

TEST_F(PretokenizeContrastiveTest, DecodeAndCatGiveTheTextsBack) {
  WriteFile(folder_.path("in.jsonl"), kRecords);
  const ProcessResult result = Shell(R"(
    pretokenize -q --records contrastive in.jsonl -o s.tok && pretokenize -q --decode --to jsonl s.tok &&
    pack -q --chunk 400 --mode none s.tok -o s.tws && pack --cat s.tws && pack --cat --json s.tws > cat.jsonl &&
    pack --info --json s.tws > info.json)");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  std::istringstream out(result.standard_output);
  std::string line;
  ASSERT_TRUE(std::getline(out, line));
  const std::string find = "<|user|>\nFind\n<|embed|>\n", none = "<|embed|>\n";
  const auto pair = [](const std::string& before, const std::string& text) {
    return nlohmann::json::array({before, text});
  };
  EXPECT_EQ(
      nlohmann::json::parse(line),
      (nlohmann::json{{"doc", 0},
                      {"query", pair(find, "q one")},
                      {"pos", nlohmann::json::array({pair(find, "p1"), pair(none, "p2é")})},
                      {"neg", nlohmann::json::array({pair(none, "n1"), pair("<|user|>\na\n<|embed|>\n", "n2"),
                                                     pair(none, "n3")})}}));
  ASSERT_TRUE(std::getline(out, line));
  std::string texts;
  while (std::getline(out, line)) texts += line + "\n";
  EXPECT_THAT(texts, testing::StartsWith(find + "q one\n" + find + "p1\n" + none + "p2é\n"));
  const std::vector<nlohmann::json> chunks = LinesOf(ReadFile(folder_.path("cat.jsonl")));
  ASSERT_EQ(chunks.size(), 2u);
  std::string roles;
  for (const nlohmann::json& segment : chunks[0].at("segments")) {
    if (segment.at("instruction") == false) roles += segment.at("role").get<std::string>() + " ";
  }
  EXPECT_EQ(roles, "query pos pos neg neg neg ");
  EXPECT_EQ(Json("info.json").at("docs"), 2);
  EXPECT_EQ(Json("info.json").at("records"), "contrastive");
}

TEST_F(PretokenizeContrastiveTest, LimitsCutTextsAndLeaveOutRecordsWhoseInstructionsFillThem) {
  // "<|embed|>\n" and BOS are 11 tokens of bytes.
  WriteFile(folder_.path("in.jsonl"), R"({"query": "12345", "pos": ["123456789", "1"]}
{"query": ["long instruction", "q"], "pos": ["p"]}
{"query": "q", "pos": ["p"], "neg": [[")" +
                                          std::string(201, 'x') + R"(", "n"]]}
)");
  const ProcessResult result = Shell(
      "pretokenize --records contrastive --query-max-tokens 14 --passage-max-tokens 20 --to jsonl in.jsonl "
      "--summary s.json");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  const std::vector<nlohmann::json> lines = LinesOf(result.standard_output);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].at("query"), Expected("", "123"));
  EXPECT_EQ(lines[0].at("pos"), (nlohmann::json{Expected("", "123456789"), Expected("", "1")}));
  const nlohmann::json summary = Json("s.json");
  EXPECT_EQ(summary.at("over_max_record_tokens"), 1);
  EXPECT_EQ(summary.at("over_max_chars"), 1);
  EXPECT_EQ(summary.at("texts"), 3);
  EXPECT_EQ(summary.at("texts_cut"), 1);
  EXPECT_THAT(result.standard_error, testing::HasSubstr("cut 1 text"));
}

TEST_F(PretokenizeContrastiveTest, BadRecordsAreNamedOrCountedByReason) {
  WriteFile(folder_.path("bad.jsonl"), kBadRecords);
  const ProcessResult failed = Shell("pretokenize --records contrastive bad.jsonl -o out.tok");
  EXPECT_EQ(failed.exit_status, 3);
  EXPECT_THAT(failed.standard_error, testing::HasSubstr("no key \"pos\" (line 2)"));
  const ProcessResult skipped =
      Shell("pretokenize --records contrastive --on-error skip bad.jsonl -o out.tok --summary s.json");
  ASSERT_EQ(skipped.exit_status, 0) << skipped.standard_error;
  const nlohmann::json summary = Json("s.json"), reasons = summary.at("skipped_by_reason");
  EXPECT_EQ(summary.at("documents"), 1);
  EXPECT_EQ(reasons.at("missing_key"), 2);
  EXPECT_EQ(reasons.at("bad_record"), 3);
  EXPECT_EQ(reasons.at("not_a_string"), 2);
  EXPECT_EQ(reasons.at("empty_text"), 2);
  EXPECT_EQ(reasons.at("bad_json"), 1);
}

TEST_F(PretokenizeContrastiveTest, NothingDependsOnThreadsOrPipesAndTrainingForTokensRefusesIt) {
  const ProcessResult result = Shell(R"(
    for i in $(seq 3000); do
      printf '{"query": ["Say", "number %d"], "pos": ["it is %d"], "neg": ["it is %d", "none"]}\n' $i $i $((i + 1))
    done > in.jsonl
    for threads in 1 8; do
      pretokenize -q --records contrastive --tokenizer $DATA/mistral-v1.model --threads $threads --holdout 0.2 \
        --holdout-output held.$threads -o out.$threads in.jsonl || exit 9
    done
    cmp out.1 out.8 && cmp held.1 held.8 || exit 1
    cat out.1 | pack -q --chunk 256 --threads 1 > a.tws && pack -q --chunk 256 --threads 3 -o b.tws out.1 || exit 2
    cmp a.tws b.tws || exit 3
    pack -q --chunk 256 --mode concat out.1 > c.tws; [ $? = 2 ] || exit 4
    pack -q --chunk 256 --overflow split out.1 > c.tws; [ $? = 2 ] || exit 5
    pack -q --chunk 16 out.1 > c.tws; [ $? = 3 ] || exit 6)");
  EXPECT_EQ(result.exit_status, 0) << result.standard_output << result.standard_error;
}

}  // namespace
}  // namespace trainwright::test
