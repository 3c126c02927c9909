/// How fast a GPU's memory is copied, and filled from and read back to the host's.
#pragma once

#include <c10/core/Device.h>

#include <vector>

#include "lib/machine/measurement.h"

namespace trainwright {

struct TransferBudget {
  double time_s = 0.2;  ///< for each
  int64_t size_bytes = int64_t{256} << 20;
};

/// device_copy (bytes read and written), h2d_pinned, h2d_pageable, d2h_pinned, d2h_pageable. On a CPU, for
/// tests: a copy and the two pageable ones, all of which are plain copies there.
std::vector<Measurement> MeasureTransfers(c10::Device device, const TransferBudget& budget);

}  // namespace trainwright
