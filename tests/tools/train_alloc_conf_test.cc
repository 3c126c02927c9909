// When --alloc-conf takes effect: what a stand-in for NVIDIA's driver, the first library of the CUDA backend,
// sees in the environment while it is loaded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/tools/train_process.h"

namespace trainwright::test {
namespace {

class TrainAllocConfTest : public TrainProcessTest {
 protected:
  void SetUp() override {
    WriteModel("tiny.json");
    WriteShards();
  }
  /// What each process that loads the driver sees in its environment. No plugin is there, so that the run
  /// is refused behind it.
  std::string SeenBy(const std::string& options) {
    const ProcessResult refused = Shell(
        "export LD_LIBRARY_PATH='" TRAINWRIGHT_NOTING_DRIVER_FOLDER
        "' DRIVER_NOTES=notes\n"
        "export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64 TRAINWRIGHT_CUDA_PLUGIN=/nowhere/plugin.so\n"
        "train --model tiny.json --seq 64 --batch 2 --steps 1 --out run --device cuda "
        "--dist-timeout 60 " +
        options);
    EXPECT_NE(refused.exit_status, 0);
    EXPECT_THAT(refused.standard_error, testing::HasSubstr("no CUDA plugin: none of /nowhere/plugin.so"));
    return ReadFile(folder_.path("notes"));
  }
};

TEST_F(TrainAllocConfTest, TheAllocatorsSettingsAreInTheEnvironmentBeforeTheBackendIsLoaded) {
  EXPECT_EQ(SeenBy("--alloc-conf expandable_segments:True"),
            "expandable_segments:True|expandable_segments:True\n");
}

TEST_F(TrainAllocConfTest, SoTheyAreInEachOfSeveralRanks) {
  EXPECT_EQ(SeenBy("--alloc-conf expandable_segments:True --nproc 2"),
            "expandable_segments:True|expandable_segments:True\n"
            "expandable_segments:True|expandable_segments:True\n");
}

TEST_F(TrainAllocConfTest, WithoutTheOptionTheBackendSeesWhatTheUserSet) {
  EXPECT_EQ(SeenBy(""), "max_split_size_mb:64|\n");
}

}  // namespace
}  // namespace trainwright::test
