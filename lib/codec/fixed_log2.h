/// Base-2 logarithms in integers, so that estimates, and with them the coded bytes, are the same everywhere.
#pragma once

#include <cstdint>

namespace trainwright {

inline constexpr int kLog2FractionBits = 16;

/// log2(value) in units of 2^-16, within 2^-10 below; 0 for 0.
uint32_t FixedLog2(uint32_t value);

/// Bits, in units of 2^-16, that an ideal coder needs for symbols with these 256 counts.
uint64_t EntropyCost(const uint32_t* counts);

}  // namespace trainwright
