#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/machine/cuda_driver.h"
#include "lib/machine/gpu_info.h"

namespace trainwright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(NvmlTest, ReadsWhatALibraryTells) {
  std::string problem;
  const auto nvml = OpenNvml(&problem, TRAINWRIGHT_PLUGINS "nvml.so");
  ASSERT_NE(nvml, nullptr) << problem;
  EXPECT_EQ(nvml->Driver().version, "580.65.06");
  EXPECT_EQ(nvml->Driver().cuda_version, 13000);
  const std::vector<GpuInfo> gpus = nvml->Gpus();
  ASSERT_EQ(gpus.size(), 2u);
  const GpuInfo& gpu = gpus[0];
  EXPECT_EQ(gpu.name, "NVIDIA H200");
  EXPECT_EQ(gpu.uuid, "GPU-01020304-0506-0708-090a-0b0c0d0e0f10");
  EXPECT_EQ(gpu.capability, (Capability{9, 0}));
  EXPECT_EQ(gpu.memory_total_bytes, 150754820096);
  EXPECT_EQ(gpu.memory_free_bytes, 150000000000);
  EXPECT_EQ(gpu.memory_used_bytes, 754820096);
  EXPECT_EQ(gpu.ecc, true);
  EXPECT_EQ(gpu.mig, false);
  EXPECT_EQ(gpu.sm_clock_mhz, 345);
  EXPECT_EQ(gpu.sm_clock_max_mhz, 1980);
  EXPECT_EQ(gpu.memory_clock_mhz, 3201);
  EXPECT_EQ(gpu.memory_clock_max_mhz, 3202);
  EXPECT_EQ(gpu.power_limit_w, 700);
  EXPECT_EQ(gpu.power_draw_w, 75.5);
  EXPECT_EQ(gpu.temperature_c, 31);
  EXPECT_EQ(gpu.utilization_percent, 97);
  EXPECT_EQ(gpu.memory_utilization_percent, 41);
  EXPECT_THAT(gpu.throttle_reasons.value(), ElementsAre("power_cap", "hw_thermal"));
  EXPECT_EQ(gpu.compute_mode, "default");
}

TEST(NvmlTest, TellsAllProcessesHoweverMany) {
  std::string problem;
  const auto nvml = OpenNvml(&problem, TRAINWRIGHT_PLUGINS "nvml.so");
  ASSERT_NE(nvml, nullptr) << problem;
  const std::vector<GpuInfo> gpus = nvml->Gpus();
  const auto& processes = gpus[0].processes;
  ASSERT_TRUE(processes.has_value());
  ASSERT_EQ(processes->size(), 65u);
  EXPECT_EQ(processes->front().pid, 4242);
  EXPECT_EQ(processes->front().name, "/usr/bin/python3");
  EXPECT_EQ(processes->front().memory_bytes, 1 << 30);
  EXPECT_FALSE(processes->back().name.has_value());
  EXPECT_FALSE(processes->back().memory_bytes.has_value());  // the library's word for unknown
}

TEST(NvmlTest, AProcessHasItsNewestSampleOfUseAndNoneTwice) {
  std::string problem;
  const auto nvml = OpenNvml(&problem, TRAINWRIGHT_PLUGINS "nvml.so");
  ASSERT_NE(nvml, nullptr) << problem;
  const auto first = nvml->Gpus()[0].processes.value();
  EXPECT_EQ(first[0].utilization_percent, 88);
  EXPECT_EQ(first[0].memory_utilization_percent, 40);
  EXPECT_EQ(first[1].utilization_percent, 0);                              // listed, and it did not compute
  EXPECT_EQ(nvml->Gpus()[0].processes.value()[0].utilization_percent, 0);  // no sample since then
}

TEST(NvmlTest, WhatTheLibraryRefusesIsAbsent) {
  std::string problem;
  const auto nvml = OpenNvml(&problem, TRAINWRIGHT_PLUGINS "nvml.so");
  ASSERT_NE(nvml, nullptr) << problem;
  const nlohmann::ordered_json silent = EncodeGpuInfo(nvml->Gpus()[1]);
  for (const auto& [name, value] : silent.items()) {
    EXPECT_EQ(value.is_null(), name != "index" && name != "name") << name << ": " << value;
  }
}

TEST(NvmlTest, SaysWhyItCannotBeUsed) {
  const auto problem_of = [](const std::string& library) {
    std::string problem;
    EXPECT_EQ(OpenNvml(&problem, library), nullptr);
    return problem;
  };
  EXPECT_THAT(problem_of("libno-such-nvml.so.1"), HasSubstr("libno-such-nvml.so.1"));
  EXPECT_THAT(problem_of(TRAINWRIGHT_PLUGINS "nvml_mismatch.so"), "Driver/library version mismatch");
  EXPECT_THAT(problem_of(TRAINWRIGHT_PLUGINS "driver.so"), HasSubstr("lacks the functions of NVML"));
}

TEST(CudaDriverTest, ReadsWhatADriverShows) {
  const CudaDriver driver = ReadCudaDriver(TRAINWRIGHT_PLUGINS "driver.so");
  EXPECT_TRUE(driver.loads);
  EXPECT_EQ(driver.problem, "");
  EXPECT_EQ(driver.cuda_version, 13000);
  ASSERT_EQ(driver.gpus.size(), 2u);
  EXPECT_EQ(driver.gpus[0].uuid, "GPU-01020304-0506-0708-090a-0b0c0d0e0f10");
  EXPECT_EQ(driver.gpus[0].sm_count, 132);
  EXPECT_EQ(driver.gpus[0].capability, (Capability{9, 0}));
  EXPECT_EQ(driver.gpus[0].memory_total_bytes, 150754820096);
  EXPECT_NE(driver.gpus[1].uuid, driver.gpus[0].uuid);
}

TEST(CudaDriverTest, TellsItsVersionEvenWhereItDoesNotStart) {
  const CudaDriver driver = ReadCudaDriver(TRAINWRIGHT_PLUGINS "driver_without_gpu.so");
  EXPECT_TRUE(driver.loads);
  EXPECT_EQ(driver.problem, "CUDA_ERROR_NO_DEVICE");
  EXPECT_EQ(driver.cuda_version, 13000);
  const CudaDriver none = ReadCudaDriver("libno-such-driver.so.1");
  EXPECT_FALSE(none.loads);
  EXPECT_THAT(none.problem, HasSubstr("libno-such-driver.so.1"));
}

TEST(CudaVersionTextTest, SplitsTheNumber) {
  EXPECT_EQ(CudaVersionText(13000), "13.0");
  EXPECT_EQ(CudaVersionText(12040), "12.4");
}

}  // namespace
}  // namespace trainwright
