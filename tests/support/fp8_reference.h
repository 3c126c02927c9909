/// The 8-bit types by their definition, slow and obvious, in double: the oracle of the conversions' tests.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "lib/nn/linear/fp8_format.h"

namespace trainwright::test {

/// \source Micikevicius et al. 2022, arXiv:2209.05433, table 1
inline double Fp8Value(Fp8Format format, int code) {
  const bool e4m3 = format == Fp8Format::kE4m3;
  const int fraction_bits = e4m3 ? 3 : 2, bias = e4m3 ? 7 : 15, most = e4m3 ? 15 : 31;
  const double sign = (code & 0x80) != 0 ? -1 : 1;
  const int exponent = (code & 0x7F) >> fraction_bits, fraction = code & ((1 << fraction_bits) - 1);
  const double share = static_cast<double>(fraction) / (1 << fraction_bits);
  if (exponent == most && !e4m3) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  if (e4m3 && exponent == most && fraction == 7) return std::numeric_limits<double>::quiet_NaN();
  return exponent == 0 ? sign * share * std::pow(2, 1 - bias)
                       : sign * (1 + share) * std::pow(2, exponent - bias);
}

/// The code of the largest number.
inline int LargestFp8Code(Fp8Format format) {
  return format == Fp8Format::kE4m3 ? 0x7E : 0x7B;
}

/// The nearest of all numbers, of two the one with an even code; of more than the largest the largest.
inline int Fp8Code(Fp8Format format, double value) {
  const int sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return 0x7F | sign;
  if (std::fabs(value) >= Fp8Value(format, LargestFp8Code(format))) return LargestFp8Code(format) | sign;
  int nearest = 0;
  for (int code = 1; code <= LargestFp8Code(format); ++code) {
    const double distance = std::fabs(std::fabs(value) - Fp8Value(format, code)),
                 least = std::fabs(std::fabs(value) - Fp8Value(format, nearest));
    if (distance < least || (distance == least && code % 2 == 0)) nearest = code;
  }
  return nearest | sign;
}

}  // namespace trainwright::test
