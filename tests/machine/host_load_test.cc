#include "lib/machine/host_load.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/base/signals.h"
#include "lib/io/byte_sink.h"
#include "lib/machine/gpu_info.h"
#include "lib/machine/watch_job.h"
#include "tests/machine/fake_machine.h"
#include "tests/machine/fixture_devices.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::FakeMachine;

/// Two seconds of a machine: half busy, a disk that reads and writes, and a process with a hostile name.
TEST(HostLoadSamplerTest, TellsWhatHappenedBetweenSamples) {
  FakeMachine machine;
  machine.Write("sys/block/vda/size", "1\n");
  machine.Write("proc/loadavg", "1.50 1.00 0.50 1/100 42\n");
  machine.Write("proc/meminfo", "MemTotal: 100 kB\nMemAvailable: 30 kB\n");
  //                              user nice system idle iowait irq softirq steal guest
  machine.Write("proc/stat", "cpu  100 0 100 1000 50 0 0 0 40 0\ncpu0 1 1 1 1\n");
  machine.Write("proc/diskstats",
                " 254 0 vda 1 0 10 0 1 0 100 0 0 0 0\n 254 1 vda1 1 0 10 0 1 0 100 0 0 0 0\n");
  machine.Write("proc/7/stat", "7 (a) b (c) R 1 1 1 1 1 1 1 1 1 1 100 50 0 0\n");
  machine.Write("proc/7/status", "VmRSS:\t  12 kB\n");
  machine.Write("proc/7/io", "rchar: 9\nread_bytes: 1000\nwrite_bytes: 0\n");
  HostLoadSampler sampler({7, 8}, machine.root());

  const HostLoad first = sampler.Sample(10);
  EXPECT_EQ(first.load_1min, 1.5);
  EXPECT_EQ(first.memory_used_bytes, 70 * 1024);
  EXPECT_EQ(first.memory_available_bytes, 30 * 1024);
  EXPECT_FALSE(first.utilization.has_value());
  EXPECT_FALSE(first.disk_read_bytes_per_s.has_value());
  EXPECT_EQ(first.processes[0].resident_bytes, 12 * 1024);
  EXPECT_FALSE(first.processes[0].cpus.has_value());
  EXPECT_FALSE(first.processes[1].alive);

  machine.Write("proc/stat", "cpu  180 0 120 1080 70 0 0 0 40 0\n");
  machine.Write("proc/diskstats",
                " 254 0 vda 1 0 30 0 1 0 500 0 0 0 0\n 254 1 vda1 1 0 30 0 1 0 500 0 0 0 0\n");
  const int64_t tick = sysconf(_SC_CLK_TCK);
  machine.Write("proc/7/stat", "7 (a) b (c) R 1 1 1 1 1 1 1 1 1 1 " + std::to_string(100 + 2 * tick) + " " +
                                   std::to_string(50 + tick) + " 0 0\n");
  machine.Write("proc/7/io", "rchar: 9\nread_bytes: 5000\nwrite_bytes: 600\n");
  const HostLoad second = sampler.Sample(12);
  EXPECT_DOUBLE_EQ(second.utilization.value(), 0.5);  // 100 busy ticks of 200
  EXPECT_EQ(second.disk_read_bytes_per_s, 20 * 512 / 2.0);
  EXPECT_EQ(second.disk_write_bytes_per_s, 400 * 512 / 2.0);
  EXPECT_DOUBLE_EQ(second.processes[0].cpus.value(), 1.5);
  EXPECT_EQ(second.processes[0].read_bytes_per_s, 2000);
  EXPECT_EQ(second.processes[0].write_bytes_per_s, 300);
}

TEST(HostLoadSamplerTest, WhatTheSystemDoesNotTellIsAbsent) {
  FakeMachine machine;
  machine.Write("proc/7/stat", "7 (x) R\n");
  HostLoadSampler sampler({7}, machine.root());
  for (const double time_s : {1.0, 2.0}) {
    const HostLoad load = sampler.Sample(time_s);
    const nlohmann::ordered_json host = EncodeWatchSample("", load, {})["host"];
    for (const auto& [name, value] : host.items()) {
      EXPECT_TRUE(value.is_null() || name == "processes") << name << " " << value;
    }
    EXPECT_TRUE(load.processes[0].alive);
    EXPECT_FALSE(load.processes[0].cpus.has_value());
    EXPECT_FALSE(load.processes[0].write_bytes_per_s.has_value());
  }
}

/// A sink after whose first sample a signal arrives.
class InterruptedSink final : public ByteSink {
 public:
  void Write(ByteSpan bytes) override {
    text.append(AsText(bytes));
    SetStopSignalForTest(SIGTERM);
  }
  void Commit() override {}
  const std::string& name() const override { return text; }
  std::string text;
};

TEST(RunWatchTest, EndsAtASignalWithItsStatusAndAWholeLine) {
  InterruptedSink sink;
  EXPECT_EQ(RunWatch({.interval_s = 3600, .json = true, .pids = {}}, nullptr, &sink), 128 + SIGTERM);
  SetStopSignalForTest(0);
  EXPECT_EQ(sink.text.back(), '\n');
  EXPECT_EQ(nlohmann::json::parse(sink.text)["schema"], "trainwright.gpu-probe.watch/1");
}

/// A process of a name that is not UTF-8, as Linux allows.
class OddlyNamedGpu final : public GpuManagement {
 public:
  DriverInfo Driver() override { return {}; }
  std::vector<GpuInfo> Gpus() override {
    GpuInfo gpu = test::H200();
    gpu.processes = {GpuProcess{.pid = 7,
                                .name = "a\xff"
                                        "b"}};
    return {gpu};
  }
};

TEST(RunWatchTest, NamesThatAreNotUtf8AreReplacedInJson) {
  OddlyNamedGpu gpu;
  MemorySink sink;
  EXPECT_EQ(RunWatch({.interval_s = 1, .samples = 1, .json = true, .pids = {}}, &gpu, &sink), 0);
  const auto sample = nlohmann::json::parse(std::string(sink.bytes().begin(), sink.bytes().end()));
  EXPECT_EQ(sample.at("gpus").at(0).at("processes").at(0).at("name"),
            "a\xEF\xBF\xBD"
            "b");
}

}  // namespace
}  // namespace trainwright
