/// The micro-batch that a model trains fastest with, found by training: the real passes of doubled batches,
/// as far as memory and time go.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/machine/repeated_rate.h"
#include "lib/memory/training_memory.h"

namespace trainwright {

struct BatchRequest {
  MemoryRequest training;
  std::function<MicroBatchPasses(int64_t samples)> passes;  ///< of a micro-batch of this many
  double time_s = 2;
  int64_t memory_bytes = 0;    ///< that training may take, where the model computes; 0: unknown
  std::string offload_folder;  ///< of a CPU's
  double flops_per_s = 0;  ///< of the device's GEMMs, to estimate beforehand what takes too long; 0: unknown
};

struct BatchPoint {
  int64_t batch = 0;
  Rate tokens;                   ///< a second of the passes
  int64_t activation_bytes = 0;  ///< with the logits
};

enum class BatchStop { kLevelled, kMemory, kTime };

struct BatchSearch {
  int64_t state_bytes = 0;         ///< of training that do not depend on the batch: see StateMemory
  std::vector<BatchPoint> points;  ///< batch 1, 2, 4, ...
  BatchStop stop = BatchStop::kTime;
  /// The smallest batch within 3 % of the fastest. Absent when the search ended before it could say: by
  /// time, with the last batch the fastest.
  std::optional<BatchPoint> chosen;
};

/// A forward and a backward pass of a language model's loss on samples of one length, of random tokens.
MicroBatchPasses EqualSamplePasses(const ModelConfig& model, int64_t samples, int64_t sequence_tokens);

/// Of measured points, as in BatchSearch::chosen.
std::optional<BatchPoint> SmallestFastBatch(const std::vector<BatchPoint>& points, BatchStop stop);

/// Takes at most 90 % of the memory, and stops after two doublings that gain less than 3 %. Makes the model,
/// with random weights. Empty where not even one sample fits into memory or time.
BatchSearch SearchBatch(const ModelFamilies& families, const BatchRequest& request);

nlohmann::ordered_json EncodeBatchSearch(const BatchSearch& search);

}  // namespace trainwright
