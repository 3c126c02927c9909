// What a kill behind the last checkpoint leaves undone is done by the next process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/tools/train_process.h"

namespace trainwright::test {
namespace {

class TrainFinishTest : public TrainProcessTest {
 protected:
  TrainFinishTest()
      : TrainProcessTest("PRELOAD='" TRAINWRIGHT_SYSCALL_FAULTS "' CHECK='" +
                         Fixture("train/check_run_directory.py") + "' METRICS='" +
                         Fixture("train/check_metrics.py") + "' SCHEMA='" +
                         Fixture("../lib/run/metrics.schema.json") + "'") {}
  void SetUp() override {
    WriteModel("tiny.json");
    WriteShards(300, 100);
  }
};

/// --async-save
class TrainFinishKillTest : public TrainFinishTest, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(AsyncSave, TrainFinishKillTest, testing::Values("off", "on"),
                         [](const auto& info) { return std::string(info.param); });

// Each kill stops the process before one of the things that follow from the last checkpoint.
TEST_P(TrainFinishKillTest, AResumedRunEndsInTheRunDirectoryOfTheUninterruptedOne) {
  const ProcessResult result = Shell("async=" + std::string(GetParam()) + R"sh(
    run() {
      (cd $1; shift; train -q --model ../tiny.json --data ../shards --eval-data ../other --eval-tokens 300 --eval-every 3 \
        --batch 2 --steps 12 --save-every 3 --keep 2 --keep-best 1 --async-save $async --copy-to copies --out run "$@")
    }
    state() { (cd $1; python3 "$CHECK" run copies); }
    mkdir whole; run whole 2> log || cat log
    state whole > right || echo "the whole run is not whole"
    records=$(wc -l < whole/run/metrics.jsonl)
    while read -r fault; do
      mkdir killed
      (export LD_PRELOAD=$PRELOAD SYSCALL_FAULT="$fault KILL"; run killed) 2> /dev/null
      [ $? = 137 ] || echo "$fault: not killed"
      [ -e killed/run/complete.json ] && echo "$fault: complete too early"
      run killed --resume 2> log || cat log
      state killed > told 2> problems; cat problems; diff right told || echo "$fault: another run directory"
      python3 "$METRICS" "$SCHEMA" killed/run/metrics.jsonl > /dev/null || echo "$fault: the records break their schema"
      # Once more: there is nothing left to do.
      [ "$fault" = 'rename /latest 4' ] || { rm -r killed; continue; }
      find killed -type f -exec md5sum {} + | sort > before
      run killed --resume 2> log || cat log
      find killed -type f -exec md5sum {} + | sort | diff before - || echo "$fault: something was done twice"
      rm -r killed
    done << FAULTS
rename /latest 4
rename /best 4
rename .deleted 1
write /metrics.jsonl $((records - 3))
write /metrics.jsonl $((records - 2))
write /metrics.jsonl $((records - 1))
write /metrics.jsonl $records
rename copies/step-00000012 1
rename /report.svg 5
rename /training_metrics.json 1
rename /report.html 1
rename /complete.json 1
FAULTS
  )sh");
  EXPECT_EQ(result.standard_output, "") << result.standard_error;
}

TEST_F(TrainFinishTest, EvaluateAndGenerateTakeTheNewestCheckpointThoughLatestMissesIt) {
  const ProcessResult result = Shell(R"sh(
    LD_PRELOAD=$PRELOAD SYSCALL_FAULT='rename /latest 4 KILL' \
      train -q --model tiny.json --batch 2 --steps 12 --save-every 3 --out run 2> /dev/null; echo $?
    readlink run/latest
    evaluate --checkpoint run --data other 2> log | grep -o '"checkpoint":"[^"]*"'; grep -c 'warning: run/latest points to' log
    generate --checkpoint run --prompt O --max-tokens 2 --summary summary > /dev/null 2>&1
    grep -o '"checkpoint": "[^"]*"' summary
    # A newer one that is damaged is no reason to fail.
    truncate -s -1 run/checkpoints/step-00000012/model.safetensors
    evaluate -q --checkpoint run --data other 2> /dev/null | grep -o '"checkpoint":"[^"]*"')sh");
  EXPECT_EQ(result.standard_output,
            "137\ncheckpoints/step-00000009\n"
            "\"checkpoint\":\"run/checkpoints/step-00000012\"\n1\n"
            "\"checkpoint\": \"run/checkpoints/step-00000012\"\n"
            "\"checkpoint\":\"run/checkpoints/step-00000009\"\n")
      << result.standard_error;
}

TEST_F(TrainFinishTest, ARunThatStoppedEarlyIsFinishedLikewise) {
  const ProcessResult result = Shell(R"sh(
    run() {
      (cd $1; shift; train -q --model ../tiny.json --data ../shards --eval-data ../other --eval-tokens 300 --eval-every 3 \
        --batch 2 --steps 60 --lr 1e-30 --weight-decay 0 --early-stop 2 --save-every 3 --keep 2 --async-save off --out run "$@")
    }
    mkdir whole; run whole 2> log || cat log
    python3 "$CHECK" whole/run > right; grep -o '"reason": "early stop"' whole/run/complete.json
    for fault in 'rename /latest 2' "write /metrics.jsonl $(wc -l < whole/run/metrics.jsonl)" 'rename /complete.json 1'; do
      mkdir killed
      (export LD_PRELOAD=$PRELOAD SYSCALL_FAULT="$fault KILL"; run killed) 2> /dev/null; echo $?
      run killed --resume 2> log || cat log
      python3 "$CHECK" killed/run | diff right - || echo "$fault: another run directory"
      rm -r killed
    done)sh");
  EXPECT_EQ(result.standard_output, "\"reason\": \"early stop\"\n137\n137\n137\n") << result.standard_error;
}

TEST_F(TrainFinishTest, AMissingCopyKeepsTheRunFromBeingCompleteUntilItIsMade) {
  const ProcessResult result = Shell(R"sh(
    train="train -q --model tiny.json --batch 2 --steps 6 --save-every 3 --copy-retries 0 --copy-to copies --out run"
    echo file > copies; $train 2> /dev/null; echo $?; ls run | grep complete
    $train --resume 2> /dev/null; echo $?; ls run | grep complete
    rm copies; $train --resume 2> log; echo $? $(ls copies); ls run | grep complete
    tail -n 1 run/metrics.jsonl | grep -o '"exit_status":0,"reason":"complete"')sh");
  EXPECT_EQ(result.standard_output,
            "4\n4\n0 step-00000003 step-00000006\ncomplete.json\n\"exit_status\":0,\"reason\":\"complete\"\n")
      << result.standard_error;
}

TEST_F(TrainFinishTest, WhatIsGivenToACompleteRunIsDoneAndRememberedWheneverItIsKilled) {
  const ProcessResult result = Shell(R"sh(
    train -q --model tiny.json --batch 2 --steps 6 --save-every 2 --keep 0 --out whole || exit
    more() { (cd $1; train -q --resume --out run --keep 1 --copy-to copies); }
    state() { (cd $1; python3 "$CHECK" run copies; grep '^keep:\|^copy-to' run/config.yaml); }
    mkdir done; cp -a whole done/run; more done 2> log || cat log
    echo $(ls done/run/checkpoints), $(ls done/copies), $(grep '^keep:\|^copy-to' done/run/config.yaml)
    state done > right || echo "the run is not whole"
    while read -r fault; do
      mkdir killed; cp -a whole killed/run
      (export LD_PRELOAD=$PRELOAD SYSCALL_FAULT="$fault KILL"; more killed) 2> /dev/null
      [ $? = 137 ] || echo "$fault: not killed"
      [ -e killed/run/complete.json ] && echo "$fault: complete too early"
      (cd killed; train -q --resume --out run) 2> log || cat log
      state killed | diff right - || echo "$fault: another run directory"
      rm -r killed
    done << FAULTS
rename copies/step-00000004 1
write run/metrics.jsonl 1
write run/metrics.jsonl 4
rename .deleted 1
rename .deleted 2
rename /complete.json 1
FAULTS
    # As remembered, the copy is made again.
    cd done; rm -r copies/step-00000006; train -q --resume --out run; ls copies | tail -n 1)sh");
  EXPECT_EQ(result.standard_output,
            "step-00000006, step-00000002 step-00000004 step-00000006, keep: \"1\" copy-to: \"copies\"\n"
            "step-00000006\n")
      << result.standard_error;
}

TEST_F(TrainFinishTest, ACompleteRunThatIsToBeCopiedIsNotCompleteWithoutItsCopies) {
  const ProcessResult result = Shell(R"sh(
    train -q --model tiny.json --batch 2 --steps 4 --out run || exit
    train -q --resume --out run --copy-retries 0 --copy-command ': $TRAINWRIGHT_CHECKPOINT; [ -e ready ]' 2> /dev/null; echo $?
    train --status run > /dev/null; echo $?
    touch ready; train -q --resume --out run; echo $?; train --status run > /dev/null; echo $?)sh");
  EXPECT_EQ(result.standard_output, "4\n1\n0\n0\n") << result.standard_error;
}

TEST_F(TrainFinishTest, ACompleteRunThatIsToKeepNoBestCheckpointHasNoLinkToOne) {
  const ProcessResult result = Shell(R"sh(
    train -q --model tiny.json --batch 2 --steps 6 --save-every 1 --eval-data other --eval-tokens 300 --keep 1 \
      --keep-best 2 --out run || exit
    ls run/checkpoints | wc -l | tr 3 2; readlink run/best > /dev/null; echo $?
    train -q --resume --out run --keep-best 0; ls run/checkpoints | wc -l; readlink run/best; echo $?)sh");
  EXPECT_EQ(result.standard_output, "2\n0\n1\n1\n") << result.standard_error;
}

}  // namespace
}  // namespace trainwright::test
