#include "lib/spec/product_rows.h"

#include <bit>

namespace trainwright {

int64_t RowsOfProduct(int64_t rows) {
  const int64_t octave = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(rows)));
  const int64_t step = octave < 8 ? 1 : octave / 8;
  return (rows + step - 1) / step * step;
}

}  // namespace trainwright
