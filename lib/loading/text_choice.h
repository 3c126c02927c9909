/// How many texts of a contrastive record a step takes.
#pragma once

#include <algorithm>
#include <cstdint>

namespace trainwright {

struct TextChoice {
  uint64_t positives = 1;  ///< at most; 0: all
  uint64_t negatives = 1;  ///< exactly, unless the record has none: then none

  /// \param stored those of the record
  uint64_t positives_of(uint64_t stored) const {
    return positives == 0 ? stored : std::min(positives, stored);
  }
  uint64_t negatives_of(uint64_t stored) const { return stored == 0 ? 0 : negatives; }
};

}  // namespace trainwright
