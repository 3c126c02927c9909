/// Whether ranks on GPUs exchange through NCCL. Torch-free.
#pragma once

#include <string>

#include "lib/dist/world.h"

namespace trainwright {

/// What a rank knows of its own GPU.
struct RankGpu {
  bool has_nccl = false;  ///< C10dWorld::HasNccl()
  std::string identity;   ///< the same in all processes that have this GPU; empty: not known
};

/// NCCL connects ranks where each has it and a GPU of its own. All ranks call together.
/// \returns why it does not, in words for a message, the same on all ranks; empty: it does
/// \throws as World::Reduce
std::string WhyNotNccl(World* world, const RankGpu& own);

}  // namespace trainwright
