/// Loads what a GPU needs at run time, so that one program serves machines with and without one.
///
/// The program links libtorch_cpu.so and libc10.so only. Where an NVIDIA driver is, this loads
/// libtorch_cuda.so from the folder of libtorch_cpu.so and our plugin, before anything asks torch for a GPU
/// (torch keeps the first answer). Nothing is ever unloaded.
#pragma once

#include <string>
#include <vector>

#include "lib/device/cuda_plugin.h"

namespace trainwright {

struct CudaBackendFiles {
  std::string driver;                ///< a name for the loader
  std::string torch_cuda;            ///< a path, or a name for the loader
  std::vector<std::string> plugins;  ///< the first that exists is it
};

/// libcuda.so.1; libtorch_cuda.so beside libtorch_cpu.so; $TRAINWRIGHT_CUDA_PLUGIN alone if it is set, else
/// libtrainwright_cuda.so beside the program, then in ../libexec/trainwright from there.
CudaBackendFiles DefaultCudaBackendFiles();

struct CudaBackend {
  const CudaPlugin* plugin = nullptr;  ///< with its operators registered; null: no GPU can be used
  std::string problem, hint;           ///< why not, and what would help
  bool has_driver = false;
};

/// Loads and checks in the order driver, plugin file, libtorch_cuda, plugin, its versions, a GPU that is not
/// too old (gpu_limits.h), whether torch was asked for a GPU before; stops at the first that fails.
/// Initialises torch's allocator of GPU memory. Beside the plugin may lie libtrainwright_nccl.so, by which
/// GPUs exchange (lib/dist/nccl_plugin.h).
CudaBackend LoadCudaBackend(const CudaBackendFiles& files);

/// That of this process with the default files, loaded at the first call. Thread-safe.
const CudaBackend& ProcessCudaBackend();

}  // namespace trainwright
