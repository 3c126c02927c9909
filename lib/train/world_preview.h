/// --dry-run --world: what a resolved run would be on numbers of ranks that are not there.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "lib/run/world_settings.h"
#include "lib/train/dry_run.h"
#include "lib/train/resolved_run.h"
#include "lib/train/train_job.h"

namespace trainwright {

struct WorldPreview {
  std::string text;             ///< for people
  nlohmann::ordered_json json;  ///< the same
  bool fits = true;             ///< as of WorldEstimates
};

/// Whether the settings say for a rank what else is measured here: nothing has to be run.
bool IsOnPaperAlone(const WorldSettings& world);

/// Nothing is run: sizes come from shapes, lib/scaling does the rest.
/// \param measured what one process takes here; null where IsOnPaperAlone
/// \throws Error{kDevice} of GPUs, where the family has no kernels for them
WorldPreview PreviewWorlds(const WorldSettings& world, const TrainJobContext& context, const ResolvedRun& run,
                           const DryRunReport* measured);

}  // namespace trainwright
