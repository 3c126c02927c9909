/// What a resumed run computes with otherwise than it did before.
#pragma once

#include <string>
#include <vector>

#include "lib/train/resolved_run.h"

namespace trainwright {

/// \returns a warning for each of device, threads, instruction set, torch build, attention and scan that
/// differs from what the checkpoint was computed with; empty where results are those of the uninterrupted run
/// \param run is resumed
std::vector<std::string> WarningsOfComputeChanges(const ResolvedRun& run);

}  // namespace trainwright
