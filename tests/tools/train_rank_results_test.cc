// evaluate and generate by several processes of one machine write what one process writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/tools/train_process.h"

namespace trainwright::test {
namespace {

class TrainRankResultsTest : public TrainProcessTest {
 protected:
  TrainRankResultsTest() : TrainProcessTest("TRAINWRIGHT_BATCH=2 TRAINWRIGHT_STEPS=2") {}
  void SetUp() override {
    WriteModel("tiny.json");
    const ProcessResult made = Shell(R"(
      head -n 100 $DATA/tinyshakespeare.txt > text
      pretokenize -q text | pack -q --chunk 256 -o shards/ && train -q --model tiny.json --out base
      for i in 1 2 3 4 5; do echo "{\"prompt\": \"O Romeo $i\"}"; done > prompts.jsonl)");
    ASSERT_EQ(made.exit_status, 0) << made.standard_error;
  }
};

TEST_F(TrainRankResultsTest, EvaluateOnTwoProcessesPrintsTheBytesOfOne) {
  const ProcessResult result = Shell(R"(
    for data in text shards; do
      evaluate -q --checkpoint base --seq 32 --batch 2 --data $data > one &&
        evaluate -q --checkpoint base --seq 32 --batch 2 --data $data --nproc 2 --summary summary.json > two &&
        cmp one two || exit 1
    done)");
  EXPECT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_TRUE(Json("summary.json").contains("perplexity"));
}

TEST_F(TrainRankResultsTest, GenerateOnTwoProcessesPrintsTheBytesOfOne) {
  const ProcessResult result = Shell(R"(
    options='--checkpoint base --max-tokens 8 --temperature 1 --samples 3 --batch-invariant -q'
    for prompts in '--input prompts.jsonl' '--prompt O'; do
      generate $options $prompts > one && generate $options $prompts --nproc 2 > two && cmp one two || exit 1
    done)");
  EXPECT_EQ(result.exit_status, 0) << result.standard_error;
}

TEST_F(TrainRankResultsTest, ProcessesThatCouldNotWriteTheSameAreRefused) {
  const ProcessResult generated =
      Shell("generate --checkpoint base --input prompts.jsonl --nproc 2 --dist-timeout 3");
  EXPECT_EQ(generated.exit_status, 2);
  EXPECT_EQ(generated.standard_output, "");
  EXPECT_THAT(generated.standard_error, testing::HasSubstr("--batch-invariant"));
  const ProcessResult evaluated =
      Shell("evaluate --checkpoint base --data - --nproc 2 --dist-timeout 3 < text");
  EXPECT_EQ(evaluated.exit_status, 2);
  EXPECT_EQ(evaluated.standard_output, "");
  EXPECT_THAT(evaluated.standard_error, testing::HasSubstr("standard input can be read once only"));
}

TEST_F(TrainRankResultsTest, WhatIsWrongOnAllProcessesAlikeIsToldOnce) {
  const ProcessResult result = Shell(R"(
    printf 'a\nb\n' > none  # without a label
    for wrong in 'evaluate --checkpoint base --no-eos --data none' 'evaluate --checkpoint nowhere --data text' \
        'generate --batch-invariant --checkpoint nowhere --prompt O'; do
      $wrong -q 2> one; one=$?
      $wrong -q --nproc 3 2> three; [ $? = $one ] || echo "$wrong: another status"
      grep -q 'error: ' one && cmp one three
    done)");
  EXPECT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(result.standard_output, "");
}

TEST_F(TrainRankResultsTest, AProcessThatIsKilledIsNamedAndEndsTheOthers) {
  const ProcessResult result = Shell(R"sh(
    # `kill_one COMMAND...` kills rank 1 of a command once it has worked for a second.
    kill_one() {
      "$@" > out 2> log & local launcher=$! process= one=
      until [ -n "$one" ]; do
        kill -0 $launcher || return 1
        for process in /proc/[0-9]*; do
          grep -sq "^PPid:[[:space:]]$launcher$" $process/status &&
            tr '\0' '\n' < $process/environ | grep -qx RANK=1 && one=${process#/proc/}
        done
      done
      until awk '{ exit !($14 + $15 > 100) }' /proc/$one/stat; do sleep 0.02; done
      kill -KILL $one
      wait $launcher; echo $?
      grep -c 'error: rank 1: was killed by signal 9' log
    }
    for i in {1..4000}; do echo '{"prompt": "O Romeo"}'; done > many.jsonl
    kill_one evaluate --checkpoint base --seq 16 --batch 1 --data $DATA/tinyshakespeare.txt --nproc 2 --dist-timeout 5
    kill_one generate --checkpoint base --input many.jsonl --max-tokens 32 --batch-invariant --nproc 2 --dist-timeout 5)sh");
  EXPECT_EQ(result.standard_output, "137\n1\n137\n1\n") << result.standard_error;
}

TEST_F(TrainRankResultsTest, AnswersAreScoredOnce) {
  const ProcessResult result = Shell(R"(
    printf '{"prompt": "2+2?", "text": "<answer>4</answer>", "sample": 0}\n' > samples.jsonl
    printf '{"prompt": "2+2?", "gold": 4}\n' > gold.jsonl
    evaluate -q --metric answers --samples samples.jsonl --gold gold.jsonl > one &&
      evaluate -q --metric answers --samples samples.jsonl --gold gold.jsonl --nproc 2 > two && cmp one two &&
      evaluate -q --metric answers --samples - --gold gold.jsonl --nproc 2 < samples.jsonl)");
  EXPECT_EQ(result.exit_status, 0) << result.standard_error;
}

}  // namespace
}  // namespace trainwright::test
