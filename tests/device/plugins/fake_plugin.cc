// A plugin without kernels: its versions and GPUs are what the build says (FAKE_INTERFACE, FAKE_TORCH,
// FAKE_COUNT, and the compute capability FAKE_MAJOR.FAKE_MINOR).
#include <cstdio>

#include "lib/base/version.h"
#include "lib/device/cuda_plugin.h"

namespace {

int32_t DeviceCount(char* problem, size_t size) {
  std::snprintf(problem, size, "CUDA driver version is insufficient");
  return FAKE_COUNT;
}
bool DeviceInfo(int32_t, trainwright::CudaDeviceInfo* info) {
  *info = {
      .name = "Fake GPU", .capability_major = FAKE_MAJOR, .capability_minor = FAKE_MINOR, .memory_bytes = 1};
  return true;
}
void RegisterOperators() {}

constexpr trainwright::CudaPlugin kPlugin = {.interface = FAKE_INTERFACE,
                                             .trainwright_version = TRAINWRIGHT_VERSION,
                                             .torch_version = FAKE_TORCH,
                                             .register_operators = &RegisterOperators,
                                             .device_count = &DeviceCount,
                                             .device_info = &DeviceInfo};
}  // namespace

extern "C" const trainwright::CudaPlugin* trainwright_cuda_plugin() {
  return &kPlugin;
}
