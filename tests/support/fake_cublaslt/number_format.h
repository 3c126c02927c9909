/// Binary floating-point types by their parameters, in double.
#pragma once

#include <cstdint>

namespace trainwright::fake_cublaslt {

/// \source IEEE 754-2019, section 3.3
struct NumberFormat {
  int exponent_bits, fraction_bits;
  bool infinities = true;  ///< false: all codes are numbers but the largest of each sign, which is a NaN
};
inline constexpr NumberFormat kFp32 = {8, 23}, kTf32 = {8, 10}, kBf16 = {8, 7}, kFp16 = {5, 10},
                              kE5m2 = {5, 2}, kE4m3 = {4, 3, false};

double Decode(const NumberFormat& format, uint32_t code);
/// To nearest, ties to even. Of a type with infinities.
uint32_t Encode(const NumberFormat& format, double value);

}  // namespace trainwright::fake_cublaslt
