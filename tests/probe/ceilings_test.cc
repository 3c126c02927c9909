#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "lib/machine/disk_ceiling.h"
#include "lib/probe/gemm_ceiling.h"
#include "lib/probe/memory_ceiling.h"
#include "lib/probe/transfer_ceiling.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

constexpr int64_t kMiB = 1 << 20;

// Rates are not judged: a machine may be as slow as it likes. What is named, counted and left behind is.
void ExpectSampled(const Measurement& one) {
  EXPECT_GE(one.rate.samples, kLeastSamples) << one.what;
  EXPECT_GT(one.rate.median, 0) << one.what;
  EXPECT_GE(one.rate.best, one.rate.median) << one.what;
  EXPECT_TRUE(one.rate.spread.has_value()) << one.what;
  EXPECT_GT(one.rate.time_s, 0) << one.what;
}

TEST(MeasureGemmTest, MeasuresEveryTypeOfACpu) {
  const c10::Device cpu(c10::DeviceType::CPU);
  EXPECT_EQ(GemmsOf(cpu).size(), 5u);
  for (const auto& [type, kernel] : GemmsOf(cpu)) {
    const Measurement one = MeasureGemm(cpu, type, kernel, {.time_s = 0.01, .largest = 256});
    ExpectSampled(one);
    EXPECT_EQ(one.dtype, GemmTypeName(type));
    EXPECT_EQ(one.size, "256 x 256 x 256");
    EXPECT_EQ(one.method, kernel == GemmKernel::kTorch ? "torch" : "trainwright");
    EXPECT_FALSE(one.fraction_of_spec.has_value());
  }
}

TEST(MeasureGemmTest, TellsTheShareOfThePublishedRate) {
  const Measurement one = MeasureGemm(c10::Device(c10::DeviceType::CPU), GemmType::kBf16, GemmKernel::kTorch,
                                      {.time_s = 0.01, .largest = 256}, "NVIDIA H200");
  EXPECT_NEAR(one.fraction_of_spec.value(), one.rate.median / 989.5e12, 1e-12);
  EXPECT_THAT(one.spec.value(), testing::HasSubstr("H200"));
}

TEST(MeasureGemmTest, AGpuIsMeasuredInEachTypeOnce) {
  std::vector<std::string> types;
  for (const auto& [type, kernel] : GemmsOf(c10::Device(c10::DeviceType::CUDA)))
    types.push_back(GemmTypeName(type));
  EXPECT_THAT(types, testing::ElementsAre("fp32", "tf32", "bf16", "fp16"));
}

TEST(MeasureMemoryTest, MeasuresCopyReadAndTriadByTheThreadsAsked) {
  for (const int threads : {1, 3}) {
    const std::vector<Measurement> measured = MeasureMemory(threads, {.time_s = 0.005, .array_bytes = kMiB});
    ASSERT_EQ(measured.size(), 3u);
    EXPECT_EQ(measured[0].what, "memory_copy");
    EXPECT_EQ(measured[1].what, "memory_read");
    EXPECT_EQ(measured[2].what, "memory_triad");
    for (const Measurement& one : measured) {
      ExpectSampled(one);
      EXPECT_EQ(one.threads, threads);
    }
  }
}

TEST(MemoryArrayBytesTest, IsFourCachesWithinWhatTheMachineCanSpare) {
  EXPECT_EQ(MemoryArrayBytes(16 * kMiB, 0), 64 * kMiB);
  EXPECT_EQ(MemoryArrayBytes(0, 0), 32 * kMiB);
  EXPECT_EQ(MemoryArrayBytes(1024 * kMiB, 0), 256 * kMiB);
  EXPECT_EQ(MemoryArrayBytes(16 * kMiB, 160 * kMiB), 10 * kMiB);
}

TEST(MeasureTransfersTest, OnACpuLeavesOutPinnedMemory) {
  std::vector<std::string> names;
  for (const Measurement& one :
       MeasureTransfers(c10::Device(c10::DeviceType::CPU), {.time_s = 0.002, .size_bytes = kMiB})) {
    ExpectSampled(one);
    names.push_back(one.what);
  }
  EXPECT_THAT(names, testing::ElementsAre("device_copy", "h2d_pageable", "d2h_pageable"));
}

TEST(MeasureDiskWriteTest, LeavesNothingBehind) {
  const test::TemporaryFolder folder;
  const Measurement one = MeasureDiskWrite(folder.path(), {.time_s = 0.01, .size_bytes = kMiB});
  ExpectSampled(one);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(MeasureDiskWriteTest, WritesNoMoreThanItsBudget) {
  const test::TemporaryFolder folder;
  const auto written_bytes = [] {
    const std::string io = test::ReadFile("/proc/self/io");
    return std::stoll(io.substr(io.find("wchar: ") + 7));
  };
  const int64_t before = written_bytes();
  const Measurement one = MeasureDiskWrite(folder.path(), {.time_s = 3600, .size_bytes = kMiB});
  EXPECT_LE(written_bytes() - before, kMiB + 8192);  // and a page that tries the flag
  EXPECT_EQ(one.rate.samples, 15);                   // of 16 parts, the first warms up
}

TEST(MeasureDiskWriteTest, MeasuresMemoryFileSystemsToo) {
  if (!std::filesystem::is_directory("/dev/shm")) GTEST_SKIP() << "NOT RUN: no /dev/shm";
  ExpectSampled(MeasureDiskWrite("/dev/shm", {.time_s = 0.01, .size_bytes = kMiB}));
}

TEST(MeasureDiskWriteTest, NamesTheFolderThatTakesNoFile) {
  EXPECT_THAT(test::MessageOf([] { MeasureDiskWrite("/no-such-folder", {.time_s = 0, .size_bytes = kMiB}); }),
              testing::HasSubstr("/no-such-folder"));
}

}  // namespace
}  // namespace trainwright
