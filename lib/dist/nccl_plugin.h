/// What libtrainwright_nccl.so, beside libtrainwright_cuda.so, gives a world whose ranks have a GPU each.
#pragma once

#include <cstdint>

#include "lib/dist/collectives.h"
#include "lib/dist/fault_watch.h"

namespace c10d {
class Store;
}

namespace trainwright {

/// The symbol of the plugin.
inline constexpr char kNcclGroupSymbol[] = "trainwright_nccl_group";

/// Connects the current GPU of this rank to those of all others, which call it, too.
/// \param store of which the group keeps a reference
/// \param watch outlives the group
/// \returns collectives for tensors on that GPU, which the caller deletes once all work is done, and leaves
///     behind where a rank is at fault
/// \throws Error{kIo} as the watch says
using NcclGroupFunction = Collectives*(c10d::Store* store, int32_t rank, int32_t ranks, FaultWatch* watch);

}  // namespace trainwright
