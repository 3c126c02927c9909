/// Sizes of a run that nobody chose: what train takes and what gpu-probe advises are the same.
#pragma once

#include <algorithm>
#include <cstdint>

namespace trainwright {

/// Tokens of a micro-batch that keep a device busy.
constexpr int64_t UsualMicroBatchTokens(bool gpu) {
  return gpu ? 16384 : 2048;
}

/// Samples of a micro-batch where nothing was measured. Such a step has one micro-batch a rank.
/// \param sample_tokens at least 1
constexpr int64_t UsualBatch(int64_t sample_tokens, bool gpu) {
  return std::max<int64_t>(1, UsualMicroBatchTokens(gpu) / sample_tokens);
}

/// Samples that an optimizer step has at least where the micro-batch was measured, which may be small, so
/// that gradients are not too noisy.
inline constexpr int64_t kLeastSamplesAStep = 16;

/// Micro-batches of a step, of each rank, where the micro-batch was measured.
/// \param batch samples of a micro-batch, at least 1
constexpr int64_t AccumOfMeasuredBatch(int64_t batch, int64_t ranks) {
  return std::max<int64_t>(1, (kLeastSamplesAStep + batch * ranks - 1) / (batch * ranks));
}

/// Tokens of a sample at most: a long context is a model's limit, not what its users train at.
inline constexpr int64_t kLongestUsualSequence = 2048;

/// Tokens of a sample for a model of this many positions.
constexpr int64_t UsualSequence(int64_t positions) {
  return std::min(positions, kLongestUsualSequence);
}

}  // namespace trainwright
