/// How many floating-point operations a second a GPU can make at most, as its maker publishes it.
#pragma once

#include <c10/core/Device.h>

#include <optional>
#include <string>

#include "lib/nn/precision.h"

namespace trainwright {

struct PeakRate {
  double tflops = 0;   ///< 1e12 operations a second
  std::string source;  ///< the document that says so
};

/// The dense rate (without structured sparsity, at the boost clock) of a GPU: of its tensor cores with fp32
/// sums under bf16 and fp16, of its plain fp32 units under fp32, which is what our GEMMs use.
/// \param gpu as the driver names it: "NVIDIA H200"
/// \returns nothing for a GPU that is not in the table
std::optional<PeakRate> PublishedPeakRate(const std::string& gpu, Precision precision);

/// The driver's name of a CUDA device; empty for a CPU.
std::string GpuName(at::Device device);

}  // namespace trainwright
