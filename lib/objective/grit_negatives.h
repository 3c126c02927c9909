/// Whether a step has anything to learn from: a query whose positives are its only passages has no loss and
/// no gradient.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/loading/packed_batch.h"
#include "lib/nn/loss/contrastive_groups.h"

namespace trainwright {

/// Queries that are scored in a step, and those of them without another passage.
struct QueryCount {
  int64_t queries = 0, alone = 0;

  bool operator==(const QueryCount&) const = default;
};

/// Of queries that are scored with all passages of the groups.
/// \param masks_texts whether passages are left out by their text (FalseNegatives::kSameText): the groups
///     have texts then. Takes time by the passages that are left out.
QueryCount CountQueries(const ContrastiveGroups& groups, bool masks_texts);

/// Of queries that are scored with the passages of their micro-batch.
/// \param batches of GritData::Pack
QueryCount CountQueriesOfMicroBatches(const std::vector<PackedBatch>& batches, bool masks_texts);

/// \param tells whether to warn of some without another passage
/// \throws Error{kBadInput} where there are queries and none has another passage
void CheckNegatives(const QueryCount& count, bool tells);

}  // namespace trainwright
