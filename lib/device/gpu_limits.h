/// What a GPU of an older generation cannot do.
///
/// The kernels are built for compute capability 7.5 (Turing), 8.0 and 9.0, and as PTX for later ones; CUDA 13
/// has dropped what came before 7.5. Tensor cores of 7.5 multiply fp16 alone, and of torch's attention
/// kernels only the memory-efficient one and math run there. Tensor cores multiply fp8 from 8.9 on.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lib/device/cuda_plugin.h"

namespace trainwright {

struct GpuLimits {
  bool bf16 = true;             ///< GEMMs of bf16
  bool fp8 = true;              ///< GEMMs of fp8
  bool flash_attention = true;  ///< FlashAttention and cuDNN's attention
  std::string gpu;              ///< "GPU 0 (Tesla T4) of compute capability 7.5"; empty: not a GPU
  int32_t multiprocessors = 0;  ///< 0: not known
};

/// Why CUDA 13 does not serve it, in words that name it; empty: it does.
std::string WhyTooOld(const CudaDeviceInfo& gpu, int32_t index = 0);

GpuLimits LimitsOf(const CudaDeviceInfo& gpu, int32_t index = 0);
/// Of those that the driver shows, in order. Asks of none past the last: CUDA keeps such an error, and the
/// check after the next launch would report it.
std::vector<GpuLimits> LimitsOfGpus(const CudaPlugin& plugin);
/// Asked of the driver once a process. Of a CPU, and of the meta device, which stands for a GPU of today:
/// none.
const GpuLimits& LimitsOf(c10::Device device);

}  // namespace trainwright
