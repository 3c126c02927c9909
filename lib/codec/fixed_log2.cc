#include "lib/codec/fixed_log2.h"

#include <array>
#include <bit>

namespace trainwright {
namespace {

constexpr int kIndexBits = 11;

/// Bits of log2(1 + i / 2^kIndexBits), by repeated squaring.
constexpr std::array<uint32_t, 1 << kIndexBits> FractionTable() {
  std::array<uint32_t, 1 << kIndexBits> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint64_t x = (uint64_t{1} << 31) + (uint64_t{i} << (31 - kIndexBits));  // in [1, 2), 31 bits of fraction
    uint32_t bits = 0;
    for (int bit = 0; bit < kLog2FractionBits; ++bit) {
      x = x * x >> 31;
      const bool two = x >> 32 != 0;
      bits = bits << 1 | (two ? 1 : 0);
      if (two) x >>= 1;
    }
    table[i] = bits;
  }
  return table;
}

}  // namespace

uint32_t FixedLog2(uint32_t value) {
  static constexpr std::array<uint32_t, 1 << kIndexBits> kFraction = FractionTable();
  if (value == 0) return 0;
  const int exponent = std::bit_width(value) - 1;
  const uint32_t mantissa = value << (31 - exponent) & 0x7fffffff;
  return static_cast<uint32_t>(exponent) << kLog2FractionBits | kFraction[mantissa >> (31 - kIndexBits)];
}

uint64_t EntropyCost(const uint32_t* counts) {
  uint64_t total = 0, sum = 0;
  for (int symbol = 0; symbol < 256; ++symbol) {
    if (counts[symbol] == 0) continue;
    total += counts[symbol];
    sum += uint64_t{counts[symbol]} * FixedLog2(counts[symbol]);
  }
  const uint64_t all = total * FixedLog2(static_cast<uint32_t>(total));
  return all > sum ? all - sum : 0;
}

}  // namespace trainwright
