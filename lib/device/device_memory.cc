#include "lib/device/device_memory.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <chrono>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/device/cuda_backend.h"

namespace trainwright {
namespace {

int64_t Ask(c10::Device device, int64_t (*CudaPlugin::*question)(int32_t)) {
  if (!device.is_cuda() || ProcessCudaBackend().plugin == nullptr) return 0;
  return (ProcessCudaBackend().plugin->*question)(device.has_index() ? device.index() : 0);
}

}  // namespace

int64_t FreeDeviceBytes(c10::Device device) {
  return Ask(device, &CudaPlugin::free_memory_bytes);
}

int64_t WholeDeviceBytes(c10::Device device) {
  CudaDeviceInfo info{};
  if (!device.is_cuda() || ProcessCudaBackend().plugin == nullptr) return 0;
  const int32_t index = device.has_index() ? device.index() : 0;
  return ProcessCudaBackend().plugin->device_info(index, &info) ? info.memory_bytes : 0;
}

int64_t CapDeviceMemory(c10::Device device, double fraction) {
  if (!(fraction > 0 && fraction <= 1)) {
    throw Error(ErrorCode::kUsage, "--mem-fraction", "must be above 0 and at most 1");
  }
  const CudaPlugin* plugin = ProcessCudaBackend().plugin;
  if (!device.is_cuda() || plugin == nullptr)
    throw Error(ErrorCode::kDevice, "device memory", "there is no GPU");
  return plugin->cap_memory(device.has_index() ? device.index() : 0, fraction);
}

int64_t PeakDeviceBytes(c10::Device device) {
  return Ask(device, &CudaPlugin::peak_memory_bytes);
}

std::optional<double> EmptyDeviceCache(c10::Device device) {
  if (device.is_cpu()) return std::nullopt;
  const auto start = std::chrono::steady_clock::now();
  c10::getDeviceAllocator(device.type())->emptyCache();
  return SecondsSince(start);
}

}  // namespace trainwright
