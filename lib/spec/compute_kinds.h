/// Which of several implementations computes an operator, and in what pieces, where there is a choice. Free
/// of torch.
#pragma once

#include <cstdint>

#include "lib/spec/attention_backend.h"
#include "lib/spec/fp8_parts.h"
#include "lib/spec/precision.h"
#include "lib/spec/scan_kind.h"

namespace trainwright {

struct ComputeKinds {
  /// An attention backend is a choice in which the scan is the usual one.
  ComputeKinds(AttentionBackend attention = AttentionBackend::kAuto,  // NOLINT: what most models choose
               ScanKind scan = ScanKind::kFused)
      : attention(attention), scan(scan) {}

  AttentionBackend attention;
  ScanKind scan;
  /// What kAuto stands for where all spans of a micro-batch have one length; kAuto: what it does elsewhere.
  AttentionBackend equal_spans = AttentionBackend::kAuto;
  int64_t head_slice_logits = 0;  ///< as HeadSliceRows takes it
  /// In which a transformer's residual stream and its gradient are stored: fp32, or bf16 of GEMMs in bf16.
  Precision residual = Precision::kFp32;
  Fp8Parts fp8 = {};  ///< whose GEMMs are in fp8; the rest are in the precision of the model
};

}  // namespace trainwright
