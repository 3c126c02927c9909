/// How fast a device multiplies matrices of each type.
#pragma once

#include <c10/core/Device.h>

#include <string>
#include <utility>
#include <vector>

#include "lib/machine/measurement.h"

namespace trainwright {

enum class GemmType { kFp32, kTf32, kBf16, kFp16 };
std::string GemmTypeName(GemmType type);

/// Whose GEMM: the one that training computes with (lib/nn/linear/matmul.h), or torch's at::mm.
enum class GemmKernel { kTrainwright, kTorch };

struct GemmBudget {
  double time_s = 0.5;  ///< warm-up included
  int64_t largest = 8192;
};

/// The pairs that differ on a device: on a CPU training's own GEMMs of fp32 and bf16 beside torch's, fp16
/// by torch alone; on a GPU, where training's GEMMs are torch's, each type once, tf32 among them.
std::vector<std::pair<GemmType, GemmKernel>> GemmsOf(c10::Device device);

/// Square matrices, doubled from 256 until a GEMM takes a 20th of the budget or 5 ms of a CPU; on a GPU at
/// least 50 GEMMs warm it up, because a cold one runs at clocks that do not last.
/// \param gpu the driver's name of the GPU, for the share of its published rate; empty: none
Measurement MeasureGemm(c10::Device device, GemmType type, GemmKernel kernel, const GemmBudget& budget,
                        const std::string& gpu = "");

}  // namespace trainwright
