/// The threads of a run whose bits --exact-world promises: they depend on them.
#pragma once

#include <string>

namespace trainwright {

/// How many threads a rank of the run computed with, as the metadata of its newest checkpoint say. Reads
/// only; what is wrong with the run is reported by those who continue it.
/// \param run a run directory
/// \returns 0 where no checkpoint says it, and of a run without --exact-world
int ThreadsOfExactRun(const std::string& run);

}  // namespace trainwright
