// Ranks connect before each has chosen its device, and torch keeps its first answer about GPUs.
#include <gtest/gtest.h>

#include <string>

#include "tests/dist/rank_processes.h"
#include "tests/support/fake_cuda_hooks.h"

namespace trainwright {
namespace {

TEST(CudaHooksTest, RanksThatConnectDoNotAskTorchForAGpu) {
  if (!test::FakeCudaHooks::Register()) GTEST_SKIP() << "NOT RUN: this machine has a GPU";
  test::RankProcesses processes({.ranks = 2}, [](C10dWorld* world, const test::RankTalk& talk) {
    world->Agree({world->rank()});
    world->Close();
    talk.Report(std::to_string(test::FakeCudaHooks::made));
  });
  ASSERT_TRUE(processes.Await(20));
  EXPECT_EQ(processes.ReportOf(0), "0");
  EXPECT_EQ(processes.ReportOf(1), "0");
}

}  // namespace
}  // namespace trainwright
