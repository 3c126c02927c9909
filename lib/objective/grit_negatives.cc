#include "lib/objective/grit_negatives.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/objective/grit_groups.h"

namespace trainwright {
namespace {

/// \param others passages that are no positives of the query
bool LeavesOutAll(const ContrastiveGroups& groups, const TextMasks& masks, size_t query, int64_t others) {
  const int64_t first = groups.first_passage[query], end = first + groups.positives[query];
  std::vector<int64_t> left_out;
  masks.ForPassagesOf(static_cast<int64_t>(query), [&](int64_t passage) {
    if (passage < first || passage >= end) left_out.push_back(passage);
  });
  if (static_cast<int64_t>(left_out.size()) < others) return false;
  std::sort(left_out.begin(), left_out.end());
  return std::unique(left_out.begin(), left_out.end()) - left_out.begin() == others;
}

}  // namespace

QueryCount CountQueries(const ContrastiveGroups& groups, bool masks_texts) {
  std::optional<TextMasks> masks;
  if (masks_texts) masks.emplace(groups);
  QueryCount count = {.queries = groups.queries()};
  for (size_t i = 0; i < groups.positives.size(); ++i) {
    const int64_t others = groups.passages() - groups.positives[i];
    if (others == 0 || (masks && LeavesOutAll(groups, *masks, i, others))) ++count.alone;
  }
  return count;
}

QueryCount CountQueriesOfMicroBatches(const std::vector<PackedBatch>& batches, bool masks_texts) {
  QueryCount all;
  for (const PackedBatch& batch : batches) {
    const std::vector<GritSpans> spans = {GritSpans(batch)};
    const GritGroups own = GroupsOf(Solo(), {batch}, spans, masks_texts, /*leaves=*/1, at::kCPU);
    const QueryCount count = CountQueries(own.groups, masks_texts);
    all.queries += count.queries;
    all.alone += count.alone;
  }
  return all;
}

void CheckNegatives(const QueryCount& count, bool tells) {
  if (count.alone == 0) return;
  const std::string hint =
      "give records with negatives, or a greater --batch; --mask-false-negatives may leave out too many";
  if (count.alone == count.queries) {
    throw Error(ErrorCode::kBadInput, "--data",
                "no query of a step has another passage than its positives: there is nothing to learn from",
                "", hint);
  }
  if (!tells) return;
  LogWarning(std::to_string(count.alone) + " of the " + std::to_string(count.queries) +
             " queries of the first step have no other passage than their positives, and teach nothing");
  LogHint(hint, LogLevel::kWarning);
}

}  // namespace trainwright
