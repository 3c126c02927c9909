/// What a stream delivers, as an oracle for what it counts.
#pragma once

#include <cstdint>

#include "lib/loading/sample_stream.h"

namespace trainwright::test {

/// Reads the first epoch of a stream that is at its beginning.
inline EpochCounts DeliveredEpoch(SampleStream* stream) {
  EpochCounts delivered;
  while (stream->cursor().epoch == 0) {
    PackedBatch batch;
    stream->Next().AppendTo(&batch);
    ++delivered.samples;
    delivered.tokens += static_cast<uint64_t>(batch.num_tokens());
    delivered.labels += static_cast<uint64_t>(batch.num_labels);
  }
  return delivered;
}

}  // namespace trainwright::test
