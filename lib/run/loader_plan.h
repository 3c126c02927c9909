/// How the data of a run is made ready, decided at the start of each process: no part of the plan, because it
/// changes no result.
#pragma once

#include <string>
#include <vector>

#include "lib/loading/sample_stream.h"
#include "lib/run/run_planner.h"
#include "lib/run/train_settings.h"

namespace trainwright {

struct PlannedLoader {
  LoaderOptions options;
  bool pin = false;                   ///< micro-batches go to a GPU through pinned memory
  std::vector<ChoiceReason> reasons;  ///< of what the user did not choose
};

/// Fills in what the user left open.
/// \param gpu whether it trains on one
/// \param cores physical cores that the process may use
/// \param data_tokens of the shards
/// \throws Error{kUsage} on values out of range
PlannedLoader PlanLoader(const TrainSettings& settings, bool gpu, int cores, uint64_t data_tokens);

/// What depends on the data: sets options.cache_bytes of `planned`.
/// \param chunks_per_frame of the data
/// \param block_chunks of the plan
/// \throws Error{kUsage}
void PlanDataCache(const TrainSettings& settings, uint32_t chunks_per_frame, uint64_t block_chunks,
                   PlannedLoader* planned);

}  // namespace trainwright
