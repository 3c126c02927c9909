// pretokenize --records sft and what pack makes of it, as processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/tool_test.h"

namespace trainwright::test {
namespace {

constexpr char kBadConversations[] = R"({"prompt": "1?", "response": "one"}
{"prompt": "2?"}
{"prompt": "3?", "response": 3}
{"prompt": "4?", "response": "  "}
{"messages": [{"role": "assistant", "content": "5"}]}
{"messages": [{"role": "user", "content": "6"}, {"role": "robot", "content": "6"}]}
not json

{"prompt": "7?", "response": "seven"}
)";

using PretokenizeSftTest = ToolTest;

TEST_F(PretokenizeSftTest, TheBytesDoNotDependOnThreadsOrPipes) {
  const ProcessResult result = Shell(R"(
    head -n 800 $DATA/gsm8k-train.jsonl > in.jsonl
    for threads in 1 2 5; do
      pretokenize -q --records sft --template zephyr --tokenizer $DATA/mistral-v1.model --threads $threads \
        --holdout 0.2 --holdout-output held.$threads -o out.$threads in.jsonl || exit 9
      cmp out.1 out.$threads && cmp held.1 held.$threads || exit 1
    done
    pretokenize -q --records sft --template zephyr --tokenizer $DATA/mistral-v1.model --holdout 0.2 \
      --holdout-output held.pipe < in.jsonl | cmp - out.1 || exit 2
    cat out.1 | pack -q --chunk 512 --overflow drop --threads 1 > a.tws
    pack -q --chunk 512 --overflow drop --threads 3 -o b.tws out.1
    cmp a.tws b.tws)");
  EXPECT_EQ(result.exit_status, 0) << result.standard_output << result.standard_error;
}

TEST_F(PretokenizeSftTest, ABadRecordIsNamedByFileAndLineAndSkippedOnRequest) {
  WriteFile(folder_.path("bad.jsonl"), kBadConversations);
  const ProcessResult failed = Shell("pretokenize --records sft bad.jsonl -o out.tok");
  EXPECT_EQ(failed.exit_status, 3);
  EXPECT_THAT(failed.standard_error, testing::HasSubstr("bad.jsonl"));
  EXPECT_THAT(failed.standard_error, testing::HasSubstr("line 2"));
  EXPECT_THAT(failed.standard_error, testing::HasSubstr("--response-key"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("out.tok")));

  const ProcessResult skipped =
      Shell("pretokenize --records sft --on-error skip bad.jsonl -o out.tok --summary s.json");
  EXPECT_EQ(skipped.exit_status, 0) << skipped.standard_error;
  const nlohmann::json summary = Json("s.json");
  EXPECT_EQ(summary.at("documents"), 2);
  EXPECT_EQ(summary.at("empty_documents"), 1);
  EXPECT_EQ(summary.at("skipped_documents"), 6);
  const nlohmann::json& reasons = summary.at("skipped_by_reason");
  EXPECT_EQ(reasons.at("missing_key"), 1);
  EXPECT_EQ(reasons.at("not_a_string"), 1);
  EXPECT_EQ(reasons.at("empty_response"), 1);
  EXPECT_EQ(reasons.at("bad_turns"), 2);
  EXPECT_EQ(reasons.at("bad_json"), 1);
}

TEST_F(PretokenizeSftTest, LongRecordsAreLeftOutWithoutATokenizerCall) {
  // Ten records of 4 + 6 characters (the e acute is one), ten of 400 + 6.
  const ProcessResult result = Shell(R"(
    for i in $(seq 10); do
      printf '{"prompt": "é%03d", "response": "answer"}\n' $i
      printf '{"prompt": "%0400d", "response": "answer"}\n' $i
    done > in.jsonl
    pretokenize -q --records sft --max-chars 10 --summary chars.json in.jsonl -o chars.tok
    pretokenize -q --records sft --max-record-tokens 13 --summary tokens.json in.jsonl -o tokens.tok
    pretokenize -q --records sft --max-record-tokens 13 --max-chars 1000000 --summary slow.json in.jsonl -o slow.tok
    for f in chars tokens slow; do pretokenize --decode $f.tok; done | sort | uniq -c | awk '{print $1}' | sort -u
    pretokenize -q --key prompt --max-chars 4 --summary lm.json in.jsonl > lm.tok)");
  EXPECT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(result.standard_output, "3\n30\n")
      << "each kept conversation, two lines, once in each of the three";
  EXPECT_EQ(Json("chars.json").at("over_max_chars"), 10);
  EXPECT_EQ(Json("chars.json").at("tokenizer_calls"), 20) << "prompt and response of the ten that are kept";
  // 13 tokens allow 130 characters: the long ones go by their characters.
  EXPECT_EQ(Json("tokens.json").at("over_max_chars"), 10);
  EXPECT_EQ(Json("tokens.json").at("tokenizer_calls"), 20);
  EXPECT_EQ(Json("slow.json").at("over_max_record_tokens"), 10);
  EXPECT_EQ(Json("slow.json").at("tokenizer_calls"), 40);
  EXPECT_EQ(Json("lm.json").at("over_max_chars"), 10);
  EXPECT_EQ(Json("lm.json").at("tokenizer_calls"), 10);
}

TEST_F(PretokenizeSftTest, LiteralsAreTokenisedOnceAProcess) {
  const ProcessResult result = Shell(R"(
    for n in 1 500; do
      head -n $n $DATA/gsm8k-train.jsonl |
        pretokenize -q --records sft --template alpaca --tokenizer $DATA/mistral-v1.model --summary $n.json > /dev/null
    done)");
  EXPECT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(Json("1.json").at("literal_tokenizations"), Json("1.json").at("template_literals"));
  EXPECT_EQ(Json("500.json").at("literal_tokenizations"), Json("1.json").at("literal_tokenizations"));
  EXPECT_EQ(Json("500.json").at("tokenizer_calls"), 1000);
}

TEST_F(PretokenizeSftTest, ATemplateFileAndItsMistakes) {
  WriteFile(folder_.path("t"),
            "# mine\nuser \"Q: \" {content} \"\\n\"\nassistant \"A: \" [ {content} {eos} ]\n");
  const ProcessResult result = Shell(R"(
    printf '{"question": "x", "answer": "y"}\n' | pretokenize -q --records sft --template t --to jsonl
    printf '{"question": "x", "answer": "y"}\n' | pretokenize -q --records sft --template no-such-template)");
  EXPECT_EQ(result.exit_status, 2);
  EXPECT_EQ(result.standard_output,
            "{\"doc\":0,\"ids\":[81,58,32,120,10,65,58,32,121,257],\"loss_spans\":[[8,10]]}\n");
  EXPECT_THAT(result.standard_error, testing::HasSubstr("built in are plain"));
}

TEST_F(PretokenizeSftTest, FlagsThatContradictTheRecordsAreRefused) {
  for (const char* flags : {"--records sft --key a", "--records sft --eos", "--records sft --prompt-key a",
                            "--records sft --format lines", "--template chatml", "--loss-turns last"}) {
    const ProcessResult result =
        Shell(std::string("echo '{\"prompt\":\"a\",\"response\":\"b\"}' | pretokenize ") + flags);
    EXPECT_EQ(result.exit_status, 2) << flags << result.standard_error;
  }
}

TEST_F(PretokenizeSftTest, PackKeepsConversationsWholeUnlessTold) {
  const ProcessResult result = Shell(R"(
    printf '{"prompt": "%050d", "response": "%050d"}\n{"prompt": "a", "response": "b"}\n' 1 2 |
      pretokenize -q --records sft > in.tok
    pack -q --chunk 64 in.tok -o e.tws; echo error $?
    pack -q --chunk 64 --mode concat in.tok -o c.tws; echo concat $?
    pack -q --chunk 64 --overflow drop in.tok -o d.tws --summary drop.json; echo drop $?
    pack -q --chunk 64 --overflow truncate in.tok -o t.tws --summary truncate.json; echo truncate $?
    pack -q --chunk 64 --overflow truncate --keep-answer 0 in.tok -o t0.tws --summary truncate0.json
    pack -q --chunk 64 --mode concat --overflow split in.tok -o s.tws --summary split.json; echo split $?
    pack -q --chunk 200 in.tok -o whole.tws --summary whole.json; echo whole $?
    pack --cat --json whole.tws)");
  EXPECT_THAT(result.standard_output,
              testing::StartsWith("error 3\nconcat 2\ndrop 0\ntruncate 0\nsplit 0\nwhole 0\n{\"chunk\":0,"));
  EXPECT_THAT(result.standard_output, testing::HasSubstr("\"loss\":true,\"continues\":true"));
  // An answer of 50 digits and its end, and one of a letter and its end.
  EXPECT_EQ(Json("whole.json").at("loss_tokens"), 53);
  EXPECT_EQ(Json("whole.json").at("records"), "sft");
  EXPECT_EQ(Json("split.json").at("loss_tokens"), 53);
  EXPECT_EQ(Json("drop.json").at("loss_tokens"), 2);
  EXPECT_EQ(Json("drop.json").at("loss_tokens_dropped"), 51);
  EXPECT_EQ(Json("truncate0.json").at("loss_tokens"), 64 - 51 + 2)
      << "the first 64 tokens: prompt, newline, 13 digits";
  EXPECT_EQ(Json("truncate.json").at("loss_tokens"), 20 + 2)
      << "20 tokens of the answer at the cost of the prompt";
}

TEST_F(PretokenizeSftTest, RecordsOfTwoKindsDoNotMix) {
  const ProcessResult result = Shell(R"(
    printf '{"prompt": "a", "response": "b"}\n' | pretokenize -q --records sft > sft.tok
    printf 'text\n' | pretokenize -q > lm.tok
    pack -q --chunk 64 lm.tok sft.tok -o both.tws; echo $?
    cat lm.tok sft.tok | pack -q --chunk 64 > both.tws; echo $?)");
  EXPECT_EQ(result.standard_output, "3\n3\n");
}

}  // namespace
}  // namespace trainwright::test
