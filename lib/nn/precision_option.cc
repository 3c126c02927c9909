#include "lib/nn/precision_option.h"

#include "lib/base/error.h"

namespace trainwright {

Precision ParsePrecision(const std::string& mixed_precision, at::Device device) {
  if (mixed_precision == "no") return Precision::kFp32;
  if (mixed_precision == "bf16") return Precision::kBf16;
  if (mixed_precision == "fp16") return Precision::kFp16;
  if (mixed_precision == "auto") {
    return HasFastProducts(Precision::kBf16, device) ? Precision::kBf16 : Precision::kFp32;
  }
  throw Error(ErrorCode::kUsage, "--mixed-precision", "unknown value '" + mixed_precision + "'", "",
              "use no, bf16, fp16 or auto");
}

}  // namespace trainwright
