#include "lib/nn/precision_option.h"

namespace trainwright {

Precision ParsePrecision(const std::string& mixed_precision, at::Device device) {
  return ParsePrecision(mixed_precision, HasFastProducts(Precision::kBf16, device),
                        HasFastProducts(Precision::kFp16, device));
}

}  // namespace trainwright
