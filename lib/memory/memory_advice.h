/// What is advised where the memory of a run is, or was, too little.
#pragma once

#include <string>
#include <vector>

#include "lib/memory/training_memory.h"
#include "lib/spec/memory_lever.h"
#include "lib/spec/memory_parts.h"

namespace trainwright {

/// Of levers those that a run has not taken and can.
/// \param auto_oom whether --auto-oom is in force
std::vector<MemoryLever> LeversLeft(const MemoryRequest& request, bool auto_oom,
                                    const std::vector<MemoryLever>& levers);

/// What takes memory in order of size and what makes each smaller, the largest weights by name:
/// "activations, 3.1 GB: ...; weights, 1.2 GB, the largest model.embed_tokens.weight [32000, 2048]: ...".
std::string MemoryAdvice(const ModelFamilies& families, const MemoryParts& memory,
                         const MemoryRequest& request, bool auto_oom);

}  // namespace trainwright
