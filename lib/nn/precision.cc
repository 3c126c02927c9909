#include "lib/nn/precision.h"

#include "lib/base/error.h"
#include "lib/nn/linear/gemm_kernels.h"
#include "lib/nn/loss/head_slices.h"
#include "lib/nn/precision_limits.h"

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

bool HasFastProducts(Precision precision, const GpuLimits& limits) {
  return precision == Precision::kFp16 || (precision == Precision::kBf16 && limits.bf16);
}

bool HasFastProducts(Precision precision, at::Device device) {
  if (precision == Precision::kFp32) return true;
  if (!device.is_cpu()) return HasFastProducts(precision, LimitsOf(device));
  return precision == Precision::kBf16 && ChosenCpuGemms().bf16 != CpuGemms::Bf16::kEmulated;
}

bool IsWorthwhile(Precision precision, at::Device device) {
  return HasFastProducts(precision, device) &&
         (precision == Precision::kFp32 || !device.is_cpu() || IsChosenBf16Worthwhile());
}

void RequireProducts(Precision precision, const GpuLimits& limits) {
  if (precision != Precision::kBf16 || limits.bf16) return;
  throw Error(ErrorCode::kUsage, "--mixed-precision", limits.gpu + " has no bf16 GEMMs", "",
              "use --mixed-precision fp16, or no");
}

void RequireFp8(Precision precision, const GpuLimits& limits) {
  if (precision != Precision::kBf16) {
    throw Error(ErrorCode::kUsage, "--fp8", "goes with bf16 alone, and this is " + PrecisionName(precision),
                "", "use --mixed-precision bf16, or --fp8 off");
  }
  if (limits.fp8) return;
  throw Error(ErrorCode::kUsage, "--fp8", limits.gpu + " has no fp8 GEMMs, which begin with 8.9", "",
              "use --fp8 off; a run that began with fp8 continues so by --branch-from");
}

Numerics ChooseNumerics(Precision precision, at::Device device, const ComputeKinds& kinds) {
  RequireProducts(precision, LimitsOf(device));
  TRAINWRIGHT_CHECK(kinds.residual == Precision::kFp32 || kinds.residual == precision);
  if (kinds.fp8.any()) RequireFp8(precision, LimitsOf(device));
  return {precision,
          HasFastProducts(precision, device) ? PrecisionDtype(precision) : at::kFloat,
          kinds.attention,
          kinds.scan,
          kinds.equal_spans,
          kinds.head_slice_logits,
          device.is_cpu() ? 1 : kVocabularyMultiple,
          kinds.residual,
          kinds.fp8};
}

}  // namespace trainwright
