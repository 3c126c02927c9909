/// Which attention backend is fastest on this device for spans of one length, found by trying.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lib/nn/attention/attention_shape.h"
#include "lib/nn/precision.h"

namespace trainwright {

struct AttentionTiming {
  AttentionBackend backend = AttentionBackend::kAuto;
  double seconds = 0;   ///< forward and backward of one layer, the least of the rounds
  std::string problem;  ///< why it could not be timed; empty: it could
};

/// The backends that may be chosen for spans of one length on a device, in the order in which they are
/// preferred where they are equally fast: cuDNN's and FlashAttention's where the device has them, heads are
/// of a size that they take and windows are of a kind that they know. No cuDNN under deterministic
/// algorithms, which exclude its backward pass. Empty where there is nothing to choose from.
std::vector<AttentionBackend> AttentionCandidates(const Numerics& numerics, const AttentionShape& shape,
                                                  int64_t span_tokens, at::Device device);

/// Tries each on zeros.
/// \param shape whose tokens are a whole number of spans
/// \param rounds that are timed, after one that is not
std::vector<AttentionTiming> TimeAttention(const std::vector<AttentionBackend>& candidates,
                                           const Numerics& numerics, const AttentionShape& shape,
                                           int64_t span_tokens, at::Device device, int rounds = 5);

/// The first of the fastest; kAuto where none could be timed.
AttentionBackend FastestAttention(const std::vector<AttentionTiming>& timings);

}  // namespace trainwright
