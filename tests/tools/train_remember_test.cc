// Runs that remember what they are: `train --resume --out RUN` with no other option, before the first
// checkpoint and after it; longer runs, and branches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/train_process.h"

namespace trainwright::test {
namespace {

using testing::HasSubstr;

class TrainRememberTest : public TrainProcessTest {
 protected:
  TrainRememberTest() : TrainProcessTest("PRELOAD='" TRAINWRIGHT_SYSCALL_FAULTS "'") {}
  void SetUp() override {
    WriteModel("tiny.json");
    WriteShards(600, 200);
  }
  /// Into whole/ and into cut/, where it is killed before its first checkpoint and resumed.
  void ExpectTheWeightsOfTheWholeRunAfterAKill(const std::string& command) {
    const ProcessResult result = Shell("run='" + command + R"('
      $run --out whole || exit
      $run --out cut & pid=$!
      for _ in $(seq 1000); do grep -q '"type":"step"' cut/metrics.jsonl 2> /dev/null && break; sleep 0.01; done
      kill -9 $pid; wait $pid; [ $? = 137 ] && [ ! -e cut/latest ] || exit 9
      train -q --resume --out cut)");
    ASSERT_EQ(result.exit_status, 0) << result.standard_error;
    EXPECT_EQ(WeightsOf("cut"), WeightsOf("whole"));
  }
  int64_t CountRecords(const std::string& run, const std::string& type) {
    int64_t count = 0;
    for (const nlohmann::json& record : Metrics(run)) count += record.at("type") == type ? 1 : 0;
    return count;
  }
  /// The command behind the first hint or "next:" of some messages.
  static std::string CommandIn(const std::string& messages) {
    const size_t begin = messages.find("train --");
    if (begin == std::string::npos) return "";
    return messages.substr(begin, messages.find('\n', begin) - begin);
  }
};

TEST_F(TrainRememberTest, KilledBeforeItsFirstCheckpointARunIsTheSameRunAfterwards) {
  ExpectTheWeightsOfTheWholeRunAfterAKill(
      "train -q --model tiny.json --batch 2 --steps 300 --seed 7 --lr 0.002 --save-every 0 --schedule "
      "linear");
  EXPECT_EQ(ReadFile(folder_.path("cut/config.yaml")), ReadFile(folder_.path("whole/config.yaml")));
}

TEST_F(TrainRememberTest, KilledBeforeItsFirstCheckpointARunOnOtherDataIsRefused) {
  const ProcessResult result = Shell(R"(
    train -q --model tiny.json --batch 2 --steps 3 --out run && rm -r run/checkpoints run/latest || exit 9
    train --resume --out run --data other)");
  EXPECT_EQ(result.exit_status, 3) << result.standard_error;
  EXPECT_THAT(result.standard_error, HasSubstr("is not the data that the run was started on"));
}

TEST_F(TrainRememberTest, AnEvaluationThatAStopLeftOutIsMadeUpFor) {
  const ProcessResult result = Shell(R"sh(
    run='train -q --model tiny.json --batch 2 --schedule constant --eval-data other --eval-tokens 200 --eval-every 2'
    in_steps() {  # each process stops behind its first step
      $run --max-minutes 1e-9 "$@"
      for _ in 1 2 3 4 5 6; do
        train --status $out && return
        train -q --resume --max-minutes 1e-9 --out $out
      done
    }
    $run --steps 4 --out whole && out=cut && in_steps --steps 4 --out cut &&
      $run --steps 20 --lr 3 --early-stop 1 --out early && out=late && in_steps --steps 20 --lr 3 --early-stop 1 --out late
  )sh");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  const auto evaluations = [&](const std::string& run) {
    std::string text;
    for (const nlohmann::json& record : Metrics(run)) {
      if (record.at("type") == "eval")
        text += record.at("step").dump() + " " + record.at("loss_nats").dump() + "\n";
    }
    return text;
  };
  EXPECT_EQ(evaluations("cut"), evaluations("whole"));
  EXPECT_EQ(evaluations("late"), evaluations("early"));
  EXPECT_EQ(WeightsOf("late"), WeightsOf("early"));
}

TEST_F(TrainRememberTest, ASignalAtTheLastStepDoesNotCompleteARunThatIsToBeEvaluated) {
  const ProcessResult result = Shell(R"sh(
    export LD_PRELOAD=$PRELOAD
    run='train -q --model tiny.json --batch 2 --eval-data other --eval-tokens 200 --eval-every 2 --steps 2 --log-every 1'
    for number in $(seq 20); do  # the first write of a record of step 2
      rm -rf run
      SYSCALL_FAULT="write run/metrics.jsonl $number TERM" $run --out run; status=$?
      [ $status = 143 ] && grep -q '"type":"step".*"step":2' run/metrics.jsonl && break
    done
    unset LD_PRELOAD
    echo $status; train --status run; echo $?
    train -q --resume --out run; echo $?; train --status run > /dev/null; echo $?
    grep '"type":"eval"' run/metrics.jsonl | grep -o '"step":[0-9]*')sh");
  EXPECT_THAT(result.standard_output, HasSubstr("143\nrun: not complete: 2 of 2 steps"))
      << result.standard_error;
  EXPECT_THAT(result.standard_output, HasSubstr("\n1\n0\n0\n\"step\":0\n\"step\":2\n"));
}

TEST_F(TrainRememberTest, WhatARunIsIsNotOnDiskBeforeItsOptionsAre) {
  const ProcessResult begun =
      Shell("mkdir -p run/config.yaml; train -q --model tiny.json --steps 3 --out run");
  EXPECT_EQ(begun.exit_status, 4) << begun.standard_error;
  EXPECT_FALSE(Exists("run/run.json"));
  const ProcessResult resumed = Shell("rmdir run/config.yaml; train --resume --out run");
  EXPECT_EQ(resumed.exit_status, 2) << resumed.standard_error;
  EXPECT_THAT(resumed.standard_error, HasSubstr("holds no run to continue"));
}

TEST_F(TrainRememberTest, ItsOptionsAloneAreEnoughToBeginTheSameRun) {
  const ProcessResult result = Shell(R"(
    train -q --model tiny.json --batch 2 --steps 6 --seed 7 --lr 0.002 --save-every 3 --keep 1 --out whole || exit
    mkdir cut && cp whole/config.yaml cut && train -q --resume --out cut)");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(WeightsOf("cut"), WeightsOf("whole"));
  EXPECT_EQ(ReadFile(folder_.path("cut/config.yaml")), ReadFile(folder_.path("whole/config.yaml")));
  EXPECT_EQ(ReadFile(folder_.path("cut/run.json")), ReadFile(folder_.path("whole/run.json")));
}

TEST_F(TrainRememberTest, APathThatIsNotUtf8IsRefusedByNameAndNothingIsRemembered) {
  const ProcessResult result = Shell(R"(
    cp -r shards $'sh\xff' && train -q --model tiny.json --steps 3 --data $'sh\xff' --out run)");
  EXPECT_EQ(result.exit_status, 2) << result.standard_error;
  EXPECT_THAT(result.standard_error, HasSubstr("not UTF-8"));
  EXPECT_FALSE(Exists("run/run.json"));
}

TEST_F(TrainRememberTest, AnotherOriginThanTheRunsIsRefused) {
  ASSERT_EQ(Shell(R"(train -q --model tiny.json --steps 3 --out one && cp -r one two &&
                     train -q --branch-from one --steps 5 --out branch)")
                .exit_status,
            0);
  for (const char* refused : {"--out two --branch-from one", "--out two --adapter one",
                              "--out branch --branch-from two", "--out branch --branch-from one@1"}) {
    const ProcessResult result = Shell(std::string("train -q --resume ") + refused);
    EXPECT_EQ(result.exit_status, 2) << refused << result.standard_error;
  }
  EXPECT_EQ(Shell("train -q --resume --out branch --branch-from one").exit_status, 0);
  EXPECT_EQ(Shell("train -q --resume --out branch --branch-from one@3").exit_status, 0);
}

TEST_F(TrainRememberTest, ARunThatEarlyStopEndedIsNotSilentlyLeftAsItIsWhenItIsMadeLonger) {
  const ProcessResult made =
      Shell(R"(train -q --model tiny.json --batch 2 --lr 3 --schedule constant --steps 40 \
    --eval-data other --eval-tokens 200 --eval-every 1 --early-stop 1 --out run)");
  ASSERT_EQ(made.exit_status, 0) << made.standard_error;
  ASSERT_LT(Json("run/complete.json").at("steps"), 40);
  const ProcessResult longer = Shell("train -q --resume --out run --steps 50");
  EXPECT_EQ(longer.exit_status, 2) << longer.standard_error;
  EXPECT_THAT(longer.standard_error, HasSubstr("a greater --early-stop than 1"));
  EXPECT_EQ(Shell("train -q --resume --out run --steps 50 --early-stop 100").exit_status, 0);
  EXPECT_EQ(Json("run/complete.json").at("steps"), 50);
}

TEST_F(TrainRememberTest, WhereThereIsNoRunNoneIsBegunWithoutAWordOfWhatItIs) {
  const ProcessResult result = Shell("mkdir run; train --resume --out run");
  EXPECT_EQ(result.exit_status, 2) << result.standard_error;
  EXPECT_THAT(result.standard_error, HasSubstr("holds no run to continue"));
  const ProcessResult mistyped = Shell("train --resume --out rum");
  EXPECT_EQ(mistyped.exit_status, 2) << mistyped.standard_error;
  EXPECT_THAT(mistyped.standard_error, HasSubstr("holds no run to continue"));
  EXPECT_FALSE(Exists("rum"));
  EXPECT_EQ(Shell("train -q --resume --out run --model tiny.json --steps 2").exit_status, 0);
}

TEST_F(TrainRememberTest, NothingHasToBeSaidAgain) {
  const std::string options =
      "train -q --model tiny.json --batch 2 --steps 12 --data shards --data other --data-weights 0.5,0.5 "
      "--eval-data other --eval-every 3 --eval-tokens 500 --save-every 4 --keep 2 --keep-best 1 --log-every "
      "2 "
      "--copy-to copies --compress-state --save-model-only=false ";
  const ProcessResult result = Shell(options + "--out whole && rm -r copies && " + options +
                                     "--out run --max-minutes 0.00001 && train -q --resume --out run");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(WeightsOf("run"), WeightsOf("whole"));
  for (const char* type : {"step", "eval", "copy"}) {
    EXPECT_GE(CountRecords("run", type), CountRecords("whole", type)) << type;
  }
  EXPECT_EQ(Shell("ls run/checkpoints").standard_output, Shell("ls whole/checkpoints").standard_output);
  EXPECT_THAT(Shell("ls copies").standard_output, HasSubstr("step-00000012"));
  EXPECT_TRUE(Exists("run/best"));
}

TEST_F(TrainRememberTest, AnOptionThatMayChangeIsRememberedFromThenOn) {
  const ProcessResult result = Shell(R"(
    train -q --model tiny.json --batch 2 --steps 9 --save-every 3 --keep 1 --out run --max-minutes 0.00001 &&
    train -q --resume --out run --keep 0 --max-minutes 0.00001 && train -q --resume --out run &&
    ls run/checkpoints | wc -l)");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(result.standard_output, "5\n") << "steps 1, 2, 3, 6, 9";
}

TEST_F(TrainRememberTest, FromAnotherFolderTheDataIsStillFound) {
  const ProcessResult result = Shell(R"(
    train -q --model tiny.json --batch 2 --steps 6 --eval-data other --out run --max-minutes 0.00001 &&
    mkdir elsewhere && cd elsewhere && train -q --resume --out ../run)");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(Metrics("run").back().at("type"), "run_end");
}

TEST_F(TrainRememberTest, TheCommandThatIsPrintedNamesAFolderWithASpace) {
  const ProcessResult stopped =
      Shell("train --model tiny.json --batch 2 --steps 6 --out \"it's mine\" --max-minutes 0.00001");
  ASSERT_EQ(stopped.exit_status, 0) << stopped.standard_error;
  const std::string command = CommandIn(stopped.standard_error.substr(stopped.standard_error.find("next: ")));
  EXPECT_EQ(Shell(command).exit_status, 0) << command;
  EXPECT_EQ(Metrics("it's mine").back().at("type"), "run_end");
}

TEST_F(TrainRememberTest, ABranchDoesNotCopyWhereItsParentDoes) {
  const ProcessResult result = Shell(R"(
    train -q --model tiny.json --batch 2 --steps 6 --save-every 3 --copy-to copies --out run &&
    train -q --branch-from run@3 --lr 0.0001 --out branch && ls copies | wc -l)");
  EXPECT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(result.standard_output, "2\n");
}

TEST_F(TrainRememberTest, OptionsOfResumingAreRefusedElsewhere) {
  EXPECT_EQ(Shell("train --model tiny.json --steps 2 --replan-schedule --out run").exit_status, 2);
  EXPECT_EQ(Shell("train --branch-from nowhere --find-batch --out run").exit_status, 2);
}

TEST_F(TrainRememberTest, OtherWeightsToStartFromAreRefused) {
  const ProcessResult result = Shell(R"(
    train -q --model tiny.json --batch 2 --steps 2 --out first && cp -a first second &&
    train -q --init first --steps 6 --out run --max-minutes 0.00001 &&
    train -q --resume --out run --init ./first --max-minutes 0.00001 &&
    (mkdir e; cd e; train -q --resume --out ../run --max-minutes 0.00001) &&
    train --resume --out run --init second)");
  EXPECT_EQ(result.exit_status, 2) << result.standard_error;
  EXPECT_THAT(result.standard_error, HasSubstr("is not what the run was started from"));
}

TEST_F(TrainRememberTest, TheCommandThatAStoppedRunPrintsContinuesIt) {
  const ProcessResult stopped = Shell(
      "train --model tiny.json --batch 2 --steps 6 --data other --eval-data shards --out run "
      "--max-minutes 0.00001");
  ASSERT_EQ(stopped.exit_status, 0) << stopped.standard_error;
  const size_t next = stopped.standard_error.find("next: ");
  ASSERT_NE(next, std::string::npos) << stopped.standard_error;
  const std::string command = CommandIn(stopped.standard_error.substr(next));
  EXPECT_EQ(command, "train --resume --out run");
  EXPECT_EQ(Shell(command).exit_status, 0);
  EXPECT_EQ(Metrics("run").back().at("type"), "run_end");
}

TEST_F(TrainRememberTest, ARunWhoseTimeIsUpSaysSoThoughCopiesAreMissing) {
  const ProcessResult stopped = Shell(
      "echo file > occupied; train --model tiny.json --batch 2 --steps 6 --copy-to occupied --copy-retries 0 "
      "--out run --max-minutes 0.00001");
  EXPECT_EQ(stopped.exit_status, 4);
  EXPECT_THAT(stopped.standard_error, HasSubstr("time is up after step 1 of 6"));
  EXPECT_EQ(stopped.standard_error.find("stopped by"), std::string::npos) << stopped.standard_error;
}

TEST_F(TrainRememberTest, ARunThatLacksItsLastEvaluationPrintsTheCommandThatContinuesIt) {
  const ProcessResult stopped = Shell(
      "train --model tiny.json --batch 2 --steps 1 --eval-data other --eval-tokens 200 --out run "
      "--max-minutes 0.00001");
  ASSERT_EQ(stopped.exit_status, 0) << stopped.standard_error;
  EXPECT_THAT(stopped.standard_error, HasSubstr("time is up after step 1 of 1"));
  const size_t next = stopped.standard_error.find("next: ");
  ASSERT_NE(next, std::string::npos) << stopped.standard_error;
  EXPECT_EQ(CommandIn(stopped.standard_error.substr(next)), "train --resume --out run");
}

TEST_F(TrainRememberTest, AfterTheWatchdogTheHintBranchesFromBeforeTheLossRose) {
  const ProcessResult stopped = Shell(
      "train --model tiny.json --batch 2 --steps 400 --schedule constant --warmup 0 --clip 0 --lr 3 --seed 1 "
      "--watchdog stop --watchdog-ratio 1.1 --save-every 1 --keep 0 --out wild");
  ASSERT_EQ(stopped.exit_status, 6) << stopped.standard_error;
  const int64_t last = Metrics("wild").back().at("step").get<int64_t>();
  EXPECT_THAT(stopped.standard_error,
              HasSubstr("--branch-from wild@" + std::to_string(last - 4) + " --lr 1.5"));
}

TEST_F(TrainRememberTest, AfterTheWatchdogTheHintBeginsAgainWhereNoCheckpointCanBeGoneOnFrom) {
  const ProcessResult stopped = Shell(
      "train --model tiny.json --batch 2 --steps 400 --schedule constant --warmup 0 --clip 0 --lr 3 --seed 1 "
      "--watchdog stop --watchdog-ratio 1.1 --save-every 1 --keep 0 --save-model-only --out wild");
  ASSERT_EQ(stopped.exit_status, 6) << stopped.standard_error;
  EXPECT_THAT(stopped.standard_error,
              HasSubstr("train --config wild/config.yaml --lr 1.5 --out wild-lower-lr"));
}

TEST_F(TrainRememberTest, TheCommandsThatARunPrintsAtItsEndWorkAsTheyStand) {
  const ProcessResult result = Shell(R"sh(
    mv other 'other data'; train="train --model tiny.json --batch 2 --steps 6 --lr 3 --schedule constant"
    follow() { grep -o '\(generate\|evaluate\) --checkpoint .*' log > told; wc -l < told; bash -e told > /dev/null 2>&1; echo $?; }
    $train --out plain 2> log; follow
    $train --eval-data 'other data' --eval-tokens 200 --out 'it is' 2> log; follow
    $train --eval-split 0.1 --eval-split-seed 3 --out split 2> log; follow
    $train --eval-data 'other data' --eval-tokens 200 --eval-every 1 --early-stop 1 --out early 2> log; follow
    grep -c 'stopped early' log; grep 'time is up' log)sh");
  EXPECT_EQ(result.standard_output, "2\n0\n2\n0\n2\n0\n2\n0\n1\n") << result.standard_error;
}

TEST_F(TrainRememberTest, AFinishedConstantRunIsExtendedToTheLongerRun) {
  const ProcessResult result = Shell(R"(
    run="train -q --model tiny.json --batch 2 --schedule constant --warmup 2"
    $run --steps 12 --out whole && $run --steps 7 --out run && train -q --resume --out run --steps 12)");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(WeightsOf("run"), WeightsOf("whole"));
}

TEST_F(TrainRememberTest, AnUnfinishedWsdRunIsExtendedToTheLongerRun) {
  const ProcessResult result = Shell(R"(
    run="train -q --model tiny.json --batch 2 --schedule wsd --warmup 2 --decay-steps 2 --save-every 3"
    $run --steps 12 --out whole && $run --steps 8 --out run --max-minutes 0.00001 &&
    train -q --resume --out run --epochs 0.2 --max-minutes 0.00001 && train -q --resume --out run)");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  const auto state = Json("run/run.json");
  EXPECT_EQ(state.at("plan").at("length_rule"), "epochs 0.2");
  EXPECT_GT(state.at("plan").at("total_steps"), 8);
  EXPECT_EQ(Metrics("run").back().at("type"), "run_end");
}

TEST_F(TrainRememberTest, AKillWhileARunIsMadeLongerLeavesOptionsAndLengthOfOneRun) {
  const ProcessResult result = Shell(R"sh(
    train -q --model tiny.json --batch 2 --schedule constant --steps 4 --save-every 1 --keep 3 --out whole || exit
    for file in run.json config.yaml; do
      for call in $(seq 20); do
        rm -rf run; cp -a whole run
        (export LD_PRELOAD=$PRELOAD SYSCALL_FAULT="any $file $call KILL"
         train -q --resume --out run --steps 6 --keep 1) 2> /dev/null
        [ $? = 137 ] || break
        train -q --resume --out run || echo failed
        echo "$(grep '^keep:' run/config.yaml) $(ls run/checkpoints | wc -l) $(readlink run/latest)" >> states
      done
      echo $file $((call > 4))
    done
    sort -u states)sh");
  EXPECT_EQ(result.standard_output,
            "run.json 1\nconfig.yaml 1\n"
            "keep: \"1\" 1 checkpoints/step-00000006\n"
            "keep: \"3\" 3 checkpoints/step-00000004\n")
      << result.standard_error;
}

TEST_F(TrainRememberTest, DataThatWasAllowedOnceIsTheRunsThoughItWasKilledBeforeItsNextCheckpoint) {
  const ProcessResult result = Shell(R"sh(
    train -q --model tiny.json --batch 2 --schedule constant --steps 4 --out whole && cp -a whole run || exit
    train -q --resume --out whole --steps 8 --data other --allow-data-change || exit
    (export LD_PRELOAD=$PRELOAD SYSCALL_FAULT='write run/checkpoints/.step-00000008 1 KILL'
     train -q --resume --out run --steps 8 --data other --allow-data-change --async-save off) 2> /dev/null
    [ $? = 137 ] || exit 9
    train --resume --out run)sh");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_THAT(result.standard_error, HasSubstr("reading other from its beginning"));
  EXPECT_EQ(WeightsOf("run"), WeightsOf("whole"));
}

TEST_F(TrainRememberTest, MicroBatchesGivenOnceAreTheRunsThoughItWasKilledBeforeItsNextCheckpoint) {
  const ProcessResult result = Shell(R"sh(
    train -q --model tiny.json --batch 4 --accum 1 --schedule constant --steps 4 --save-every 0 --out run || exit
    (export LD_PRELOAD=$PRELOAD SYSCALL_FAULT='write run/checkpoints/.step-00000008 1 KILL'
     train -q --resume --out run --steps 8 --batch 2 --accum 2 --async-save off) 2> /dev/null
    [ $? = 137 ] || exit 9
    train --resume --out run && grep '^batch\|^accum' run/config.yaml)sh");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(result.standard_output, "batch: 2\naccum: 2\n");
  EXPECT_THAT(result.standard_error, HasSubstr("micro-batches of 2 samples instead of the run's 4"));
}

TEST_F(TrainRememberTest, OtherDataForARunThatHasEndedIsRefused) {
  const ProcessResult result = Shell(R"sh(
    train -q --model tiny.json --batch 2 --steps 4 --out run || exit 9
    train -q --resume --out run --data other --allow-data-change; echo $?; train -q --resume --out run; echo $?)sh");
  EXPECT_EQ(result.standard_output, "2\n0\n") << result.standard_error;
  EXPECT_THAT(result.standard_error, HasSubstr("the run has ended: no step would read it"));
}

TEST_F(TrainRememberTest, ALineThatIsDeletedFromTheOptionsIsForgotten) {
  const ProcessResult result = Shell(R"sh(
    train -q --model tiny.json --batch 2 --steps 6 --save-every 2 --copy-to copies --out run --max-minutes 0.00001 || exit 9
    rm -r copies; sed -i /^copy-to/d run/config.yaml
    train -q --resume --out run; echo $?; ls copies 2> /dev/null; ls run/complete.json)sh");
  EXPECT_EQ(result.standard_output, "0\nrun/complete.json\n") << result.standard_error;
}

TEST_F(TrainRememberTest, AnEmptyValueThatAnOlderVersionRememberedIsNone) {
  const ProcessResult result = Shell(R"sh(
    train -q --model tiny.json --batch 2 --steps 6 --out run --max-minutes 0.00001 || exit 9
    echo 'copy-to: ""' >> run/config.yaml; train -q --resume --out run)sh");
  EXPECT_EQ(result.exit_status, 0) << result.standard_error;
}

TEST_F(TrainRememberTest, ACosineRunIsExtendedOnlyWithLeave) {
  const ProcessResult refused = Shell(R"(
    train -q --model tiny.json --batch 2 --steps 4 --out run && train --resume --out run --steps 8)");
  EXPECT_EQ(refused.exit_status, 2) << refused.standard_error;
  EXPECT_THAT(refused.standard_error, HasSubstr("hint: add --replan-schedule"));
  const ProcessResult extended =
      Shell("train --resume --out run --steps 8 --replan-schedule && readlink run/latest");
  ASSERT_EQ(extended.exit_status, 0) << extended.standard_error;
  EXPECT_THAT(extended.standard_error, HasSubstr("learning rate"));
  EXPECT_THAT(extended.standard_output, HasSubstr("step-00000008"));
}

TEST_F(TrainRememberTest, AReplannedRunHasTheLearningRatesOfTheLongerRun) {
  for (const char* options : {"--schedule cosine --warmup-ratio 0.25", "--schedule one-cycle",
                              "--schedule linear", "--schedule wsd --warmup 2", "--schedule constant"}) {
    SCOPED_TRACE(options);
    const ProcessResult result =
        Shell(std::string("run='train -q --model tiny.json --batch 2 --save-every 0 ") + options + R"sh('
      rm -rf whole run; $run --steps 60 --out whole && $run --steps 10 --out run || exit
      train -q --resume --out run --steps 60 --replan-schedule)sh");
    ASSERT_EQ(result.exit_status, 0) << result.standard_error;
    const auto rates = [&](const std::string& run) {
      std::vector<nlohmann::json> found;
      for (const nlohmann::json& record : Metrics(run)) {
        if (record.at("type") == "step" && record.at("step") > 10) found.push_back(record.at("lr"));
      }
      return found;
    };
    EXPECT_EQ(rates("run").size(), 50u);
    EXPECT_EQ(rates("run"), rates("whole"));
  }
}

TEST_F(TrainRememberTest, ALongerRunThatIsKilledBeforeItsNextCheckpointKeepsItsReplannedSchedule) {
  const ProcessResult result = Shell(R"sh(
    train -q --model tiny.json --batch 2 --warmup-ratio 0.25 --steps 4 --out whole && cp -a whole run || exit
    train -q --resume --out whole --steps 12 --replan-schedule || exit
    (export LD_PRELOAD=$PRELOAD SYSCALL_FAULT='write run/checkpoints/.step-00000012 1 KILL'
     train -q --resume --out run --steps 12 --replan-schedule --async-save off) 2> /dev/null
    [ $? = 137 ] || exit 9
    train -q --resume --out run; grep ^warmup run/config.yaml)sh");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(result.standard_output, "warmup-ratio: 0.25\n");
  EXPECT_EQ(WeightsOf("run"), WeightsOf("whole"));
}

TEST_F(TrainRememberTest, ABranchWithNoOtherOptionEndsAsItsParent) {
  const ProcessResult result = Shell(R"(
    train -q --model tiny.json --batch 2 --steps 9 --mixed-precision fp16 --save-every 3 --out run &&
    train --branch-from run@3 --out branch)");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(WeightsOf("branch"), WeightsOf("run"));
  const nlohmann::json parent = Json("branch/run.json").at("parent");
  EXPECT_EQ(parent.at("step"), 3);
  EXPECT_THAT(ShaOf("run/checkpoints/step-00000003/model.safetensors"),
              HasSubstr(parent.at("weights_sha256").get<std::string>()));
  EXPECT_THAT(ShaOf("run/checkpoints/step-00000003/trainwright_state.safetensors"),
              HasSubstr(parent.at("state_sha256").get<std::string>()));
  EXPECT_EQ(Json("branch/latest/metadata.json").at("provenance").at("parent").at("step"), 3);
}

TEST_F(TrainRememberTest, ABranchTakesOtherOptionsAndReadsOtherDataFromItsBeginning) {
  const ProcessResult result = Shell(R"(
    train -q --model tiny.json --batch 2 --steps 6 --save-every 3 --out run &&
    train --branch-from run --steps 10 --lr 0.0001 --data other --out branch)");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_THAT(result.standard_error, HasSubstr("reading other from its beginning"));
  EXPECT_EQ(Json("branch/run.json").at("plan").at("lr"), 0.0001);
  EXPECT_EQ(CountRecords("branch", "step"), 4);
}

TEST_F(TrainRememberTest, ABranchThatIsKilledBeforeItsFirstCheckpointIsTheSameBranchAfterwards) {
  const ProcessResult made =
      Shell("train -q --model tiny.json --batch 2 --steps 4 --schedule constant --out run");
  ASSERT_EQ(made.exit_status, 0) << made.standard_error;
  ExpectTheWeightsOfTheWholeRunAfterAKill("train -q --branch-from run --steps 300 --lr 0.002 --save-every 0");
}

TEST_F(TrainRememberTest, ABranchOfACheckpointsFolderOrOfALinkHasTheOptionsOfItsRun) {
  const ProcessResult result = Shell(R"(
    train -q --model tiny.json --batch 2 --steps 6 --save-every 3 --data other --out run &&
    train -q --branch-from run/checkpoints/step-00000003 --out of-folder &&
    train -q --branch-from run/latest --steps 9 --out of-link && grep -h '^data:' of-*/config.yaml)");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(result.standard_output, "data: \"other\"\ndata: \"other\"\n");
}

TEST_F(TrainRememberTest, ABranchOfALinkBeginsAgainWithTheSameCheckpointThoughItsParentTrainedOn) {
  const ProcessResult result = Shell(R"(
    train -q --model tiny.json --batch 2 --steps 3 --schedule constant --save-every 0 --keep 0 --out run &&
    train -q --branch-from run/latest --steps 6 --out branch && rm -r branch/checkpoints branch/latest &&
    train -q --resume --out run --steps 9 && train -q --resume --out branch)");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_THAT(Json("branch/run.json").at("parent").at("checkpoint").get<std::string>(),
              testing::EndsWith("/run/checkpoints/step-00000003"));
}

TEST_F(TrainRememberTest, ABranchOfACheckpointApartFromItsRunSaysThatItRemembersNoOptions) {
  const ProcessResult result = Shell(R"(
    train -q --model tiny.json --batch 2 --steps 6 --save-every 3 --out run &&
    cp -r run/checkpoints/step-00000003 lone && train --branch-from lone --data shards --out branch)");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_THAT(result.standard_error, HasSubstr("lone remembers no options of a run"));
}

TEST_F(TrainRememberTest, ABranchBegunInAnotherFolderFindsTheDataOfItsParent) {
  const ProcessResult result = Shell(R"(
    train -q --model tiny.json --batch 2 --steps 6 --save-every 3 --eval-data other --out run &&
    mkdir elsewhere && cd elsewhere && train -q --branch-from ../run@3 --lr 0.0001 --out branch)");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(Metrics("elsewhere/branch").back().at("type"), "run_end");
}

TEST_F(TrainRememberTest, ABranchRefusesWhatItCannotBeginWith) {
  const ProcessResult made =
      Shell("train -q --model tiny.json --batch 2 --steps 4 --save-every 2 --keep 0 --out run");
  ASSERT_EQ(made.exit_status, 0) << made.standard_error;
  const auto status = [&](const std::string& options) {
    return Shell("train --branch-from " + options + " --out branch").exit_status;
  };
  EXPECT_EQ(status("nowhere"), 4);
  EXPECT_EQ(status("run@3"), 4);
  EXPECT_EQ(status("run"), 2) << "no step is left";
  EXPECT_EQ(status("run@2 --lora 4"), 2);
  EXPECT_EQ(status("run@2 --optimizer-states bf16"), 2);
  EXPECT_EQ(Shell("truncate -s 99 run/checkpoints/step-00000002/model.safetensors").exit_status, 0);
  EXPECT_EQ(status("run@2"), 3);
  EXPECT_FALSE(Exists("branch"));
}

TEST_F(TrainRememberTest, TheAdviceAfterALossThatIsNotFiniteIsACommandThatWorks) {
  // Without a checkpoint, and from one.
  for (const std::string before : {"", "--branch-from good@2 "}) {
    const ProcessResult made = Shell(
        "[ -e good ] || train -q --model tiny.json --batch 2 --steps 4 --save-every 2 --out good; rm -rf "
        "run*");
    ASSERT_EQ(made.exit_status, 0) << made.standard_error;
    const ProcessResult failed =
        Shell("train " + (before.empty() ? "--model tiny.json --batch 2 " : before) +
              "--steps 6 --lr 1e30 --warmup 0 --schedule constant --save-every 0 --out run");
    ASSERT_EQ(failed.exit_status, 6) << failed.standard_error;
    const size_t hint = failed.standard_error.find("hint: ");
    ASSERT_NE(hint, std::string::npos);
    // Half of 1e30 is no better: the advice is followed with a rate that is.
    std::string command = CommandIn(failed.standard_error.substr(hint));
    const size_t rate = command.find("--lr ");
    ASSERT_NE(rate, std::string::npos) << failed.standard_error;
    const ProcessResult followed = Shell(command);
    EXPECT_EQ(followed.exit_status, 6) << command << "\n" << followed.standard_error;
    command.replace(rate, command.find(' ', rate + 5) - rate, "--lr 1e-3");
    command.replace(command.find("--out "), std::string::npos, "--out run-better");
    EXPECT_EQ(Shell(command).exit_status, 0) << command;
  }
}

}  // namespace
}  // namespace trainwright::test
