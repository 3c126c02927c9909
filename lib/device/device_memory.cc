#include "lib/device/device_memory.h"

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

int64_t PeakDeviceBytes(c10::Device device) {
  return Ask(device, &CudaPlugin::peak_memory_bytes);
}

}  // namespace trainwright
