#include "lib/run/run_traps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainwright {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RunSetup Sound() {
  RunSetup setup;
  setup.total_steps = 1000;
  setup.warmup_steps = 50;
  setup.warmup_is_wanted = true;
  setup.log_every = 10;
  setup.save_every.steps = 100;
  setup.eval_every = 100;
  setup.has_eval_data = true;
  setup.passes = 3;
  setup.data_tokens = setup.epoch_tokens = 1000000;
  return setup;
}

TEST(RunTraps, ASoundRunHasNone) {
  EXPECT_THAT(FindTraps(Sound()), IsEmpty());
}

TEST(RunTraps, SamplesLongerThanTheModelSaysAreTold) {
  RunSetup setup = Sound();
  setup.sequence_tokens = setup.stated_positions = 512;
  EXPECT_THAT(FindTraps(setup), IsEmpty());
  setup.sequence_tokens = 4096;
  EXPECT_THAT(FindTraps(setup), ElementsAre(HasSubstr("samples of 4096 tokens are longer than the 512")));
}

// 16 x 4 samples a step and 3 epochs of some 900 examples are 42 steps; warm-up and logging are 50 each.
TEST(RunTraps, AWarmUpAndALoggingPeriodBeyondTheRunAreTold) {
  RunSetup setup = Sound();
  setup.total_steps = 42;
  setup.log_every = 50;
  setup.save_every = {.epochs = true};
  setup.eval_every.reset();
  EXPECT_THAT(FindTraps(setup),
              ElementsAre(HasSubstr("warm-up of 50 steps does not end before the run's 42 steps"),
                          HasSubstr("--log-every 50 is more than the run's 42 steps")));
  EXPECT_THAT(FindTraps(setup), Contains(HasSubstr("to 84 % of its peak")));
}

TEST(RunTraps, AWarmUpOfExactlyTheRunIsTold) {
  RunSetup setup = Sound();
  setup.warmup_steps = 1000;
  EXPECT_THAT(FindTraps(setup), ElementsAre(HasSubstr("warm-up of 1000 steps")));
  setup.warmup_steps = 999;
  EXPECT_THAT(FindTraps(setup), IsEmpty());
}

TEST(RunTraps, EvaluationsAndSavesThatNeverComeAreTold) {
  RunSetup setup = Sound();
  setup.eval_every = 1001;
  setup.save_every.steps = 1001;
  EXPECT_THAT(FindTraps(setup), ElementsAre(HasSubstr("--eval-every 1001"), HasSubstr("--save-every 1001")));
  setup = Sound();
  setup.has_eval_data = false;
  EXPECT_THAT(FindTraps(setup), ElementsAre(HasSubstr("no --eval-data")));
  setup = Sound();
  setup.save_every = {.epochs = true};
  setup.passes = 0.5;
  EXPECT_THAT(FindTraps(setup), ElementsAre(HasSubstr("--save-every epoch")));
}

TEST(RunTraps, ModelOnlySavesOfAResumedRunAreTold) {
  RunSetup setup = Sound();
  setup.save_model_only = true;
  EXPECT_THAT(FindTraps(setup), ElementsAre(HasSubstr("no run resumes")));
  setup.resume = true;
  EXPECT_THAT(FindTraps(setup), ElementsAre(HasSubstr("resumed from is the last")));
}

TEST(RunTraps, AnotherEffectiveBatchThanThePresetsIsToldWithTheFlagThatKeepsIt) {
  RunSetup setup = Sound();
  setup.preset = "rft-fast";
  setup.preset_batch = 16, setup.preset_accum = 4;
  setup.batch = 8, setup.accum = 4;
  EXPECT_THAT(FindTraps(setup), ElementsAre(HasSubstr("--accum 8 keeps it")));
  setup.accum = 8;
  EXPECT_THAT(FindTraps(setup), IsEmpty());
  setup.ranks = 4;
  EXPECT_THAT(FindTraps(setup), ElementsAre(HasSubstr("8 x 8 on 4 ranks")));
  EXPECT_THAT(FindTraps(setup), ElementsAre(HasSubstr("--accum 2 keeps it")));
  setup.accum = 2;
  EXPECT_THAT(FindTraps(setup), IsEmpty());
}

TEST(RunTraps, Bf16WithoutInstructionsForItIsToldOnce) {
  RunSetup setup = Sound();
  setup.emulates_bf16 = true;
  EXPECT_THAT(FindTraps(setup), ElementsAre(HasSubstr("bf16 on a device that computes it in fp32")));
}

TEST(RunTraps, TokensOutsideEverySampleFp16OnACpuAndTinyDataAreTold) {
  RunSetup setup = Sound();
  setup.epoch_tokens = 700000;
  setup.sequence_tokens = 128;
  setup.fp16_on_cpu = true;
  setup.passes = 120;
  setup.epoch_samples = 9;
  EXPECT_THAT(FindTraps(setup),
              ElementsAre(HasSubstr("30.0 % of the data's tokens"), HasSubstr("fp16 on a CPU"),
                          HasSubstr("120.0 times (9 samples)")));
}

TEST(RunTraps, TokensThatAreHeldOutAreNotToldAsOutsideEverySample) {
  RunSetup setup = Sound();
  setup.held_out_tokens = 300000;
  setup.epoch_tokens = 700000;
  EXPECT_THAT(FindTraps(setup), IsEmpty());
  setup.epoch_tokens = 560000;
  EXPECT_THAT(FindTraps(setup), ElementsAre(HasSubstr("20.0 % of the data's tokens")));
}

TEST(RunTraps, ChunksThatCannotBeReadAreToldAndNotBlamedOnSeq) {
  RunSetup setup = Sound();
  setup.data_chunks = 88;
  setup.unreadable_chunks = 64;
  EXPECT_THAT(FindTraps(setup), ElementsAre(HasSubstr("64 of the data's 88 chunks cannot be read")));
}

}  // namespace
}  // namespace trainwright
