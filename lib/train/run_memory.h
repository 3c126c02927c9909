/// The memory of a run under way: what it holds, and what it does when memory runs out.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/device/memory_error.h"
#include "lib/run/train_settings.h"
#include "lib/spec/memory_parts.h"
#include "lib/train/model_setup.h"
#include "lib/train/resolved_run.h"
#include "lib/train/train_job.h"
#include "lib/train/trainer.h"

namespace trainwright {

/// What of a session the memory that it takes depends on.
struct SessionPoint {
  TrainPlan plan;  ///< as it is now
  int64_t step = 0;
  int64_t snapshot_bytes = 0;
  std::vector<Sample> samples;  ///< of the step that it is at; empty before the first
};

/// What the run is at, for when memory runs out.
/// \param point of the session; nullopt before there is one
MemoryUser DescribeMemoryUser(const TrainSettings& settings, const TrainJobContext& context,
                              const ResolvedRun& run, const std::optional<SessionPoint>& point);

/// What this process holds for a run, its buffers as they are and the rest as the system reports it.
/// \param peak_bytes of what was resident; what the heap keeps free is reported within it
MemoryParts HeldMemory(const ResolvedRun& run, const ModelSetup& setup, const Trainer& trainer,
                       int64_t snapshot_bytes, int64_t peak_bytes);

}  // namespace trainwright
