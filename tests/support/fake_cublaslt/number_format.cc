#include "tests/support/fake_cublaslt/number_format.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace trainwright::fake_cublaslt {
namespace {

int BiasOf(const NumberFormat& format) {
  return (1 << (format.exponent_bits - 1)) - 1;
}
uint32_t LargestExponentOf(const NumberFormat& format) {
  return (uint32_t{1} << format.exponent_bits) - 1;
}

}  // namespace

double Decode(const NumberFormat& format, uint32_t code) {
  const uint32_t fraction = code & ((uint32_t{1} << format.fraction_bits) - 1),
                 exponent = code >> format.fraction_bits & LargestExponentOf(format);
  const bool negative = (code >> (format.fraction_bits + format.exponent_bits) & 1) != 0;
  const int lowest = 1 - BiasOf(format) - format.fraction_bits;
  double magnitude = 0;
  if (exponent == LargestExponentOf(format) && format.infinities) {
    magnitude =
        fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == LargestExponentOf(format) && (fraction + 1) >> format.fraction_bits != 0) {
    magnitude = std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = std::ldexp(fraction, lowest);
  } else {
    magnitude =
        std::ldexp((uint32_t{1} << format.fraction_bits) + fraction, static_cast<int>(exponent) - 1 + lowest);
  }
  return negative ? -magnitude : magnitude;
}

uint32_t Encode(const NumberFormat& format, double value) {
  const uint32_t infinite = LargestExponentOf(format) << format.fraction_bits;
  const uint32_t sign =
      std::signbit(value) ? uint32_t{1} << (format.fraction_bits + format.exponent_bits) : 0;
  if (std::isnan(value)) return sign | infinite | (infinite - 1);
  if (std::isinf(value)) return sign | infinite;
  if (value == 0) return sign;
  const int lowest = 1 - BiasOf(format),
            exponent = std::max(static_cast<int>(std::ilogb(std::fabs(value))), lowest);
  // Of a number below the lowest exponent these are its code; a carry out of a fraction is one into the
  // exponent, of the largest number that into infinity.
  const double units = std::nearbyint(std::ldexp(std::fabs(value), format.fraction_bits - exponent));
  const double code = units + std::ldexp(exponent - lowest, format.fraction_bits);
  return sign | (code >= infinite ? infinite : static_cast<uint32_t>(code));
}

}  // namespace trainwright::fake_cublaslt
