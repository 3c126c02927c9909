// Torch keeps its first answer about GPUs: nothing may ask it before the CUDA backend is loaded. Each case in
// a process of its own.
#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/device/cuda_backend.h"
#include "lib/device/process_setup.h"
#include "tests/support/fake_cuda_hooks.h"

namespace trainwright {
namespace {

using test::FakeCudaHooks;

/// A backend that loads, of the named plugin of tests/device/plugins.
CudaBackend LoadFake() {
  constexpr char kEmpty[] = TRAINWRIGHT_PLUGINS "empty.so";
  return LoadCudaBackend(
      {.driver = kEmpty, .torch_cuda = kEmpty, .plugins = {TRAINWRIGHT_PLUGINS "turing.so"}});
}

TEST(CudaBackendTest, IsRefusedWhereTorchWasAskedForAGpuBefore) {
  if (at::hasCUDA()) GTEST_SKIP() << "NOT RUN: this machine has a GPU";
  ASSERT_TRUE(FakeCudaHooks::Register());  // too late: torch has kept its answer
  const CudaBackend backend = LoadFake();
  EXPECT_EQ(backend.plugin, nullptr);
  EXPECT_THAT(backend.problem, testing::HasSubstr("asked torch for a GPU before"));
}

TEST(CudaBackendTest, IsHandedOutWithTheAllocatorOfGpuMemoryInitialised) {
  if (!FakeCudaHooks::Register()) GTEST_SKIP() << "NOT RUN: this machine has a GPU";
  const CudaBackend backend = LoadFake();
  EXPECT_NE(backend.plugin, nullptr) << backend.problem;
  EXPECT_EQ(FakeCudaHooks::initialised, 1);  // else a cap on its memory throws
}

TEST(SetUpProcessTest, DoesNotAskTorchForAGpu) {
  if (!FakeCudaHooks::Register()) GTEST_SKIP() << "NOT RUN: this machine has a GPU";
  SetUpProcess({.threads = 2, .device = "auto", .mem_fraction = 0.5, .keep_room_for_libraries = true});
  EXPECT_EQ(FakeCudaHooks::made, 0);
}

}  // namespace
}  // namespace trainwright
