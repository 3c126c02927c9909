#include "lib/nn/linear/quantized_matrix.h"

#include "lib/base/error.h"
#include "lib/nn/linear/int8_matrix.h"
#include "lib/nn/linear/nf4_matrix.h"

namespace trainwright {

std::unique_ptr<QuantizedMatrix> NewQuantizedMatrix(WeightFormat format, int64_t rows, int64_t depth,
                                                    at::Device device) {
  TRAINWRIGHT_CHECK(format != WeightFormat::kPlain);
  if (format == WeightFormat::kInt8) return std::make_unique<Int8Matrix>(rows, depth, device);
  return std::make_unique<Nf4Matrix>(rows, depth, device);
}

}  // namespace trainwright
