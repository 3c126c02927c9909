#include "lib/tok/reference_merges.h"

#include <cstddef>
#include <set>

namespace trainwright {

ReferenceMerges::ReferenceMerges(const std::vector<BytePairMerge>& merges) {
  for (const BytePairMerge& merge : merges) merges_[{merge.left, merge.right}] = merge;
}

void ReferenceMerges::Merge(std::vector<uint32_t>* merged_symbols) const {
  std::vector<uint32_t>& symbols = *merged_symbols;
  // Symbols by their place, and the places where one merges with the next, by the merge's rank.
  std::map<size_t, uint32_t> at;
  for (size_t i = 0; i < symbols.size(); ++i) at[i] = symbols[i];
  std::set<std::pair<uint32_t, size_t>> candidates;
  using Place = std::map<size_t, uint32_t>::iterator;
  const auto merge_at = [&](Place place) -> const BytePairMerge* {
    const auto next = std::next(place);
    if (next == at.end()) return nullptr;
    const auto found = merges_.find({place->second, next->second});
    return found == merges_.end() ? nullptr : &found->second;
  };
  const auto update = [&](Place place, bool add) {
    const BytePairMerge* merge = merge_at(place);
    if (merge == nullptr) return;
    if (add) {
      candidates.emplace(merge->rank, place->first);
    } else {
      candidates.erase({merge->rank, place->first});
    }
  };
  for (auto place = at.begin(); place != at.end(); ++place) update(place, true);
  while (!candidates.empty()) {
    const auto place = at.find(candidates.begin()->second);
    const auto next = std::next(place);
    const uint32_t merged = merge_at(place)->merged;
    if (place != at.begin()) update(std::prev(place), false);
    update(place, false);
    update(next, false);
    at.erase(next);
    place->second = merged;
    if (place != at.begin()) update(std::prev(place), true);
    update(place, true);
  }
  symbols.clear();
  for (const auto& [place, symbol] : at) symbols.push_back(symbol);
}

}  // namespace trainwright
