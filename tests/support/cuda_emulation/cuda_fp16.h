/// Stands in for the CUDA header of this name: IEEE half precision and its conversions, as cvt.rn.f16.f32
/// rounds.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

/// A sign, 5 bits of exponent and 10 of the significand.
struct __half {
  uint16_t bits;
};

inline float __half2float(__half value) {
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000u) << 16;
  const uint32_t exponent = value.bits >> 10 & 31u, significand = value.bits & 1023u;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | significand << 13);
  if (exponent > 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | significand << 13);
  return std::copysign(static_cast<float>(significand) * 0x1p-24f, std::bit_cast<float>(sign));
}
/// To nearest, ties to even, infinite from 65520 on; every NaN becomes 0x7FFF.
inline __half __float2half_rn(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return {0x7FFF};
  if (magnitude >= 0x47800000u) return {static_cast<uint16_t>(sign | 0x7C00u)};
  if (magnitude < 0x38800000u) {  // below 2^-14: a multiple of 2^-24, to which this sum rounds
    const float sum = std::bit_cast<float>(magnitude) + 0.5f;
    return {static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(sum) - 0x3F000000u))};
  }
  const uint32_t rounded = magnitude + 0xFFFu + (magnitude >> 13 & 1u);
  return {static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13))};
}
inline __half __float2half(float value) {
  return __float2half_rn(value);
}
