// libtrainwright_cuda.so: what cuda_plugin.h asks of it, and the operators of operators.h for CUDA.
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/headeronly/version.h>
#include <torch/library.h>

#include <cstdio>

#include "lib/base/version.h"
#include "lib/device/cuda_plugin.h"
#include "lib/nn/cuda/operators.h"

namespace trainwright::cuda {
namespace {

/// Registers a function of the type that the operator has in ops.h.
struct Register {
  torch::Library* library;
  template <auto Operator>
  void operator()(const char* name) const {
    library->impl(name, Operator);
  }
};

void RegisterOperators() {
  // Lives as long as the process, as the plugin does: torch may call at any time.
  static auto* const library =
      new torch::Library(torch::Library::IMPL, "trainwright", c10::DispatchKey::CUDA, __FILE__, __LINE__);
  ForEachOperator(Register{library});
}

/// The runtime keeps the error of a call that failed, and the check after the next launch would report it.
bool Succeeded(cudaError_t status) {
  if (status != cudaSuccess) static_cast<void>(cudaGetLastError());
  return status == cudaSuccess;
}

int32_t DeviceCount(char* problem, size_t problem_size) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (Succeeded(status)) return count;
  std::snprintf(problem, problem_size, "%s", cudaGetErrorString(status));
  return -1;
}

bool DeviceInfo(int32_t device, CudaDeviceInfo* info) {
  cudaDeviceProp properties;
  if (!Succeeded(cudaGetDeviceProperties(&properties, device))) return false;
  std::snprintf(info->name, sizeof(info->name), "%s", properties.name);
  for (size_t i = 0; i < sizeof(properties.uuid.bytes); ++i) {
    std::snprintf(info->uuid + 2 * i, 3, "%02x", static_cast<unsigned char>(properties.uuid.bytes[i]));
  }
  info->capability_major = properties.major;
  info->capability_minor = properties.minor;
  info->memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
  info->multiprocessors = properties.multiProcessorCount;
  return true;
}

int64_t PeakMemoryBytes(int32_t device) {
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(static_cast<c10::DeviceIndex>(device));
  return stats.allocated_bytes[0].peak;  // [0]: the aggregate
}

int64_t FreeMemoryBytes(int32_t device) {
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(device));
  size_t free = 0, total = 0;
  return Succeeded(cudaMemGetInfo(&free, &total)) ? static_cast<int64_t>(free) : 0;
}

int64_t CapMemory(int32_t device, double fraction) {
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(device));
  size_t free = 0, total = 0;
  c10::cuda::CUDACachingAllocator::setMemoryFraction(fraction, static_cast<c10::DeviceIndex>(device));
  if (!Succeeded(cudaMemGetInfo(&free, &total))) return 0;
  return static_cast<int64_t>(fraction * static_cast<double>(total));
}

void RefuseWaiting(bool refuse) {
  c10::cuda::warning_state().set_sync_debug_mode(refuse ? c10::cuda::SyncDebugMode::L_ERROR
                                                        : c10::cuda::SyncDebugMode::L_DISABLED);
}

constexpr CudaPlugin kPlugin = {.interface = kCudaPluginInterface,
                                .trainwright_version = TRAINWRIGHT_VERSION,
                                .torch_version = TORCH_VERSION,
                                .register_operators = &RegisterOperators,
                                .device_count = &DeviceCount,
                                .device_info = &DeviceInfo,
                                .peak_memory_bytes = &PeakMemoryBytes,
                                .free_memory_bytes = &FreeMemoryBytes,
                                .cap_memory = &CapMemory,
                                .refuse_waiting = &RefuseWaiting};

}  // namespace
}  // namespace trainwright::cuda

extern "C" [[gnu::visibility("default")]] const trainwright::CudaPlugin* trainwright_cuda_plugin() {
  return &trainwright::cuda::kPlugin;
}
