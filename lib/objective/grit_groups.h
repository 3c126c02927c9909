/// Who belongs to whom among the texts of a step, shared with all ranks that score them together.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lib/dist/world.h"
#include "lib/loading/packed_batch.h"
#include "lib/nn/loss/contrastive_groups.h"
#include "lib/objective/grit_batch.h"

namespace trainwright {

/// The texts of all ranks, and which of them are this rank's.
struct GritGroups {
  ContrastiveGroups groups;
  ContrastiveShare share;
  std::vector<int64_t> queries_of_rank, passages_of_rank;
};

/// Of a rank's micro-batches, in the order of the ranks. All ranks of the world call together.
/// \param spans of each micro-batch
/// \param with_texts whether hashes are shared, see FalseNegatives::kSameText
/// \param leaves of this rank
/// \param device where the world's collectives move tensors from
/// \throws Error{kIo} naming a rank that is gone; what fails on one rank fails on all
GritGroups GroupsOf(World* world, const std::vector<PackedBatch>& batches,
                    const std::vector<GritSpans>& spans, bool with_texts, int64_t leaves, at::Device device);

/// How many passages have the text of one before them.
/// \param groups with texts
int64_t CountRepeatedPassages(const ContrastiveGroups& groups);

}  // namespace trainwright
