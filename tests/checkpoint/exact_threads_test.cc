#include "lib/checkpoint/exact_threads.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/support.h"

namespace trainwright {
namespace {

class ExactThreadsTest : public testing::Test {
 protected:
  void WriteMetadata(const std::string& step, const std::string& text) const {
    const std::string folder = folder_.path("checkpoints/step-0000000" + step);
    std::filesystem::create_directories(folder);
    test::WriteFile(folder + "/metadata.json", text);
  }
  void WriteCheckpoint(const std::string& step, int exact_world, int threads) const {
    nlohmann::json metadata = {{"schema", "trainwright.checkpoint/1"},
                               {"system_info", {{"threads", threads}}}};
    metadata["training_config_summary"] = {{"batch", 1}};
    if (exact_world > 0) metadata["training_config_summary"]["exact-world"] = exact_world;
    WriteMetadata(step, metadata.dump());
  }

  test::TemporaryFolder folder_;
};

TEST_F(ExactThreadsTest, AreThoseOfTheNewestCheckpoint) {
  WriteCheckpoint("2", 4, 3);
  WriteCheckpoint("4", 4, 5);
  EXPECT_EQ(ThreadsOfExactRun(folder_.path()), 5);
}

TEST_F(ExactThreadsTest, ARunThatPromisesNoBitsHasNone) {
  WriteCheckpoint("2", 0, 3);
  EXPECT_EQ(ThreadsOfExactRun(folder_.path()), 0);
}

TEST_F(ExactThreadsTest, ACheckpointThatCannotBeReadLeavesThoseOfTheOneBefore) {
  WriteCheckpoint("2", 4, 3);
  WriteMetadata("4", R"({"schema": )");
  WriteMetadata("6", R"({"schema": "trainwright.checkpoint/1", "system_info": 7})");
  EXPECT_EQ(ThreadsOfExactRun(folder_.path()), 3);
}

TEST_F(ExactThreadsTest, WhereThereIsNoRunThereAreNone) {
  EXPECT_EQ(ThreadsOfExactRun(folder_.path()), 0);
  EXPECT_EQ(ThreadsOfExactRun(folder_.path("nowhere")), 0);
}

}  // namespace
}  // namespace trainwright
