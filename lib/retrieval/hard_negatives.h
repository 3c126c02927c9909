/// Hard negatives of a query: texts that are near it and do not answer it.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "lib/retrieval/scored_row.h"

namespace trainwright {

/// Which of the texts near a query are its negatives.
struct NegativeRules {
  int64_t negatives = 15;
  int64_t first_place = 1, last_place = 200;  ///< of the ranking, from 1, what may not be taken left out
  double relative_margin = 0.05;              ///< in [0, 1]
};

/// \param ranking the nearest rows, the nearest first
/// \param excluded rows that are no negatives: the query's own texts
/// \param positive_score the lowest of the positives': rows that score above it less the margin's share of it
///     are left out, as they may well be right
/// \returns rows, the nearest first
std::vector<uint64_t> ChooseNegatives(const std::vector<ScoredRow>& ranking,
                                      const std::set<uint64_t>& excluded, double positive_score,
                                      const NegativeRules& rules);

}  // namespace trainwright
