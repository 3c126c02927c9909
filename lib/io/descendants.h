/// The processes that descend from a child of this process, in whatever session and process group they are.
#pragma once

#include <sys/types.h>

namespace trainwright {

/// Makes this process the parent of descendants whose own parent ends, in place of init, for good: so that
/// KillDescendants finds them. For mains.
void AdoptOrphans();

/// Kills a child of this process that has not been waited for, with all that descends from it. Whose an
/// orphan was cannot be known: what this process adopted since the child began counts as the child's, so that
/// no other child may be begun meanwhile. Those begun before are spared.
void KillDescendants(pid_t child);

/// Takes from the table of processes what was adopted and has ended. Only where nothing else waits for a
/// child.
void ReapOrphans();

}  // namespace trainwright
