/// The size of what sums over flat buffers are made of. Torch-free.
#pragma once

#include <cstdint>

namespace trainwright {

/// Elements of the blocks that SquareSum adds up, that sums between ranks are divided by, and that shards
/// consist of.
inline constexpr int64_t kReductionBlock = 65536;

}  // namespace trainwright
