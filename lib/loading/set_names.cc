#include "lib/loading/set_names.h"

#include <algorithm>
#include <vector>

namespace trainwright {

std::string NamesOfSets(const ShardSet& set, std::span<const OrderedSet> sets) {
  const std::vector<ShardSetPart> parts = set.parts();
  std::string names;
  for (const ShardSetPart& part : parts) {
    const auto holds = [&part](const OrderedSet& one) {
      return one.first_chunk <= part.first_chunk && part.first_chunk < one.first_chunk + one.chunks;
    };
    const bool is_read = sets.empty() || std::any_of(sets.begin(), sets.end(), holds);
    if (is_read && !part.name.empty()) names += (names.empty() ? "" : ", ") + part.name;
  }
  return names.empty() ? "shards" : names;
}

}  // namespace trainwright
