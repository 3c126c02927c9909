/// Lets GoogleTest print a Precision by its name. Where a test's parameter has no printer, its raw bytes,
/// padding among them, become a part of the test's name in CTest.
#pragma once

#include <ostream>

#include "lib/nn/precision.h"

namespace trainwright {

inline void PrintTo(Precision precision, std::ostream* out) {
  *out << PrecisionName(precision);
}

}  // namespace trainwright
