/// What --tf32 on costs in exactness.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>

#include "lib/spec/model_config.h"

namespace trainwright {

/// Of a GEMM [rows, depth] x [depth, columns] in TF32 against the same in fp32.
struct Tf32Error {
  int64_t rows = 0, depth = 0, columns = 0;
  double relative = 0;  ///< norm of the difference over the norm of the result in fp32
  /// "2.9e-04 of their size, of 256 x 4096 x 256"
  std::string text() const;
};

/// Computes such a GEMM twice on a device, of normally distributed numbers, over the width of a model.
/// Waits for the device; nothing else may compute meanwhile.
Tf32Error MeasureTf32Error(const ModelConfig& model, at::Device device);

}  // namespace trainwright
