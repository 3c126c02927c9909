// What tells a complete run from one that was stopped: complete.json and train --status.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/tools/train_process.h"

namespace trainwright::test {
namespace {

class TrainStatusTest : public TrainProcessTest {
 protected:
  TrainStatusTest() : TrainProcessTest("PRELOAD='" TRAINWRIGHT_SYSCALL_FAULTS "'") {}
  void SetUp() override {
    WriteModel("tiny.json");
    WriteShards();
  }
  /// "<exit status> <state> <steps>/<total steps>" of folders.
  std::string StatusOf(const std::string& folders) {
    return Shell("for run in " + folders + R"sh(; do
      train --status $run --json > told 2> log; status=$?
      python3 -c 'import json; t = json.load(open("told")); print(t["state"], t["steps"], t["total_steps"])' > line
      echo $run $status $(cat line)
    done)sh")
        .standard_output;
  }
};

TEST_F(TrainStatusTest, TellsCompleteStoppedDamagedAndNoRunApart) {
  const ProcessResult made = Shell(R"sh(
    train="train -q --model tiny.json --batch 2 --steps 6 --save-every 2"
    $train --out whole || exit
    $train --max-minutes 0.00001 --out stopped || exit
    LD_PRELOAD=$PRELOAD SYSCALL_FAULT='write checkpoints/.step-00000002 1 KILL' $train --async-save off --out begun 2> /dev/null
    LD_PRELOAD=$PRELOAD SYSCALL_FAULT='rename /complete.json 1 KILL' $train --out unfinished 2> /dev/null
    mkdir empty
    for name in cut torn lost garbled; do cp -a whole $name; done
    truncate -s -1 cut/latest/model.safetensors
    truncate -s 9 torn/complete.json
    rm -r lost/checkpoints/step-00000006
    cp -a stopped none; truncate -s -1 none/latest/model.safetensors
    rm garbled/complete.json; truncate -s -1 garbled/latest/model.safetensors)sh");
  ASSERT_EQ(made.exit_status, 0) << made.standard_error;
  EXPECT_EQ(StatusOf("whole whole/ stopped begun unfinished garbled cut torn lost none empty nowhere"),
            "whole 0 complete 6 6\n"
            "whole/ 0 complete 6 6\n"
            "stopped 1 incomplete 1 6\n"
            "begun 1 incomplete 0 6\n"
            "unfinished 1 incomplete 6 6\n"
            "garbled 1 incomplete 4 6\n"  // and step 6 is made again
            "cut 3 damaged 0 None\n"
            "torn 3 damaged 0 None\n"
            "lost 3 damaged 0 None\n"
            "none 3 damaged 0 None\n"
            "empty 4 none 0 None\n"
            "nowhere 4 none 0 None\n");
  const ProcessResult text = Shell("train --status stopped; train --status whole; train --json --out x");
  EXPECT_THAT(
      text.standard_output,
      testing::AllOf(testing::HasSubstr("stopped: not complete: 1 of 6 steps"),
                     testing::HasSubstr("train --resume --out stopped"),
                     testing::HasSubstr("whole: complete: 6 of 6 steps, whole/checkpoints/step-00000006")));
  EXPECT_EQ(text.exit_status, 2) << "--json has no meaning without --status";
}

TEST_F(TrainStatusTest, ARunThatWasMadeLongerHasItsNewLengthBeforeItsNextCheckpoint) {
  const ProcessResult made = Shell(R"sh(
    train -q --model tiny.json --batch 2 --steps 2 --schedule constant --save-every 0 --out run || exit
    LD_PRELOAD=$PRELOAD SYSCALL_FAULT='write checkpoints/.step-00000005 1 KILL' \
      train -q --resume --out run --steps 5 --async-save off 2> /dev/null; [ $? = 137 ])sh");
  ASSERT_EQ(made.exit_status, 0) << made.standard_error;
  EXPECT_EQ(StatusOf("run"), "run 1 incomplete 2 5\n");
}

TEST_F(TrainStatusTest, AReaderThatWentAwayIsNoError) {
  const ProcessResult result = Shell(R"sh(
    train -q --model tiny.json --steps 2 --out run || exit
    for json in '' --json; do
      { sleep 0.2; train --status run $json 2> err; echo $? >> err; } | true
      cat err
    done)sh");
  EXPECT_EQ(result.standard_output, "0\n0\n") << result.standard_error;
}

TEST_F(TrainStatusTest, ARunWhoseRecordIsDamagedIsDamaged) {
  const ProcessResult status = Shell(R"(
    train -q --model tiny.json --steps 2 --out run && rm run/complete.json || exit 9
    echo '{"schema":"trainwright.run/1","plan":3}' > run/run.json
    train --status run --json)");
  EXPECT_EQ(status.exit_status, 3) << "resume would refuse it" << status.standard_output;
  EXPECT_EQ(nlohmann::json::parse(status.standard_output).at("state"), "damaged");
}

TEST_F(TrainStatusTest, ARunWhoseNameIsNotUtf8IsToldInJson) {
  const ProcessResult status =
      Shell(R"(train -q --model tiny.json --steps 2 --out $'r\xff' && train --status $'r\xff' --json)");
  EXPECT_EQ(status.exit_status, 0) << status.standard_error;
  EXPECT_EQ(nlohmann::json::parse(status.standard_output).at("state"), "complete");
}

TEST_F(TrainStatusTest, TellsWhetherAProcessHasTheRunNow) {
  const ProcessResult result = Shell(R"sh(
    tell() { train --status run --json | python3 -c 'import json; t = json.load(open(0)); print(t["state"], t["running"])'; }
    train -q --model tiny.json --batch 2 --steps 1000000 --save-every 1 --out run &
    until [ -e run/latest ]; do sleep 0.1; done
    tell; train --status run > told; echo $?; cut -d ' ' -f 1-2 told; grep -c resume told
    train -q --resume --out run 2> /dev/null; echo $?
    kill $!; wait $!
    tell; train --status run > told; echo $?; cut -d ' ' -f 1-3 told; grep -c resume told)sh");
  EXPECT_EQ(result.standard_output,
            "incomplete True\n1\nrun: running:\n0\n"
            "2\n"
            "incomplete False\n1\nrun: not complete:\n1\n")
      << result.standard_error;
}

TEST_F(TrainStatusTest, TheFileOfACompleteRunNamesItsCheckpointAndGoesWithIt) {
  const ProcessResult result = Shell(R"sh(
    train="train -q --model tiny.json --batch 2 --steps 6 --save-every 2 --out run"
    $train --summary summary || exit
    for name in weights_sha256 steps; do
      python3 -c 'import json, sys; f, s = (json.load(open(n)) for n in ("run/complete.json", "summary"))
print(f[sys.argv[1]] == s[sys.argv[1]])' $name
    done
    python3 -c 'import json; f, s = (json.load(open(n)) for n in ("run/complete.json", "summary"))
print(f["final_loss_nats"] == s["last_loss_nats"], f["checkpoint"], f["reason"], f["total_steps"])'
    # The last checkpoint is lost: the run is not complete, and takes its last steps again.
    rm -r run/checkpoints/step-00000006; cp run/complete.json first
    LD_PRELOAD=$PRELOAD SYSCALL_FAULT='write checkpoints/.step-00000006 1 KILL' $train --resume 2> /dev/null
    ls run | grep complete; $train --resume 2> /dev/null; cmp first run/complete.json && echo the same)sh");
  EXPECT_EQ(result.standard_output, "True\nTrue\nTrue checkpoints/step-00000006 complete 6\nthe same\n")
      << result.standard_error;
}

TEST_F(TrainStatusTest, TrainsNothingWhereAnUnsetVariableNamesNoFolder) {
  const ProcessResult told = Shell("train --status \"\"");
  EXPECT_EQ(told.exit_status, 2);
  EXPECT_THAT(told.standard_error, testing::HasSubstr("--status: is empty"));
}

}  // namespace
}  // namespace trainwright::test
