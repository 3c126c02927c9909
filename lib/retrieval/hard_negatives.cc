#include "lib/retrieval/hard_negatives.h"

#include <cmath>

namespace trainwright {

std::vector<uint64_t> ChooseNegatives(const std::vector<ScoredRow>& ranking,
                                      const std::set<uint64_t>& excluded, double positive_score,
                                      const NegativeRules& rules) {
  const double most = positive_score - rules.relative_margin * std::abs(positive_score);
  std::vector<uint64_t> chosen;
  int64_t place = 0;
  for (const ScoredRow& candidate : ranking) {
    if (excluded.contains(candidate.row)) continue;
    ++place;
    if (place > rules.last_place || static_cast<int64_t>(chosen.size()) == rules.negatives) break;
    if (place < rules.first_place || candidate.score > most) continue;
    chosen.push_back(candidate.row);
  }
  return chosen;
}

}  // namespace trainwright
