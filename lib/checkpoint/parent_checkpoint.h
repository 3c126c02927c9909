/// The checkpoint that a branch begins with, found and checked. Reads only: its run may be training.
#pragma once

#include "lib/run/branch_reference.h"
#include "lib/run/run_record.h"

namespace trainwright {

/// Of a run without a step: the newest checkpoint that verifies and holds a state; each one skipped is a
/// warning.
/// \returns without the step, which the checkpoint's state reports
/// \throws Error{kIo} where there is no such run or checkpoint; Error{kBadInput} on a damaged one;
///     Error{kUsage} on one that holds the model alone
ParentCheckpoint FindParentCheckpoint(const BranchReference& reference);

/// \throws Error{kBadInput} where the checkpoint is not the one that the record of a branch names;
///     Error{kIo} where it is gone
void RequireParentCheckpoint(const ParentCheckpoint& parent);

}  // namespace trainwright
