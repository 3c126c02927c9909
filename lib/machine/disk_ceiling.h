/// How fast a folder's disk takes writes.
#pragma once

#include <cstdint>
#include <string>

#include "lib/machine/measurement.h"

namespace trainwright {

struct DiskBudget {
  double time_s = 0.5;
  uint64_t size_bytes = uint64_t{64} << 20;  ///< written at most; at least kLeastDiskBytes
};

inline constexpr uint64_t kLeastDiskBytes = 256 << 10;

/// Writes incompressible bytes into a file without a name (it is gone with the process, whatever happens),
/// each sample made durable by fdatasync: past the page cache by O_DIRECT where the file system takes it.
/// \throws Error{kIo}
Measurement MeasureDiskWrite(const std::string& folder, const DiskBudget& budget);

}  // namespace trainwright
