/// The order of training on text and conversations: a SampleLoader whose samples LmCutter cuts.
/// The definition, with test vectors: man/trainwright-sample-order.5.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lib/formats/shard_set.h"
#include "lib/loading/chunk_order.h"
#include "lib/loading/document_split.h"
#include "lib/loading/lm_cutter.h"
#include "lib/loading/sample_loader.h"

namespace trainwright {

/// LmCutterOptions and SampleOrderOptions, which say what each means.
struct SampleStreamOptions {
  int64_t sequence_tokens = 512;
  uint64_t seed = 0;
  uint64_t window_chunks = 64;
  uint64_t block_chunks = 1;
  std::vector<OrderedSet> sets = {};
  bool shuffle = true;
  bool group_by_length = false;
  Packing packing = Packing::kOn;
  LossOn loss_on = LossOn::kAssistant;
  std::optional<DocumentSplit> split;
  int64_t step_samples = 0;  ///< of a step of all ranks, for orders that depend on it; 0: not known
  bool numbered = false;
  DrawRules rules = {};

  LmCutterOptions cutting() const {
    return {.sequence_tokens = sequence_tokens, .packing = packing, .loss_on = loss_on, .split = split};
  }
  SampleOrderOptions order() const {
    return {.seed = seed,
            .window_chunks = window_chunks,
            .block_chunks = block_chunks,
            .sets = sets,
            .shuffle = shuffle,
            .group_by_length = group_by_length,
            .numbered = numbered,
            .rules = rules};
  }
};

class SampleStream final : public SampleLoader {
 public:
  /// \param set outlives the stream
  /// \throws as SampleLoader and LmCutter
  SampleStream(const ShardSet* set, const SampleStreamOptions& options, const LoaderOptions& loader = {})
      : SampleLoader(set, std::make_unique<LmCutter>(set->header().record_kind, options.cutting()),
                     options.order(), loader) {}
};

}  // namespace trainwright
