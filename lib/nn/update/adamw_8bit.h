/// AdamW with its two moments kept in 8 bits, a block of 256 elements at a time: what the CPU's kernel and
/// the GPU's share.
///
/// A block's moments are divided by the largest of their magnitudes, which is kept in fp32, and each becomes
/// the number of the nearest of the 256 values of a map, the lower one of two as near: DynamicMap of
/// lib/optim/adamw_8bit.h, signed for the first moment, unsigned for the second. The step itself is fp32 and
/// uses the new moments before they are rounded. \source Dettmers et al. 2022, arXiv:2110.02861, as
/// bitsandbytes 0.50.2 implements it (optimizer_update_8bit_blockwise)
#pragma once

#include <math.h>

#include <cstdint>

#include "lib/nn/host_device.h"
#include "lib/nn/update/bf16_moments.h"

namespace trainwright {

/// Elements that share a scale.
inline constexpr int64_t kMomentBlock = 256;
/// Blocks of a parameter.
inline constexpr int64_t MomentBlocks(int64_t elements) {
  return (elements + kMomentBlock - 1) / kMomentBlock;
}
/// Values of a map, ascending from -1 or 0 to 1.
inline constexpr int64_t kMapSize = 256;

/// A moment of some elements, from the first of a block on.
struct Moments8Bit {
  uint8_t* codes;    ///< one an element
  float* largest;    ///< one a block: the largest magnitude
  const float* map;  ///< [kMapSize]
};

// Internal linkage: as in bf16_moments.h.
#define TRAINWRIGHT_SHARED [[gnu::always_inline]] TRAINWRIGHT_HOST_DEVICE static inline

/// The number of the nearest value of a map.
TRAINWRIGHT_SHARED uint8_t NearestCode(const float* map, float value) {
  int code = 0;
  for (int step = kMapSize / 2; step > 0; step /= 2) {
    if (map[code + step] <= value) code += step;
  }
  if (code + 1 < kMapSize && map[code + 1] - value < value - map[code]) ++code;
  return static_cast<uint8_t>(code);
}

/// What a moment of a block becomes.
/// \param largest of the magnitudes of its block
TRAINWRIGHT_SHARED uint8_t EncodeMoment(const float* map, float moment, float largest) {
  return NearestCode(map, largest > 0 ? moment / largest : 0.0f);
}

/// One element of an update, with moments in fp32.
TRAINWRIGHT_SHARED void UpdateElement(const AdamWCoefficients& c, float gradient, float* value,
                                      float* exp_avg, float* exp_avg_sq) {
  const float g = gradient / c.divisor;
  const float first = *exp_avg + c.first * (g - *exp_avg);
  const float second = c.beta2 * *exp_avg_sq + c.second * (g * g);
  *value = *value * c.decay - c.step_size * (first / (sqrtf(second) * c.second_scale + c.epsilon));
  *exp_avg = first;
  *exp_avg_sq = second;
}

#undef TRAINWRIGHT_SHARED

}  // namespace trainwright
