/// How much the GEMMs do that a timeline has timed.
#pragma once

#include <cstdint>

#include "lib/base/host_timeline.h"
#include "lib/base/profile_part.h"

namespace trainwright {

/// Floating-point operations of those that have ended.
inline int64_t GemmOperations(const HostTimeline& timeline) {
  int64_t operations = 0;
  for (const HostTotals& totals : timeline.totals()) {
    if (totals.part == ProfilePart::kGemm) operations += totals.operations;
  }
  return operations;
}

}  // namespace trainwright
