/// How the samples of an optimizer step become micro-batches: this many of them, or as many as a number of
/// tokens has room for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/loading/sample_window.h"

namespace trainwright {

struct MicroBatchRule {
  int64_t samples = 1;     ///< of a micro-batch, >= 1
  int64_t max_tokens = 0;  ///< of a micro-batch, whatever its samples; 0: `samples` of them
};

/// \throws Error{kBadInput} naming --max-tokens-per-batch where a micro-batch has no room for the sample
void RequireRoom(const MicroBatchRule& rule, int64_t sample_tokens);

/// Divides samples into consecutive micro-batches, in their order. By tokens each takes the next sample as
/// long as it fits.
/// \throws as RequireRoom
std::vector<std::span<const Sample>> DivideSamples(std::span<const Sample> samples,
                                                   const MicroBatchRule& rule);

}  // namespace trainwright
