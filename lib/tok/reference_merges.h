/// Byte-pair merges found slowly, for references: byte_pair_merges.h is checked against it.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "lib/tok/byte_pair_merges.h"

namespace trainwright {

class ReferenceMerges {
 public:
  explicit ReferenceMerges(const std::vector<BytePairMerge>& merges);

  /// Merges symbols pair by pair, the lowest rank first, of one rank the leftmost.
  void Merge(std::vector<uint32_t>* symbols) const;

 private:
  std::map<std::pair<uint32_t, uint32_t>, BytePairMerge> merges_;
};

}  // namespace trainwright
