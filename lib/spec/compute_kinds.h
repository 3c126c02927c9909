/// Which of several implementations computes an operator, where there is a choice. Free of torch.
#pragma once

#include "lib/spec/attention_backend.h"
#include "lib/spec/scan_kind.h"

namespace trainwright {

struct ComputeKinds {
  /// An attention backend is a choice in which the scan is the usual one.
  ComputeKinds(AttentionBackend attention = AttentionBackend::kAuto,  // NOLINT: what most models choose
               ScanKind scan = ScanKind::kFused)
      : attention(attention), scan(scan) {}

  AttentionBackend attention;
  ScanKind scan;
};

}  // namespace trainwright
