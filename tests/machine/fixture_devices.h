/// Machines as their management libraries tell them, for decisions that no machine at hand can be asked for.
#pragma once

#include <string>
#include <utility>

#include "lib/machine/gpu_state.h"
#include "lib/machine/host_info.h"
#include "lib/machine/measurement.h"

namespace trainwright::test {

inline GpuInfo FixtureGpu(const std::string& name, Capability capability, int64_t memory_gib, int sm_count) {
  GpuInfo gpu;
  gpu.name = name;
  gpu.uuid = "GPU-5d7b4c3e-0000-1111-2222-0123456789ab";
  gpu.capability = capability;
  gpu.sm_count = sm_count;
  gpu.memory_total_bytes = memory_gib << 30;
  gpu.memory_free_bytes = (memory_gib << 30) - (int64_t{512} << 20);
  gpu.memory_used_bytes = int64_t{512} << 20;
  gpu.compute_mode = "default";
  gpu.throttle_reasons.emplace();
  gpu.processes.emplace();
  return gpu;
}

inline GpuInfo V100() {
  return FixtureGpu("Tesla V100-SXM2-16GB", {7, 0}, 16, 80);
}
inline GpuInfo Rtx2080Ti() {
  return FixtureGpu("NVIDIA GeForce RTX 2080 Ti", {7, 5}, 11, 68);
}
inline GpuInfo A100() {
  return FixtureGpu("NVIDIA A100-SXM4-80GB", {8, 0}, 80, 108);
}
inline GpuInfo H100() {
  return FixtureGpu("NVIDIA H100 80GB HBM3", {9, 0}, 80, 132);
}
inline GpuInfo H200() {
  return FixtureGpu("NVIDIA H200", {9, 0}, 141, 132);
}

/// A machine on which all is well with these GPUs.
inline GpuEvidence Working(std::vector<GpuInfo> gpus) {
  GpuEvidence evidence;
  evidence.driver_loads = true;
  evidence.driver_version = "580.65.06";
  evidence.driver_cuda_version = 13000;
  evidence.needed_cuda_version = 13000;
  for (size_t i = 0; i < gpus.size(); ++i) gpus[i].index = static_cast<int>(i);
  evidence.gpus = std::move(gpus);
  return evidence;
}

inline HostInfo FixtureHost(std::vector<std::string> isa, int cores = 16) {
  HostInfo host;
  host.isa = std::move(isa);
  host.usable_physical_cores = cores;
  host.memory_total_bytes = int64_t{64} << 30;
  host.memory_available_bytes = int64_t{60} << 30;
  return host;
}

inline Rate SteadyRate(double rate, double spread = 0.02) {
  Rate fixture;
  fixture.best = rate * 1.02;
  fixture.median = rate;
  fixture.spread = spread;
  fixture.samples = 20;
  return fixture;
}

inline Measurement Gemm(const std::string& device, const std::string& dtype, double rate,
                        double spread = 0.02) {
  Measurement gemm{.what = "gemm", .device = device, .method = "trainwright", .dtype = dtype};
  gemm.unit = "flop/s";
  gemm.rate = SteadyRate(rate, spread);
  return gemm;
}

}  // namespace trainwright::test
