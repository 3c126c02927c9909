/// AdamW with its two moments kept in bf16, an element at a time: what the CPU's kernels and the GPU's share.
///
/// The moments of the step before are read from bf16, the step itself is fp32, and the new moments are
/// rounded stochastically when they are stored: up with the probability that is the share of the way, so that
/// what is stored is the exact moment on average. Rounding to nearest would lose what is smaller than half a
/// unit in the last place (2^-9 of the value): with beta2 0.999 a second moment changes by 2^-10 a step at
/// most while it decays, and would never fall again. The weights' update uses the moments before they are
/// rounded.
///
/// The step is linear in the first moment, so its mean is that of fp32 states. In the second it is not: with
/// a relative deviation s of the stored moment the mean of 1 / sqrt(v) is 1 + 3/8 s^2 times that of fp32
/// states; s is at most 2^-8 a step and settles at about s / sqrt(1 - beta2^2), 0.013 at the most for beta2
/// 0.95.
///
/// The random bits are a function of (seed, update, element) alone: results do not depend on threads, and a
/// resumed run has no generator to restore. \source stochastic rounding: Gupta et al. 2015, arXiv:1502.02551,
/// section 3; in bf16 training: Zamirai et al. 2020, arXiv:2010.06192; the hash lowbias32: Wellons 2018,
/// "Prospecting for Hash Functions"
#pragma once

#include <math.h>
#include <string.h>

#include <cstdint>

#include "lib/nn/host_device.h"
#include "lib/nn/mix_bits.h"

namespace trainwright {

/// Of one update of the weights.
struct AdamWCoefficients {
  float divisor;        ///< of the gradients
  float decay;          ///< 1 - learning rate * weight decay
  float first, second;  ///< 1 - beta1, 1 - beta2
  float beta2;
  float step_size;     ///< learning rate / (1 - beta1^t)
  float second_scale;  ///< 1 / sqrt(1 - beta2^t)
  float epsilon;
  uint64_t key;  ///< of the update's random bits
};

/// What is the same for every update of a range of elements.
struct AdamWHyperparameters {
  double learning_rate, beta1, beta2, weight_decay, epsilon;
  uint64_t key;  ///< of the run's random bits
};

// Internal linkage: a copy that was compiled for one instruction set must not serve code that runs
// everywhere.
#define TRAINWRIGHT_SHARED [[gnu::always_inline]] TRAINWRIGHT_HOST_DEVICE static inline

TRAINWRIGHT_SHARED uint32_t MixBits32(uint32_t value) {
  value ^= value >> 16;
  value *= 0x7FEB352Du;
  value ^= value >> 15;
  value *= 0x846CA68Bu;
  return value ^ (value >> 16);
}

/// \param step number of the update, from 1
/// \param divisor of the gradients
TRAINWRIGHT_SHARED AdamWCoefficients CoefficientsOf(const AdamWHyperparameters& of, double step,
                                                    double divisor) {
  AdamWCoefficients c;
  c.divisor = static_cast<float>(divisor);
  c.decay = static_cast<float>(1 - of.learning_rate * of.weight_decay);
  c.first = static_cast<float>(1 - of.beta1);
  c.second = static_cast<float>(1 - of.beta2);
  c.beta2 = static_cast<float>(of.beta2);
  c.step_size = static_cast<float>(of.learning_rate / (1 - pow(of.beta1, step)));
  c.second_scale = static_cast<float>(1 / sqrt(1 - pow(of.beta2, step)));
  c.epsilon = static_cast<float>(of.epsilon);
  c.key = MixBits64(of.key ^ MixBits64(static_cast<uint64_t>(step)));
  return c;
}

/// Elements whose random bits share a 64-bit key: within them 32-bit arithmetic does.
constexpr int64_t kRandomBlock = 4096;

TRAINWRIGHT_SHARED uint64_t RandomBlockKey(uint64_t key, int64_t element) {
  return MixBits64(key + static_cast<uint64_t>(element / kRandomBlock));
}

/// 32 random bits.
/// \param in_block element % kRandomBlock
TRAINWRIGHT_SHARED uint32_t RandomBits(uint64_t block_key, uint32_t in_block) {
  const uint32_t low = static_cast<uint32_t>(block_key), high = static_cast<uint32_t>(block_key >> 32);
  return MixBits32(MixBits32(in_block * 0x9E3779B9u + low) ^ high);
}

TRAINWRIGHT_SHARED float Bf16ToFloat(uint16_t stored) {
  const uint32_t bits = static_cast<uint32_t>(stored) << 16;
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

/// \param random 16 random bits. Finite values stay finite, and zero, infinities and NaN what they are.
TRAINWRIGHT_SHARED uint16_t RoundStochastically(float value, uint32_t random) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  const uint32_t magnitude = bits & 0x7FFFFFFFu, sign = bits >> 31 << 15;
  const uint32_t up = (magnitude + random) >> 16, finite = up < 0x7F7Fu ? up : 0x7F7Fu;
  const uint32_t special = magnitude >> 16 | (magnitude > 0x7F800000u ? 0x40u : 0u);
  return static_cast<uint16_t>(sign | (magnitude < 0x7F800000u ? finite : special));
}

/// One element of an update.
/// \param random of RandomBits
TRAINWRIGHT_SHARED void UpdateElement(const AdamWCoefficients& c, uint32_t random, float gradient,
                                      float* value, uint16_t* exp_avg, uint16_t* exp_avg_sq) {
  const float g = gradient / c.divisor, before = Bf16ToFloat(*exp_avg);
  const float first = before + c.first * (g - before);
  const float second = c.beta2 * Bf16ToFloat(*exp_avg_sq) + c.second * (g * g);
  *value = *value * c.decay - c.step_size * (first / (sqrtf(second) * c.second_scale + c.epsilon));
  *exp_avg = RoundStochastically(first, random & 0xFFFFu);
  *exp_avg_sq = RoundStochastically(second, random >> 16);
}

#undef TRAINWRIGHT_SHARED

}  // namespace trainwright
