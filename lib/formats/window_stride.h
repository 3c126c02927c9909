/// How far the windows are apart that `pack --stride` cuts long documents into.
#pragma once

#include <cstdint>

#include "lib/formats/shard.h"

namespace trainwright {

/// How many tokens after each other the windows of long documents begin, as the set's provenance has it; a
/// chunk's where none overlap.
uint32_t StrideOf(const ShardSetHeader& header);

}  // namespace trainwright
