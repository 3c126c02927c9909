#include "lib/machine/gpu_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/machine/fixture_devices.h"

namespace trainwright {
namespace {

using test::A100;
using test::H100;
using test::H200;
using test::Working;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(JudgeGpusTest, AWorkingGpuIsUsable) {
  const GpuVerdict verdict = JudgeGpus(Working({H200()}));
  EXPECT_EQ(verdict.state, GpuState::kUsable);
  EXPECT_EQ(verdict.gpu, 0u);
  EXPECT_EQ(verdict.problem, "");
}

TEST(JudgeGpusTest, TheOldestGpuOfCuda13IsUsable) {
  EXPECT_EQ(JudgeGpus(Working({test::Rtx2080Ti()})).state, GpuState::kUsable);
}

TEST(JudgeGpusTest, TellsTheUsualReasonsApart) {
  struct Case {
    GpuState state;
    std::string words;
    std::function<void(GpuEvidence*)> damage;
  };
  const Case cases[] = {
      {GpuState::kNoDriver, "no NVIDIA driver: no such file",
       [](GpuEvidence* e) {
         e->driver_loads = false;
         e->driver_problem = "no such file";
         e->gpus.clear();
       }},
      {GpuState::kDriverTooOld, "runs CUDA 12.4 at most; torch needs 13.0",
       [](GpuEvidence* e) { e->driver_cuda_version = 12040; }},
      {GpuState::kNoGpu, "the driver shows no GPU", [](GpuEvidence* e) { e->gpus.clear(); }},
      {GpuState::kHidden, "CUDA_VISIBLE_DEVICES='' hides all 1",
       [](GpuEvidence* e) { e->visible_devices = ""; }},
      {GpuState::kHidden, "CUDA_VISIBLE_DEVICES='-1' hides all 1",
       [](GpuEvidence* e) { e->visible_devices = "-1"; }},
      {GpuState::kArchitectureNotBuilt,
       "GPU 0 (Tesla V100-SXM2-16GB) has compute capability 7.0: CUDA 13 cannot serve GPUs before 7.5",
       [](GpuEvidence* e) { e->gpus = {test::V100()}; }},
      {GpuState::kBusy, "its compute mode is exclusive and process 1 (python3) has it",
       [](GpuEvidence* e) {
         e->gpus[0].compute_mode = "exclusive_process";
         e->gpus[0].processes = {{GpuProcess{.pid = 1, .name = "python3", .memory_bytes = {}}}};
       }},
      {GpuState::kBusy, "its compute mode is prohibited",
       [](GpuEvidence* e) { e->gpus[0].compute_mode = "prohibited"; }},
      {GpuState::kBusy, "only 100.00 MiB of its memory are free",
       [](GpuEvidence* e) { e->gpus[0].memory_free_bytes = 100 << 20; }},
      {GpuState::kNoBackend, "no CUDA plugin", [](GpuEvidence* e) { e->backend_problem = "no CUDA plugin"; }},
  };
  for (const Case& one : cases) {
    GpuEvidence evidence = Working({H100()});
    one.damage(&evidence);
    const GpuVerdict verdict = JudgeGpus(evidence);
    EXPECT_EQ(GpuStateName(verdict.state), GpuStateName(one.state)) << one.words;
    EXPECT_THAT(verdict.problem, HasSubstr(one.words));
    EXPECT_TRUE(verdict.hint != "" || one.state == GpuState::kNoBackend) << one.words;
  }
}

TEST(JudgeGpusTest, AnotherProcessOnASharedGpuDoesNotMakeItBusy) {
  GpuEvidence evidence = Working({H100()});
  evidence.gpus[0].processes = {{GpuProcess{.pid = 1, .name = {}, .memory_bytes = {}}}};
  EXPECT_EQ(JudgeGpus(evidence).state, GpuState::kUsable);
}

TEST(JudgeGpusTest, AProcessOfTheHostThatHasThisOnesNumberInAContainerIsAnother) {
  GpuEvidence evidence = Working({H100()});
  evidence.gpus[0].compute_mode = "exclusive_process";
  evidence.gpus[0].processes = {{GpuProcess{.pid = getpid(), .name = {}, .memory_bytes = {}}}};
  EXPECT_EQ(JudgeGpus(evidence).state, GpuState::kBusy);
}

TEST(JudgeGpusTest, ADriverOfTheSameMajorVersionRunsAnEarlierMinorOne) {
  GpuEvidence evidence = Working({H100()});
  evidence.needed_cuda_version = 13020;
  EXPECT_EQ(JudgeGpus(evidence).state, GpuState::kUsable);
}

TEST(JudgeGpusTest, LaterArchitecturesRunFromPtx) {
  for (const Capability later : {Capability{8, 9}, Capability{10, 0}, Capability{12, 0}}) {
    EXPECT_EQ(JudgeGpus(Working({test::FixtureGpu("Later", later, 32, 100)})).state, GpuState::kUsable);
  }
}

TEST(JudgeGpusTest, UnknownFactsAreNoReasons) {
  GpuEvidence evidence = Working({GpuInfo{}});
  evidence.driver_cuda_version.reset();
  EXPECT_EQ(JudgeGpus(evidence).state, GpuState::kUsable);
}

TEST(JudgeGpusTest, JudgesTheGpuThatCudaCountsFirst) {
  GpuEvidence evidence = Working({test::V100(), A100()});
  EXPECT_EQ(JudgeGpus(evidence).state, GpuState::kArchitectureNotBuilt);
  evidence.visible_devices = "1,0";
  const GpuVerdict verdict = JudgeGpus(evidence);
  EXPECT_EQ(verdict.state, GpuState::kUsable);
  EXPECT_EQ(verdict.gpu, 1u);
}

TEST(VisibleGpusTest, FollowsCudasRules) {
  std::vector<GpuInfo> gpus = {H100(), H100(), H100()};
  gpus[2].uuid = "GPU-aaaa";
  EXPECT_THAT(VisibleGpus(std::nullopt, gpus), ElementsAre(0, 1, 2));
  EXPECT_THAT(VisibleGpus("2, 0", gpus), ElementsAre(2, 0));
  EXPECT_THAT(VisibleGpus("1,9,0", gpus), ElementsAre(1));  // stops at the first that is none
  EXPECT_THAT(VisibleGpus("GPU-aa", gpus), ElementsAre(2));
  EXPECT_THAT(VisibleGpus("none", gpus), ElementsAre());
}

}  // namespace
}  // namespace trainwright
