/// How ranges of a flat buffer travel between ranks that own its blocks in turn: see ShardLayout.
#pragma once

#include <cstdint>
#include <vector>

namespace trainwright {

/// Elements [begin, end) of a flat buffer.
struct ElementRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

/// What travels together, packed by owner.
struct RangePlan {
  /// Elements side by side that are one owner's.
  struct Piece {
    int64_t begin = 0;  ///< in the flat buffer
    int64_t owner = 0;
    int64_t place = 0;  ///< in all of them that are the owner's
    int64_t size = 0;
  };
  std::vector<Piece> pieces;    ///< in the order of the ranges
  std::vector<int64_t> counts;  ///< elements of each owner
  int64_t most = 0;             ///< of them

  int64_t elements() const;
};

RangePlan PlanRanges(const std::vector<ElementRange>& ranges, int64_t ranks);

}  // namespace trainwright
