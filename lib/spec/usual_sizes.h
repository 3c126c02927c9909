/// Sizes of a run that nobody chose, which train takes and gpu-probe advises where nothing was measured.
#pragma once

#include <cstdint>

namespace trainwright {

/// Tokens of a micro-batch that keep a device busy.
constexpr int64_t UsualMicroBatchTokens(bool gpu) {
  return gpu ? 16384 : 2048;
}

/// Tokens of a sample at most: a long context is a model's limit, not what its users train at.
inline constexpr int64_t kLongestUsualSequence = 2048;

}  // namespace trainwright
