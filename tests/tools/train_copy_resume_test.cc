// Resuming from copies of checkpoints, as processes: what is lost, damaged, another run's, or made by a
// command.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/tools/train_process.h"

namespace trainwright::test {
namespace {

class TrainCopyResumeTest : public TrainProcessTest {
 protected:
  TrainCopyResumeTest() : TrainProcessTest("TRAINWRIGHT_BATCH=2 TRAINWRIGHT_SAVE_EVERY=3") {}
  /// What the uninterrupted run of twelve steps ends with.
  void SetUp() override {
    WriteModel("tiny.json");
    WriteShards(300);
    const ProcessResult made = Shell("train -q --model tiny.json --steps 12 --save-every 3 --out whole");
    ASSERT_EQ(made.exit_status, 0) << made.standard_error;
    whole_ = Files("whole");
  }
  /// Two processes of one step each, with copies of both checkpoints.
  ProcessResult TwoSteps(const std::string& flags) {
    return Shell("train -q --model tiny.json --steps 12 --out run --max-minutes 0.00001 " + flags +
                 " && train -q --resume --out run --max-minutes 0.00001 " + flags + " && ls run/checkpoints");
  }
  std::string Files(const std::string& run) {
    return Shell("cd " + run + "/latest && sha256sum model.safetensors trainwright_state.safetensors")
        .standard_output;
  }

  std::string whole_;
};

class TrainCopyFormTest : public TrainCopyResumeTest, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Forms, TrainCopyFormTest, testing::Values("", "--copy-compress"),
                         [](const auto& info) { return *info.param == '\0' ? "plain" : "compressed"; });

TEST_P(TrainCopyFormTest, ALostRunGoesOnFromItsCopiesAsIfNothingHadHappened) {
  const std::string flags = std::string("--copy-to copies ") + GetParam();
  const ProcessResult two_steps = TwoSteps(flags);
  ASSERT_EQ(two_steps.exit_status, 0) << two_steps.standard_error;
  for (const char* loss :
       {"rm -r run/checkpoints/*", "rm -r run", "truncate -s -1 run/latest/model.safetensors"}) {
    SCOPED_TRACE(loss);
    ASSERT_EQ(Shell("rm -rf saved; mkdir saved; cp -a run copies saved").exit_status, 0);
    const ProcessResult resumed = Shell(std::string(loss) + " && train --resume --out run " + flags);
    EXPECT_EQ(resumed.exit_status, 0) << resumed.standard_error;
    EXPECT_THAT(resumed.standard_error, testing::HasSubstr("brought back run/checkpoints/step-00000002"));
    EXPECT_EQ(Files("run"), whole_);
    ASSERT_EQ(Shell("rm -r run copies; mv saved/run saved/copies .").exit_status, 0);
  }
}

TEST_F(TrainCopyResumeTest, ADamagedCopyAndOneOfAnotherModelArePassedOver) {
  const ProcessResult two_steps = TwoSteps("--copy-to copies");
  ASSERT_EQ(two_steps.exit_status, 0) << two_steps.standard_error;
  const ProcessResult resumed = Shell(R"(
    rm -r run/checkpoints/step-00000002
    cp -r copies/step-00000002 copies/step-00000007
    python3 -c 'path = "copies/step-00000007/trainwright_state.safetensors"
bytes = open(path, "rb").read()
open(path, "wb").write(bytes[:-1] + bytes([bytes[-1] ^ 1]))'
    sed 's/"hidden_size": 32/"hidden_size": 16/; s/"head_dim": 16/"head_dim": 8/' tiny.json > other.json
    train -q --model other.json --steps 9 --save-every 0 --out other --copy-to copies || exit
    train --resume --out run --copy-to copies)");
  EXPECT_EQ(resumed.exit_status, 4) << "step 9 of another run is in the way of its copy";
  EXPECT_THAT(resumed.standard_error,
              testing::AllOf(testing::HasSubstr("the copy copies/step-00000007 is damaged"),
                             testing::HasSubstr("copies/step-00000009 is no copy of this run"),
                             testing::HasSubstr("continuing at step 2")));
  EXPECT_EQ(Files("run"), whole_);
}

TEST_F(TrainCopyResumeTest, ARunWithoutACheckpointTakesNoneOfAnotherRun) {
  for (const char* other : {"--model tiny.json --seed 9", "--model tiny.json --lr 0.001",
                            "--model other.json", "--model tiny.json --data shards --data shards"}) {
    SCOPED_TRACE(other);
    const ProcessResult resumed = Shell(std::string(R"(
      sed 's/"num_hidden_layers": 2/"num_hidden_layers": 1/' tiny.json > other.json; rm -rf other run copies
      train -q --steps 11 --save-every 0 --out other --copy-to copies )") +
                                        other + R"( || exit
      train -q --model tiny.json --steps 12 --out run --max-minutes 0.00001 || exit
      rm -r run/checkpoints/* run/latest
      train --resume --out run --copy-to copies)");
    EXPECT_EQ(resumed.exit_status, 0) << resumed.standard_error;
    EXPECT_THAT(resumed.standard_error, testing::HasSubstr("copies/step-00000011 is no copy of this run"));
    EXPECT_EQ(Files("run"), whole_);
  }
}

TEST_F(TrainCopyResumeTest, ARunTakesNoLaterCheckpointOfAnotherSeed) {
  const ProcessResult resumed = Shell(R"(
    train -q --model tiny.json --steps 11 --save-every 0 --seed 9 --out other --copy-to copies || exit
    train -q --model tiny.json --steps 12 --out run --max-minutes 0.00001 || exit
    train --resume --out run --copy-to copies)");
  EXPECT_EQ(resumed.exit_status, 0) << resumed.standard_error;
  EXPECT_EQ(Files("run"), whole_);
}

TEST_F(TrainCopyResumeTest, ACopyOfTheRunIsKnownThoughLengthAndSplitOfTheStepWereChanged) {
  const ProcessResult resumed = Shell(R"(
    train -q --model tiny.json --steps 3 --schedule constant --out run --copy-to copies || exit
    train -q --resume --out run --steps 9 --batch 1 || exit
    rm -r run/checkpoints/*
    train --resume --out run --steps 12 --batch 2)");
  EXPECT_EQ(resumed.exit_status, 0) << resumed.standard_error;
  EXPECT_THAT(resumed.standard_error, testing::HasSubstr("brought back run/checkpoints/step-00000009"));
}

TEST_F(TrainCopyResumeTest, ACopyOfTheRunIsKnownThoughItsScheduleWasReplanned) {
  const ProcessResult resumed = Shell(R"(
    train -q --model tiny.json --steps 20 --save-every 10 --out run --copy-to copies || exit
    train -q --resume --out run --steps 60 --replan-schedule --max-minutes 0.00001 || exit
    rm -r run/checkpoints/* copies/step-00000021
    train --resume --out run --save-every 60)");
  EXPECT_EQ(resumed.exit_status, 0) << resumed.standard_error;
  EXPECT_THAT(resumed.standard_error, testing::HasSubstr("brought back run/checkpoints/step-00000020"));
}

TEST_F(TrainCopyResumeTest, ACopyOfTheRunIsKnownThoughWhatItsRanksDivideWasChanged) {
  const ProcessResult resumed = Shell(R"(
    train -q --model tiny.json --steps 3 --schedule constant --out run --copy-to copies || exit
    train -q --resume --out run --steps 9 --zero 2 --zero-accum keep || exit
    rm -r run/checkpoints/*
    train --resume --out run --steps 12)");
  EXPECT_EQ(resumed.exit_status, 0) << resumed.standard_error;
  EXPECT_THAT(resumed.standard_error, testing::HasSubstr("brought back run/checkpoints/step-00000009"));
}

TEST_F(TrainCopyResumeTest, ACopyOfTheRunIsKnownThoughTheTokensOfItsMicroBatchesWereChanged) {
  const ProcessResult resumed = Shell(R"(
    train -q --model tiny.json --steps 3 --schedule constant --max-tokens-per-batch 90 --out run --copy-to copies || exit
    train -q --resume --out run --steps 9 --max-tokens-per-batch 70 || exit
    rm -r run/checkpoints/* copies/step-0000000[4-9]
    train --resume --out run --steps 9)");
  EXPECT_EQ(resumed.exit_status, 0) << resumed.standard_error;
  EXPECT_THAT(resumed.standard_error, testing::HasSubstr("brought back run/checkpoints/step-00000003"));
}

TEST_F(TrainCopyResumeTest, WithoutTheFlagTheMessageSaysWhereTheCopiesAreAndNothingIsBegunAnew) {
  ASSERT_EQ(TwoSteps("--copy-to copies").exit_status, 0);
  const std::string metrics = ReadFile(folder_.path("run/metrics.jsonl"));
  // Of a run that does not remember its options, as those of 0.1.0 did not.
  const ProcessResult refused = Shell("rm -r run/checkpoints/* run/config.yaml; train --resume --out run");
  EXPECT_EQ(refused.exit_status, 3);
  EXPECT_THAT(refused.standard_error, testing::AllOf(testing::HasSubstr("step 2: copies/step-00000002"),
                                                     testing::HasSubstr("--copy-to copies")));
  EXPECT_EQ(ReadFile(folder_.path("run/metrics.jsonl")), metrics);
  // Damaged copies are no reason to begin anew either.
  const ProcessResult damaged =
      Shell("truncate -s 9 copies/*/config.json; train --resume --out run --copy-to copies");
  EXPECT_EQ(damaged.exit_status, 3) << damaged.standard_error;
  EXPECT_EQ(ReadFile(folder_.path("run/metrics.jsonl")), metrics);
}

TEST_F(TrainCopyResumeTest, CopiesOfACommandAreNamedAndBroughtBackByHand) {
  ASSERT_EQ(TwoSteps("--copy-command 'mkdir -p far; cp -r -t far'").exit_status, 0);
  const ProcessResult refused = Shell("rm -r run/checkpoints/*; train --resume --out run");
  EXPECT_EQ(refused.exit_status, 3);
  EXPECT_THAT(refused.standard_error,
              testing::AllOf(testing::HasSubstr("cp -r -t far"),
                             testing::HasSubstr("bring it back as run/checkpoints/step-00000002")));
  const ProcessResult resumed =
      Shell("cp -r far/step-00000002 run/checkpoints/ && train -q --resume --out run");
  EXPECT_EQ(resumed.exit_status, 0) << resumed.standard_error;
  EXPECT_EQ(Files("run"), whole_);
}

}  // namespace
}  // namespace trainwright::test
