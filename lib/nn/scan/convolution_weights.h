/// A causal convolution as the kernels take it; see causal_convolution.h. Torch-free.
#pragma once

#include <cstdint>

namespace trainwright {

struct ConvolutionWeights {
  int64_t taps = 0, width = 0;
  const float* kernel_tz = nullptr;  ///< [taps, width]; tap 0 is the row's own
  const float* scale_z = nullptr;    ///< [width], of what silu gives
};

}  // namespace trainwright
