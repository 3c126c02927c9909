#include "lib/device/gpu_limits.h"

#include <utility>
#include <vector>

#include "lib/device/cuda_backend.h"

namespace trainwright {
namespace {

using Capability = std::pair<int32_t, int32_t>;

constexpr Capability kOldestServed{7, 5}, kFirstWithBf16{8, 0}, kFirstWithFp8{8, 9};

Capability CapabilityOf(const CudaDeviceInfo& gpu) {
  return {gpu.capability_major, gpu.capability_minor};
}

std::string NameOf(const CudaDeviceInfo& gpu, int32_t index) {
  return "GPU " + std::to_string(index) + " (" + gpu.name + ")";
}

std::string TextOf(const CudaDeviceInfo& gpu) {
  return "compute capability " + std::to_string(gpu.capability_major) + "." +
         std::to_string(gpu.capability_minor);
}

}  // namespace

std::string WhyTooOld(const CudaDeviceInfo& gpu, int32_t index) {
  if (CapabilityOf(gpu) >= kOldestServed) return "";
  return NameOf(gpu, index) + " has " + TextOf(gpu) + ": CUDA 13 cannot serve GPUs before 7.5";
}

GpuLimits LimitsOf(const CudaDeviceInfo& gpu, int32_t index) {
  const bool of_today = CapabilityOf(gpu) >= kFirstWithBf16;
  return {.bf16 = of_today,
          .fp8 = CapabilityOf(gpu) >= kFirstWithFp8,
          .flash_attention = of_today,
          .gpu = NameOf(gpu, index) + " of " + TextOf(gpu),
          .multiprocessors = gpu.multiprocessors};
}

std::vector<GpuLimits> LimitsOfGpus(const CudaPlugin& plugin) {
  std::vector<GpuLimits> all;
  CudaDeviceInfo info{};
  char problem[512] = "";
  const int32_t count = plugin.device_count(problem, sizeof(problem));
  for (int32_t index = 0; index < count && plugin.device_info(index, &info); ++index) {
    all.push_back(LimitsOf(info, index));
  }
  return all;
}

const GpuLimits& LimitsOf(c10::Device device) {
  static const GpuLimits none;
  if (!device.is_cuda()) return none;
  static const std::vector<GpuLimits> of_gpus = [] {
    const CudaPlugin* const plugin = ProcessCudaBackend().plugin;
    return plugin == nullptr ? std::vector<GpuLimits>() : LimitsOfGpus(*plugin);
  }();
  const auto index = static_cast<size_t>(device.has_index() ? device.index() : 0);
  return index < of_gpus.size() ? of_gpus[index] : none;
}

}  // namespace trainwright
