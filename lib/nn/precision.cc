#include "lib/nn/precision.h"

namespace trainwright {

at::ScalarType PrecisionDtype(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return at::kFloat;
    case Precision::kBf16:
      return at::kBFloat16;
    case Precision::kFp16:
      return at::kHalf;
  }
  return at::kFloat;
}

bool HasFastProducts(Precision precision, at::Device device) {
  if (precision == Precision::kFp32 || !device.is_cpu()) return true;
#if defined(__x86_64__)
  // Every CPU with AMX-BF16 has AVX512-BF16 too.
  return precision == Precision::kBf16 && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

Numerics ChooseNumerics(Precision precision, at::Device device, const ComputeKinds& kinds) {
  return {precision, HasFastProducts(precision, device) ? PrecisionDtype(precision) : at::kFloat,
          kinds.attention, kinds.scan};
}

}  // namespace trainwright
