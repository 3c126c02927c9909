/// How fast the host's memory is copied, read and combined by threads.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/machine/measurement.h"

namespace trainwright {

struct MemoryBudget {
  double time_s = 0.2;      ///< for each of the three
  int64_t array_bytes = 0;  ///< of each of three arrays; several times the last cache
};

/// The size that fits a machine: four times its last cache, within [32, 256] MiB and a sixteenth of the
/// memory that is left.
/// \param available_bytes 0: unknown
int64_t MemoryArrayBytes(int64_t last_level_cache_bytes, int64_t available_bytes);

/// memory_copy (memcpy), memory_read (a sum) and memory_triad (a = b + s c). Bytes are counted as STREAM
/// does: those that the program reads and writes, not what the cache fetches to write.
/// \source McCalpin 1995, "Memory Bandwidth and Machine Balance in Current High Performance Computers"
std::vector<Measurement> MeasureMemory(int threads, const MemoryBudget& budget);

}  // namespace trainwright
