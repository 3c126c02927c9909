#include "lib/device/cuda_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "lib/base/error.h"
#include "lib/device/device.h"
#include "lib/device/gpu_limits.h"

namespace trainwright {
namespace {

using testing::HasSubstr;

constexpr char kEmpty[] = TRAINWRIGHT_PLUGINS "empty.so";

/// Files that all load, with the named plugin of tests/device/plugins.
CudaBackendFiles With(const std::string& plugin) {
  return {.driver = kEmpty, .torch_cuda = kEmpty, .plugins = {TRAINWRIGHT_PLUGINS + plugin + ".so"}};
}

std::string ProblemOf(const CudaBackendFiles& files) {
  const CudaBackend backend = LoadCudaBackend(files);
  EXPECT_EQ(backend.plugin, nullptr);
  EXPECT_NE(backend.hint, "");
  return backend.problem;
}

TEST(CudaBackendTest, NamesTheFirstThingThatIsMissing) {
  CudaBackendFiles files = With("old_gpu");
  files.driver = "libno-such-driver.so.1";
  EXPECT_THAT(ProblemOf(files), HasSubstr("no NVIDIA driver: libno-such-driver.so.1"));
  files = With("old_gpu");
  files.plugins = {"/nowhere/a.so", "/nowhere/b.so"};
  EXPECT_THAT(ProblemOf(files), HasSubstr("none of /nowhere/a.so, /nowhere/b.so exists"));
  files = With("old_gpu");
  files.torch_cuda = "/nowhere/libtorch_cuda.so";
  EXPECT_THAT(ProblemOf(files), HasSubstr("libtorch_cuda cannot be loaded: /nowhere/libtorch_cuda.so"));
}

TEST(CudaBackendTest, NamesTheLibraryThatLibtorchCudaLacksAndTheCommandThatFetchesIt) {
  CudaBackendFiles files = With("turing");
  files.torch_cuda = TRAINWRIGHT_PLUGINS "needs_another.so";
  const CudaBackend backend = LoadCudaBackend(files);
  EXPECT_EQ(backend.problem,
            "libtorch_cuda cannot be loaded: it needs libtrainwright_not_here.so, which is not here");
  EXPECT_THAT(backend.hint, HasSubstr("scripts/fetch_libtorch.sh --cuda"));
}

TEST(CudaBackendTest, RefusesAPluginOfAnotherBuildBeforeUsingIt) {
  EXPECT_THAT(ProblemOf(With("other_interface")), HasSubstr("interface 999; this program is"));
  EXPECT_THAT(ProblemOf(With("other_torch")), HasSubstr("was built with torch 1.0.0; this program with 2."));
  EXPECT_THAT(ProblemOf(With("empty")), HasSubstr("is no trainwright CUDA plugin"));
}

TEST(CudaBackendTest, RefusesGpusThatItCannotUse) {
  EXPECT_THAT(ProblemOf(With("no_gpu")), HasSubstr("the driver shows no GPU"));
  EXPECT_THAT(ProblemOf(With("old_driver")), HasSubstr("CUDA driver version is insufficient"));
  EXPECT_EQ(ProblemOf(With("old_gpu")),
            "GPU 0 (Fake GPU) has compute capability 7.0: CUDA 13 cannot serve GPUs before 7.5");
}

TEST(CudaBackendTest, TakesAGpuOfCapability75) {
  const CudaBackend backend = LoadCudaBackend(With("turing"));
  EXPECT_NE(backend.plugin, nullptr) << backend.problem;
}

TEST(GpuLimitsTest, TuringHasNeitherBf16NorFlashAttention) {
  const GpuLimits turing = LimitsOf({.name = "Tesla T4", .capability_major = 7, .capability_minor = 5});
  EXPECT_FALSE(turing.bf16);
  EXPECT_FALSE(turing.flash_attention);
  EXPECT_EQ(turing.gpu, "GPU 0 (Tesla T4) of compute capability 7.5");
  for (const int32_t major : {8, 9, 10, 12}) {
    const GpuLimits later = LimitsOf({.capability_major = major, .capability_minor = 0});
    EXPECT_TRUE(later.bf16 && later.flash_attention) << major;
  }
}

int32_t TwoGpus(char*, size_t) {
  return 2;
}

bool InfoOfTwo(int32_t device, CudaDeviceInfo* info) {
  EXPECT_LT(device, 2);
  if (device < 2) *info = {.name = "H200", .capability_major = 9, .capability_minor = 0};
  return device < 2;
}

TEST(GpuLimitsTest, NoGpuPastTheLastIsAskedFor) {
  const std::vector<GpuLimits> limits = LimitsOfGpus({.device_count = &TwoGpus, .device_info = &InfoOfTwo});
  ASSERT_EQ(limits.size(), 2u);
  EXPECT_EQ(limits[1].gpu, "GPU 1 (H200) of compute capability 9.0");
}

TEST(GpuLimitsTest, Fp8BeginsWithCapability89) {
  const auto fp8 = [](int32_t major, int32_t minor) {
    return LimitsOf({.capability_major = major, .capability_minor = minor}).fp8;
  };
  EXPECT_FALSE(fp8(7, 5) || fp8(8, 0) || fp8(8, 6));
  EXPECT_TRUE(fp8(8, 9) && fp8(9, 0) && fp8(10, 0) && fp8(12, 0));
}

TEST(GpuLimitsTest, HaveTheMultiprocessorsThatTheDriverShows) {
  const CudaDeviceInfo h200{.capability_major = 9, .capability_minor = 0, .multiprocessors = 132};
  EXPECT_EQ(LimitsOf(h200).multiprocessors, 132);
}

TEST(CudaBackendTest, LooksBesideTheProgramUnlessThePluginIsNamed) {
  const CudaBackendFiles usual = DefaultCudaBackendFiles();
  ASSERT_EQ(usual.plugins.size(), 2u);
  EXPECT_THAT(usual.plugins[0], testing::EndsWith("/tests/libtrainwright_cuda.so"));
  EXPECT_THAT(usual.plugins[1], testing::EndsWith("/libexec/trainwright/libtrainwright_cuda.so"));
  EXPECT_THAT(usual.torch_cuda, testing::EndsWith("/libtorch_cuda.so"));
  setenv("TRAINWRIGHT_CUDA_PLUGIN", "/some/plugin.so", 1);
  EXPECT_THAT(DefaultCudaBackendFiles().plugins, testing::ElementsAre("/some/plugin.so"));
  unsetenv("TRAINWRIGHT_CUDA_PLUGIN");
}

TEST(ChooseDeviceTest, WithoutAGpuAutoIsTheCpuAndCudaAnErrorThatSaysWhy) {
  if (ProcessCudaBackend().plugin != nullptr) GTEST_SKIP() << "NOT RUN: this machine has a GPU";
  EXPECT_TRUE(ChooseDevice("auto").is_cpu());
  try {
    ChooseDevice("cuda");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDevice);
    EXPECT_EQ(error.problem(), ProcessCudaBackend().problem);
    EXPECT_NE(error.hint(), "");
  }
}

}  // namespace
}  // namespace trainwright
