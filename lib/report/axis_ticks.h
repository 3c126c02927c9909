/// Where an axis gets its ticks and what they are called.
#pragma once

#include <string>
#include <vector>

namespace trainwright {

struct AxisTicks {
  std::vector<double> values;       ///< rising, inside [low, high]
  std::vector<std::string> labels;  ///< "0.25", "1,500", "40k", one a value
  int exponent = 0;                 ///< labels are to be multiplied by 10^exponent (a multiple of 3, <= 0)
};

/// Multiples of 1, 2 or 5 times a power of ten, as many as fit, at least one where the range holds one.
/// \param high > low
/// \param max_ticks >= 2
/// \param whole whether only whole numbers may be ticks
AxisTicks LinearTicks(double low, double high, int max_ticks, bool whole = false);

/// 1, 2 and 5 times powers of ten, or powers of ten alone where those would be too many.
/// \param low > 0
/// \param high > low
/// \param max_ticks >= 2
AxisTicks LogTicks(double low, double high, int max_ticks);

}  // namespace trainwright
