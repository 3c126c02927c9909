/// Memory of a GPU that its GEMMs by cuBLASLt (product_ops.h) use while they run. Free of torch.
#pragma once

#include <cstdint>

namespace trainwright {

/// What NVIDIA advises for compute capability 9.0; earlier ones want less. GEMMs of one stream take it one
/// after the other.
inline constexpr int64_t kProductWorkspaceBytes = int64_t{32} << 20;

}  // namespace trainwright
