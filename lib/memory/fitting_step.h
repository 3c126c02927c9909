/// The step of a run on a GPU that is too small for the usual micro-batch: smaller ones, and more of them.
#pragma once

#include <cstdint>
#include <functional>

namespace trainwright {

/// What of a GPU's memory training may be planned to take: less what only a run shows, and the eighth of what
/// the state leaves that the head's slices may take.
/// \param state_bytes of weights and of what goes with them
int64_t MemoryToFit(int64_t whole_bytes, int64_t state_bytes);

/// \param bytes_of what training with this many samples a micro-batch takes
/// \returns the first of batch, its half, its quarter, ... that takes at most this memory; 0 where none does
int64_t HalveToFit(int64_t batch, int64_t memory_bytes,
                   const std::function<int64_t(int64_t batch)>& bytes_of);

/// Of a rank.
struct DividedStep {
  int64_t batch = 1, accum = 1;
};
/// As few micro-batches as possible, of at most `most` samples, that have together at least `samples`.
DividedStep DivideStep(int64_t samples, int64_t most);

}  // namespace trainwright
