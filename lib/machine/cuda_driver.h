/// What the CUDA driver library reports to a process, without making a context on any GPU.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/machine/gpu_info.h"

namespace trainwright {

struct CudaDriver {
  bool loads = false;
  std::string problem;              ///< why it does not load or does not start; empty: it did
  std::optional<int> cuda_version;  ///< newest CUDA that it runs: 13000 is 13.0
  std::vector<GpuInfo> gpus;        ///< visible ones in CUDA's order; what the driver says about them
};

/// \param library a name for the loader
CudaDriver ReadCudaDriver(const std::string& library = "libcuda.so.1");

/// Of the runtime that this process has loaded with torch: 13000 is 13.0; absent: none is loaded.
std::optional<int> LoadedCudaRuntime();

/// "13.0" of 13000.
std::string CudaVersionText(int version);

}  // namespace trainwright
