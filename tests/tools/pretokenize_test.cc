// The tool `pretokenize` as a process: exit statuses, signals, pipes, memory.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tests/support/tool_test.h"

namespace trainwright::test {
namespace {

using PretokenizeToolTest = ToolTest;

TEST_F(PretokenizeToolTest, WritesIdsOfStandardInputAsJson) {
  const ProcessResult result =
      Shell("printf 'a\\nb' | pretokenize --tokenizer $DATA/mistral-v1.model --format file --to jsonl -");
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.standard_output, "{\"doc\":0,\"ids\":[264,13,28726,2]}\n");
  EXPECT_NE(result.standard_error.find("1 document, 4 tokens"), std::string::npos) << result.standard_error;
}

TEST_F(PretokenizeToolTest, APipeAFileAndCompressedInputGiveTheSameBytes) {
  const ProcessResult result = Shell(R"(
    cp $DATA/gsm8k-train.jsonl a.jsonl; gzip -k a.jsonl; zstd -q a.jsonl
    pretokenize --key answer a.jsonl > file.tok
    cat a.jsonl | pretokenize --key answer > pipe.tok
    cat a.jsonl.zst | pretokenize --key answer -o zst.tok
    pretokenize --key answer --threads 3 a.jsonl.gz -o gz.tok
    cmp file.tok pipe.tok && cmp file.tok zst.tok && cmp file.tok gz.tok)");
  EXPECT_EQ(result.exit_status, 0) << result.standard_output << result.standard_error;
}

TEST_F(PretokenizeToolTest, DecodeUndoesIt) {
  const ProcessResult result = Shell(R"(
    head -n 300 $DATA/tinyshakespeare.txt | grep . > in
    pretokenize --bos --eos --tokenizer $DATA/mistral-v1.model in | pretokenize --decode | cmp - in)");
  EXPECT_EQ(result.exit_status, 0) << result.standard_output << result.standard_error;
}

TEST_F(PretokenizeToolTest, BadInputIsStatus3WithFileAndLineAndNoOutput) {
  const ProcessResult result =
      Shell("printf '{\"text\":\"a\"}\\n{\"text\":\\n' > a.jsonl; pretokenize a.jsonl -o out.tok");
  EXPECT_EQ(result.exit_status, 3);
  EXPECT_NE(result.standard_error.find("pretokenize: error: a.jsonl: not valid JSON"), std::string::npos)
      << result.standard_error;
  EXPECT_NE(result.standard_error.find("(line 2)"), std::string::npos) << result.standard_error;
  EXPECT_NE(result.standard_error.find("pretokenize: hint: --on-error skip"), std::string::npos);
  EXPECT_FALSE(Exists("out.tok"));
}

TEST_F(PretokenizeToolTest, AnOutputThatIsAnInputIsRefusedAndLeftAsItIs) {
  const std::pair<std::string, std::string> refused[] = {
      {"pretokenize a.txt -o ./a.txt", "choose another -o"},
      {"pretokenize b.txt a.txt -o link", "choose another -o"},
      {"pretokenize a.txt --holdout 0.5 --holdout-output a.txt -o out.tok",
       "choose another file for --holdout-output"}};
  for (const auto& [command, hint] : refused) {
    const ProcessResult result = Shell("echo text > a.txt; echo more > b.txt; ln -sf a.txt link; " + command +
                                       "; status=$?; [ \"$(cat a.txt)\" = text ] && exit $status");
    EXPECT_EQ(result.exit_status, 2) << command << result.standard_error;
    EXPECT_NE(result.standard_error.find("pretokenize: hint: " + hint + "\n"), std::string::npos)
        << result.standard_error;
  }
}

TEST_F(PretokenizeToolTest, OutputsThatAreOneFileUnderTwoNamesAreRefused) {
  for (const std::string outputs : {"-o h.tok --holdout-output ./h.tok", "-o link --holdout-output h.tok",
                                    "-o new.tok --holdout-output ../\"${PWD##*/}\"/new.tok"}) {
    const ProcessResult result =
        Shell("echo old > h.tok; ln -sf h.tok link; seq 100 | pretokenize --holdout 0.3 " + outputs);
    EXPECT_EQ(result.exit_status, 2) << outputs << result.standard_error;
    EXPECT_EQ(ReadFile(folder_.path("h.tok")), "old\n");
    EXPECT_FALSE(Exists("new.tok"));
  }
}

TEST_F(PretokenizeToolTest, DecodeRefusesAnOutputThatIsAnInputOrAFolder) {
  const ProcessResult result = Shell(R"(
    seq 9 | pretokenize -q -o a.tok; cp a.tok before; mkdir d
    pretokenize --decode a.tok -o ./a.tok; echo $?; cmp a.tok before; pretokenize --decode a.tok -o d; echo $?)");
  EXPECT_EQ(result.standard_output, "2\n2\n") << result.standard_error;
}

TEST_F(PretokenizeToolTest, AFileNamedMinusIsReadWhereItIsFound) {
  const ProcessResult result = Shell(R"(
    mkdir d && cd d && echo minus > ./- && printf -- '-\n' > ../list
    for found in "'?'" '--files-from ../list'; do eval pretokenize -q $found < /dev/null | pretokenize --decode; done)");
  EXPECT_EQ(result.standard_output, "minus\nminus\n") << result.standard_error;
}

TEST_F(PretokenizeToolTest, WhatAKilledRunLeftIsRemoved) {
  const ProcessResult result = Shell(R"sh(
    mkfifo text stream
    pretokenize -q --format lines text -o x.tok & exec 8> text
    pretokenize -q --decode stream -o y.txt & exec 9> stream
    for _ in $(seq 1000); do [ "$(ls -A | grep -c tmp-)" = 2 ] && break; sleep 0.01; done
    kill -9 $(jobs -p); wait; exec 8>&- 9>&-; rm text stream
    [ "$(ls -A | grep -c tmp-)" = 2 ] || echo "nothing was left"
    echo text | pretokenize -q -o x.tok && pretokenize -q --decode x.tok -o y.txt && ls -A)sh");
  EXPECT_EQ(result.standard_output, "x.tok\ny.txt\n") << result.standard_error;
}

TEST_F(PretokenizeToolTest, TheSummaryCountsWhatWasLeftOut) {
  const ProcessResult result = Shell(
      "printf '{\"text\":\"ab\"}\\n\\n{\"text\":\\n{}\\n' | pretokenize --no-eos --key text --on-error skip "
      "--summary "
      "s.json > out.tok");
  EXPECT_EQ(result.exit_status, 0) << result.standard_error;
  const auto summary = Json("s.json");
  EXPECT_EQ(summary["documents"], 1);
  EXPECT_EQ(summary["tokens"], 2);
  EXPECT_EQ(summary["source_bytes"], 2);
  EXPECT_EQ(summary["bytes_per_token"], 1.0);
  EXPECT_EQ(summary["empty_documents"], 1);
  EXPECT_EQ(summary["skipped_documents"], 2);
  EXPECT_EQ(summary["skipped_by_reason"]["bad_json"], 1);
  EXPECT_EQ(summary["skipped_by_reason"]["missing_key"], 1);
  EXPECT_EQ(summary["vocab_size"], 258);
}

TEST_F(PretokenizeToolTest, UsageErrorsAreStatus2AndNameTheFlag) {
  const std::pair<std::string, std::string> cases[] = {
      {"--format csv", "--format"},
      {"--format lines --key text", "--key"},
      {"--holdout 1 -o out.tok", "--holdout"},
      {"--holdout 0.1", "--holdout"},
      {"--holdout-output x.tok", "--holdout-output"},
      {"--holdout 0.1 -o x.tok --holdout-output x.tok", "--holdout-output"},
      {"--max-document 3GiB", "--max-document"},
      {"--max-document 0", "--max-document"},
      {"--decode --bos", "--bos"},
      {"--decode --holdout 0.5", "--holdout"},
  };
  for (const auto& [flags, named] : cases) {
    const ProcessResult result = Shell("echo a | pretokenize " + flags);
    EXPECT_EQ(result.exit_status, 2) << flags;
    EXPECT_NE(result.standard_error.find(named), std::string::npos) << flags << ": " << result.standard_error;
    EXPECT_EQ(result.standard_output, "") << flags;
    EXPECT_FALSE(Exists("out.tok"));
  }
}

TEST_F(PretokenizeToolTest, IoFailuresAreStatus4) {
  EXPECT_EQ(Shell("pretokenize missing.txt > out").exit_status, 4);
  EXPECT_EQ(Shell("echo a | pretokenize -o missing/out").exit_status, 4);
  EXPECT_EQ(Shell("echo a | pretokenize > /dev/full").exit_status, 4);
  EXPECT_EQ(Shell("pretokenize --tokenizer missing.model < /dev/null > out").exit_status, 4);
}

TEST_F(PretokenizeToolTest, SignalsEndItWithTheirStatusAndNoFile) {
  for (const auto& [signal, status] : {std::pair<std::string, int>{"TERM", 143}, {"INT", 130}}) {
    const ProcessResult result =
        Shell("yes 'some text' | (pretokenize -q -o out.tok & pid=$!; sleep 0.5; kill -" + signal +
              " $pid; wait $pid)");
    EXPECT_EQ(result.exit_status, status) << result.standard_error;
    EXPECT_FALSE(Exists("out.tok"));
    EXPECT_EQ(Shell("ls -A | wc -l").standard_output, "0\n") << "a temporary was left";
  }
}

TEST_F(PretokenizeToolTest, AConsumerThatLeavesEndsItBySigpipe) {
  const ProcessResult result =
      Shell("yes 'some text' | pretokenize --to jsonl | head -n 1; echo ${PIPESTATUS[1]}");
  EXPECT_EQ(result.standard_output, "{\"doc\":0,\"ids\":[115,111,109,101,32,116,101,120,116,257]}\n141\n");
}

TEST_F(PretokenizeToolTest, AKilledProducerIsNoShortSuccess) {
  const ProcessResult result = Shell(
      "(yes 'some text' | pretokenize & sleep 0.5; kill -9 $!; wait $!) 2>&- | pretokenize --decode > text");
  EXPECT_EQ(result.exit_status, 3) << result.standard_error;
}

TEST_F(PretokenizeToolTest, BothStreamsOfAHoldoutAreWhole) {
  const ProcessResult result = Shell(R"(
    pretokenize --holdout 0.1 $DATA/tinyshakespeare.txt -o train.tok
    (pretokenize --decode train.tok; pretokenize --decode train.holdout.tok) | sort > parts
    grep . $DATA/tinyshakespeare.txt | sort | cmp - parts)");
  EXPECT_EQ(result.exit_status, 0) << result.standard_output << result.standard_error;
}

TEST_F(PretokenizeToolTest, JsonReadAsPlainLinesIsWarnedOf) {
  const std::string warning = "looks like JSON lines";
  EXPECT_NE(Shell("echo '{\"text\":1}' | pretokenize > out").standard_error.find(warning), std::string::npos);
  EXPECT_EQ(Shell("echo '{\"text\":1}' | pretokenize --format lines > out").standard_error.find(warning),
            std::string::npos);
}

// The sanitizers' own memory grows: these hold for the program as it ships.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

TEST_F(PretokenizeToolTest, MemoryDoesNotGrowWithTheInput) {
  for (const std::string line : {"some text in a line", "{\"text\":\"some text in a line\"}"}) {
    const std::string flags = line[0] == '{' ? "--key text" : "";
    const ProcessResult result =
        Shell("for mb in 20 200; do yes '" + line + "' | head -c ${mb}000000 | pretokenize --on-error skip " +
              flags + " --threads 2 --summary $mb.json > /dev/null; done");
    ASSERT_EQ(result.exit_status, 0) << result.standard_error;
    const double small = Json("20.json")["max_memory_bytes"], large = Json("200.json")["max_memory_bytes"];
    EXPECT_GT(Json("200.json")["documents"], 1000000);
    EXPECT_LT(large, small + (12 << 20)) << line;
  }
}

TEST_F(PretokenizeToolTest, ALineOf200MegabytesTakesMemoryInProportion) {
  const ProcessResult result = Shell(
      "(head -c 200000000 /dev/zero | tr '\\0' x; printf '\\nshort\\n') | pretokenize --no-eos --summary "
      "s.json > "
      "/dev/null");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  const auto summary = Json("s.json");
  EXPECT_EQ(summary["documents"], 2);
  EXPECT_EQ(summary["tokens"], 200000005);
  // A byte of text, its id of 4 bytes, and half as much again of buffers.
  EXPECT_LT(summary["max_memory_bytes"], 7.5 * 200000000);
}

TEST_F(PretokenizeToolTest, ALineThatMemoryDoesNotHoldIsNotABadDocumentToBeSkipped) {
  const ProcessResult result = Shell(R"sh(
    { echo '{"text":"ok"}'; printf '{"text":"'; yes 'a b' | tr '\n' ' ' | head -c 9000000; echo '"}'; } > long.jsonl
    for mib in 60 100 160 200 400; do
      ( ulimit -d $((mib * 1024)); exec pretokenize -q --threads 1 --on-error skip long.jsonl -o out.tok --summary out.json ) 2> log
      case "$? $(grep -c '"bad_json": 0' out.json)" in '4 '? | '0 1') ;; *) echo "$mib MiB: $(cat out.json)" ;; esac
    done)sh");
  EXPECT_EQ(result.standard_output, "");
}
#endif

}  // namespace
}  // namespace trainwright::test
