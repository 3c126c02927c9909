#include "lib/train/restarted_run.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "lib/nn/linear/gemm_kernels.h"
#include "lib/run/run_directory.h"
#include "lib/run/run_record.h"
#include "tests/support/support.h"
#include "tests/train/thread_world.h"

namespace trainwright {
namespace {

class RestartedRunTest : public ::testing::Test {
 protected:
  /// The settings of a first start.
  TrainSettings First() const {
    TrainSettings settings;
    settings.out = folder_.path();
    settings.steps = 10;
    return settings;
  }
  void Begin() const { test::WriteFile(folder_.path(kRunRecordFile), "{}"); }
  static bool Resumes(const TrainSettings& settings, int64_t restarts) {
    return SettingsAfterRestart(settings, restarts, Solo()).resume;
  }

  test::TemporaryFolder folder_;
};

TEST_F(RestartedRunTest, ARestartGoesOnWithARunThatHasBegun) {
  EXPECT_FALSE(Resumes(First(), 1));
  Begin();
  EXPECT_TRUE(Resumes(First(), 1));
}

TEST_F(RestartedRunTest, AFirstStartBegins) {
  Begin();
  EXPECT_FALSE(Resumes(First(), 0));
}

TEST_F(RestartedRunTest, WithoutItsFolderARunBeginsAnew) {
  TrainSettings settings = First();
  settings.out = "";
  EXPECT_FALSE(Resumes(settings, 1));
}

TEST_F(RestartedRunTest, WhatOnlyTellsOfARunResumesNone) {
  Begin();
  TrainSettings settings = First();
  settings.dry_run = true;
  EXPECT_FALSE(Resumes(settings, 1));
}

TEST_F(RestartedRunTest, ABatchThatWasFoundIsNotLookedForAgain) {
  Begin();
  TrainSettings settings = First();
  settings.find_batch = true;
  settings.batch = 8;
  const TrainSettings again = SettingsAfterRestart(settings, 1, Solo());
  EXPECT_FALSE(again.find_batch);
  EXPECT_EQ(again.batch, std::nullopt);
  EXPECT_EQ(again.steps, 10);
}

TEST_F(RestartedRunTest, AnExactRunKeepsItsThreadsUnlessOthersAreGiven) {
  const std::string checkpoint = folder_.path("checkpoints/step-00000002");
  std::filesystem::create_directories(checkpoint);
  test::WriteFile(checkpoint + "/metadata.json",
                  R"({"schema": "trainwright.checkpoint/1", "system_info": {"threads": 3},)"
                  R"( "training_config_summary": {"exact-world": 2}})");
  TrainSettings settings = First();
  EXPECT_EQ(ThreadsToGoOnWith(settings, 0, Solo()), 0) << "a first start";
  EXPECT_EQ(ThreadsToGoOnWith(settings, 1, Solo()), 3);
  settings.resume = true;
  EXPECT_EQ(ThreadsToGoOnWith(settings, 0, Solo()), 3);
  settings.threads = 2;
  EXPECT_EQ(ThreadsToGoOnWith(settings, 0, Solo()), 0);
}

TEST_F(RestartedRunTest, ARunKeepsItsKernels) {
  TrainSettings settings = First();
  settings.resume = true;
  EXPECT_EQ(KernelsToGoOnWith(settings, 0), std::nullopt) << "no record";
  const CpuGemms kept = {CpuGemms::Fp32::kLibrary, CpuGemms::Bf16::kEmulated};
  const auto record = [&](DeviceChoices choices) {
    WriteRunRecord(folder_.path("run.json"),
                   {.model = nlohmann::ordered_json::object(), .choices = std::move(choices)});
  };
  record({.cpu_gemms = kept});
  EXPECT_EQ(KernelsToGoOnWith(settings, 0), kept);
  settings.resume = false;
  EXPECT_EQ(KernelsToGoOnWith(settings, 0), std::nullopt) << "a first start";
  EXPECT_EQ(KernelsToGoOnWith(settings, 1), kept);
  record({});
  EXPECT_EQ(KernelsToGoOnWith(settings, 1), FormerCpuGemms()) << "of before there was a choice";
  settings.out.clear();
  EXPECT_EQ(KernelsToGoOnWith(settings, 1), std::nullopt) << "no folder";
}

/// A rank that starts late may find the run that rank 0 has begun meanwhile.
TEST_F(RestartedRunTest, TheWriterSaysWhetherThereIsARun) {
  test::ThreadWorld world(2);
  TrainSettings of_writer = First();
  const TrainSettings of_other = First();
  of_writer.out = folder_.path("none");
  Begin();
  const auto after = world.Run(
      [&](World* rank) { return SettingsAfterRestart(rank->is_writer() ? of_writer : of_other, 1, rank); });
  for (const TrainSettings& settings : after) EXPECT_FALSE(settings.resume);
}

}  // namespace
}  // namespace trainwright
