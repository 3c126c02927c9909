/// Where a run goes on from: its own checkpoints, and where those are lost, their copies.
#pragma once

#include <string>

#include "lib/run/run_directory.h"

namespace trainwright {

/// As NewestGoodCheckpoint, but a copy in `copies` of a later step than that, of this run by model, plan,
/// data and parent as far as these are known, is brought back into the run first, whole or not at all and
/// compared with the sha256 of its metadata.json.
/// What is damaged or holds the model alone is skipped with a warning.
/// \param copies the folder of --copy-to; empty: none
/// \throws what NewestGoodCheckpoint throws; Error{kBadInput} when the run has no checkpoint and no copy is
///     brought back, though its metrics mention copies: the message says where the newest is; Error{kIo}
std::string NewestCheckpointOrCopy(RunDirectory* run, const std::string& copies);

}  // namespace trainwright
