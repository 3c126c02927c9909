#include "lib/nn/precision_option.h"

namespace trainwright {

Precision ParsePrecision(const std::string& mixed_precision, at::Device device) {
  return ParsePrecision(mixed_precision, IsWorthwhile(Precision::kBf16, device),
                        IsWorthwhile(Precision::kFp16, device));
}

}  // namespace trainwright
