/// What libtrainwright_cuda.so offers to the program that loads it. Torch-free and plain C.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trainwright {

/// Counts up with every change of this header or of the operators' schema.
inline constexpr int32_t kCudaPluginInterface = 11;

struct CudaDeviceInfo {
  char name[256];
  char uuid[33];  ///< in hexadecimal digits: the same in all processes that see this GPU
  int32_t capability_major, capability_minor;
  int64_t memory_bytes;
  int32_t multiprocessors;
};

struct CudaPlugin {
  // These three never move: a program reads them before it trusts the rest.
  int32_t interface;
  const char* trainwright_version;
  const char* torch_version;  ///< of the headers it was compiled with

  /// Gives the operators of lib/nn/ops.h their CUDA implementations. Once a process, after libtorch_cuda.so.
  void (*register_operators)();
  /// \returns how many GPUs the driver shows, or -1 with the runtime's words in `problem`
  int32_t (*device_count)(char* problem, size_t problem_size);
  bool (*device_info)(int32_t device, CudaDeviceInfo* info);
  /// Largest memory of tensors at a time so far.
  int64_t (*peak_memory_bytes)(int32_t device);
  /// What the driver could still give; 0 when it does not say.
  int64_t (*free_memory_bytes)(int32_t device);
  /// Limits torch's allocator to a share of the device's memory.
  /// \returns the limit in bytes
  int64_t (*cap_memory)(int32_t device, double fraction);
  /// Makes torch throw where it waits for the GPU, for tests.
  void (*refuse_waiting)(bool refuse);
};

/// The one symbol of the plugin.
inline constexpr char kCudaPluginSymbol[] = "trainwright_cuda_plugin";
using CudaPluginFunction = const CudaPlugin*();

}  // namespace trainwright
