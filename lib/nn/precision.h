/// How GEMMs are computed on a device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "lib/spec/attention_backend.h"
#include "lib/spec/compute_kinds.h"
#include "lib/spec/fp8_parts.h"
#include "lib/spec/precision.h"
#include "lib/spec/scan_kind.h"

namespace trainwright {

at::ScalarType PrecisionDtype(Precision precision);

/// Whether this device multiplies matrices of reduced precision at least as fast as fp32. Where it does not
/// (a CPU without AVX-512, and any in fp16: gemm_kernels.h), GEMMs run in fp32 on values rounded to reduced
/// precision: same rounding points, about the speed of fp32 instead of a fifth of it. Torch's meta device
/// stands for a GPU.
bool HasFastProducts(Precision precision, at::Device device);
/// Whether --mixed-precision auto may take it on this device: where HasFastProducts says so, and on a CPU
/// IsBf16Worthwhile, too.
bool IsWorthwhile(Precision precision, at::Device device);

/// A precision and the type that holds its values: bf16 or fp16, or fp32 holding rounded values; the
/// kernels of attention and of a scan that are asked for; and the pieces in which the head is computed.
struct Numerics {
  Precision precision = Precision::kFp32;
  at::ScalarType storage = at::kFloat;
  AttentionBackend attention = AttentionBackend::kAuto;
  ScanKind scan = ScanKind::kFused;
  AttentionBackend equal_spans = AttentionBackend::kAuto;  ///< see ComputeKinds
  int64_t head_slice_logits = 0;                           ///< as HeadSliceRows takes it
  int64_t vocabulary_multiple = 1;  ///< columns of logits, of which the last are pads: see PaddedVocabulary
  /// Of the residual stream and its gradient: fp32, or `precision`, with which they are of the storage type
  /// and each of their sums is made in fp32 and rounded once.
  Precision residual = Precision::kFp32;
  Fp8Parts fp8 = {};  ///< see lib/nn/linear/fp8.h
  /// Whether fp32 storage holds values rounded to reduced precision.
  bool emulated() const { return precision != Precision::kFp32 && storage == at::kFloat; }
  at::ScalarType residual_storage() const { return residual == Precision::kFp32 ? at::kFloat : storage; }
  /// The precision as operators take it (ops.h).
  int64_t code() const { return static_cast<int64_t>(precision); }
};

/// The storage and the padding that are fast on a device.
/// \throws Error{kUsage} where it has no GEMMs of the precision or, asked for, of fp8
Numerics ChooseNumerics(Precision precision, at::Device device, const ComputeKinds& kinds = {});

}  // namespace trainwright
