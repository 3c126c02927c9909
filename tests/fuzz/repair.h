/// Makes the hashes of mutated files right again, so that fuzzing reaches what lies behind them.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/bytes.h"

namespace trainwright::fuzz {

/// Header, blocks and trailer, as far as their sizes fit.
std::vector<uint8_t> RepairTokenStream(ByteSpan bytes);
/// Header and index of one shard, as far as their sizes fit.
std::vector<uint8_t> RepairShard(ByteSpan bytes);

/// The hash in the header of a container.
std::vector<uint8_t> RepairCompressedContainer(ByteSpan bytes);
/// Head and footer of a stream, as far as their sizes fit.
std::vector<uint8_t> RepairCompressedStream(ByteSpan bytes);

}  // namespace trainwright::fuzz
