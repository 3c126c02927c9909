#include "lib/spec/precision.h"

#include "lib/base/error.h"

namespace trainwright {

std::string PrecisionName(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return "fp32";
    case Precision::kBf16:
      return "bf16";
    case Precision::kFp16:
      return "fp16";
  }
  return "";
}

Precision ParsePrecision(const std::string& mixed_precision, bool fast_bf16, bool fast_fp16) {
  if (mixed_precision == "no") return Precision::kFp32;
  if (mixed_precision == "bf16") return Precision::kBf16;
  if (mixed_precision == "fp16") return Precision::kFp16;
  if (mixed_precision == "auto") {
    return fast_bf16 ? Precision::kBf16 : fast_fp16 ? Precision::kFp16 : Precision::kFp32;
  }
  throw Error(ErrorCode::kUsage, "--mixed-precision", "unknown value '" + mixed_precision + "'", "",
              "use no, bf16, fp16 or auto");
}

}  // namespace trainwright
