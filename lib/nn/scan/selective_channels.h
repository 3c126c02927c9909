/// What the kernels of selective_decay.h read of the channels. Torch-free.
#pragma once

#include <cstdint>

#include "lib/spec/ten_init.h"

namespace trainwright {

/// Where log |lambda| is less, |lambda| is 0 in fp32.
inline constexpr double kLeastLogModulus = -104;

/// By how much a row moves the two trained numbers of a channel at most.
inline constexpr double kLevelReach = 0.1, kAngleReach = 0.05;

/// Numbers of the channels alone, [channels].
struct DecayChannels {
  TenInit init = TenInit::kLru;
  int64_t channels = 0;
  const float* level_k = nullptr;                      ///< lru: -e^a, log |lambda|; compat: a
  const float* angle_k = nullptr;                      ///< lru: e^w; compat: w
  const float *cosine_k = nullptr, *sine_k = nullptr;  ///< of the angle
};

}  // namespace trainwright
