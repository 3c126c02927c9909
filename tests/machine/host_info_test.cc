#include "lib/machine/host_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "tests/machine/fake_machine.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using testing::ElementsAre;

using test::FakeMachine;

TEST(ParseProcessorListTest, TakesRangesAndSingleNumbers) {
  EXPECT_THAT(ParseProcessorList("0-3,8,10-11"), ElementsAre(0, 1, 2, 3, 8, 10, 11));
  EXPECT_THAT(ParseProcessorList(""), ElementsAre());
}

TEST(ReadHostInfoTest, TellsProcessorsCoresNodesAndMemory) {
  FakeMachine machine;
  machine.Write(
      "proc/cpuinfo",
      "processor\t: 0\nmodel name\t: Some CPU\nflags\t\t: fpu avx2 avx512f amx_bf16 amx_int8 avx512_bf16\n"
      "processor\t: 1\nmodel name\t: Some CPU\nflags\t\t: fpu\n");
  machine.Write("proc/self/status", "Name:\tx\nCpus_allowed_list:\t0,2-3\n");
  machine.Write("proc/meminfo", "MemTotal:       16 kB\nMemFree:  1 kB\nMemAvailable:    8 kB\n");
  machine.Write("sys/devices/system/cpu/online", "0-3\n");
  for (int cpu = 0; cpu < 4; ++cpu) {  // 0 and 2 are one core, 1 and 3 another
    machine.Write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
                  cpu % 2 == 0 ? "0,2\n" : "1,3\n");
  }
  machine.Write("sys/devices/system/cpu/cpu0/cache/index2/size", "1024K\n");
  machine.Write("sys/devices/system/cpu/cpu0/cache/index3/size", "32M\n");
  machine.Write("sys/devices/system/node/node0/cpulist", "0-1\n");
  machine.Write("sys/devices/system/node/node1/cpulist", "2-3\n");
  machine.Write("sys/devices/system/node/possible", "0-1\n");
  const HostInfo host = ReadHostInfo(machine.root());
  EXPECT_EQ(host.cpu_model, "Some CPU");
  EXPECT_THAT(host.isa, ElementsAre("avx2", "avx512f", "avx512_bf16", "amx_int8", "amx_bf16"));
  EXPECT_EQ(host.logical_processors, 4);
  EXPECT_EQ(host.physical_cores, 2);
  EXPECT_THAT(host.usable_processors, ElementsAre(0, 2, 3));
  EXPECT_EQ(host.usable_physical_cores, 2);
  EXPECT_EQ(host.numa_nodes, 2);
  EXPECT_EQ(host.last_level_cache_bytes, 32 << 20);
  EXPECT_EQ(host.memory_total_bytes, 16 * 1024);
  EXPECT_EQ(host.memory_available_bytes, 8 * 1024);
  EXPECT_EQ(host.cgroup.version, 0);
}

TEST(ReadHostInfoTest, WhatTheSystemDoesNotTellIsAbsentAndNotZero) {
  FakeMachine machine;
  const HostInfo host = ReadHostInfo(machine.root());
  const nlohmann::ordered_json json = EncodeHostInfo(host);
  for (const auto& [name, value] : json.items()) {
    if (name == "cgroup") continue;
    EXPECT_TRUE(value.is_null() || value.empty()) << name << ": " << value;
  }
  EXPECT_EQ(host.compute_cores(), 1);
  EXPECT_FALSE(host.memory_for_process().has_value());
}

TEST(ReadHostInfoTest, TakesTheStrictestLimitOfAHierarchyOfVersion2) {
  FakeMachine machine;
  machine.Write("proc/self/cgroup", "0::/pod/container\n");
  machine.Write("proc/meminfo", "MemAvailable: 4096 kB\n");
  machine.Write("sys/fs/cgroup/pod/cpu.max", "250000 100000\n");
  machine.Write("sys/fs/cgroup/pod/memory.max", "2097152\n");
  machine.Write("sys/fs/cgroup/pod/container/cpu.max", "max 100000\n");
  machine.Write("sys/fs/cgroup/pod/container/memory.max", "max\n");
  const HostInfo host = ReadHostInfo(machine.root());
  EXPECT_EQ(host.cgroup.version, 2);
  EXPECT_EQ(host.cgroup.cpus, 2.5);
  EXPECT_EQ(host.cgroup.memory_bytes, 2097152);
  EXPECT_EQ(host.memory_for_process(), 2097152);
}

TEST(ReadHostInfoTest, ReadsTheMountPointWhereTheGroupIsOfAnotherNameSpace) {
  FakeMachine machine;
  machine.Write("proc/self/cgroup", "0::/../../host/path\n");
  machine.Write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(ReadHostInfo(machine.root()).cgroup.cpus, 0.5);
}

TEST(ReadHostInfoTest, ReadsLimitsOfVersion1AndItsWordForNone) {
  FakeMachine machine;
  machine.Write("proc/self/cgroup", "4:cpu,cpuacct:/job\n3:memory:/job\n");
  machine.Write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "300000\n");
  machine.Write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  machine.Write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  machine.Write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  const HostInfo host = ReadHostInfo(machine.root());
  EXPECT_EQ(host.cgroup.version, 1);
  EXPECT_EQ(host.cgroup.cpus, 3.0);
  EXPECT_FALSE(host.cgroup.memory_bytes.has_value());
}

TEST(HostInfoTest, ComputeCoresAreWhatTheGroupGivesTimeFor) {
  HostInfo host;
  host.usable_physical_cores = 8;
  EXPECT_EQ(host.compute_cores(), 8);
  host.cgroup.cpus = 2.5;
  EXPECT_EQ(host.compute_cores(), 2);
  host.cgroup.cpus = 0.3;
  EXPECT_EQ(host.compute_cores(), 1);
  host.cgroup.cpus = 64;
  EXPECT_EQ(host.compute_cores(), 8);
}

TEST(ReadHostInfoTest, AgreesWithTheStandardLibraryOnThisMachine) {
  const HostInfo host = ReadHostInfo();
  EXPECT_EQ(host.usable_processors.size(), std::thread::hardware_concurrency());
  EXPECT_TRUE(host.kernel.has_value());
  EXPECT_GT(host.memory_total_bytes.value_or(0), host.memory_available_bytes.value_or(0));
}

TEST(ReadDiskInfoTest, TellsTheFileSystemOfAFolder) {
  EXPECT_EQ(ReadDiskInfo("/proc").file_system, "proc");
  const std::filesystem::space_info space = std::filesystem::space("/");
  EXPECT_EQ(ReadDiskInfo("/").total_bytes, static_cast<int64_t>(space.capacity));
  EXPECT_FALSE(ReadDiskInfo("/no-such-folder").free_bytes.has_value());
}

}  // namespace
}  // namespace trainwright
