/// How ranges of a flat buffer travel between ranks that own its blocks round-robin: see ShardLayout.
/// Torch-free.
#pragma once

#include <cstdint>
#include <vector>

namespace trainwright {

/// Elements [begin, end) of a flat buffer.
struct ElementRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

/// How much travels together.
struct PartSize {
  int64_t elements = 0;
  int64_t most = 0;  ///< of them, of the owner that has most
  bool operator==(const PartSize&) const = default;
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
  PartSize size() const { return {.elements = elements(), .most = most}; }
};

RangePlan PlanRanges(const std::vector<ElementRange>& ranges, int64_t ranks);

/// Plans that have this many elements of ranges each, in their order; the last one may have fewer.
/// \param ranges not empty ones; may be none
std::vector<RangePlan> PlanInParts(const std::vector<ElementRange>& ranges, int64_t part_elements,
                                   int64_t ranks);

/// PlanRanges({range}, ranks).size() without the plan: for estimates of many ranges.
/// \param range not empty
PartSize SizeOfRange(const ElementRange& range, int64_t ranks);

/// What may travel together where owners get, or give, equal parts, each padded to the longest: a multiple of
/// a block of each rank, so that all have the same; at least one, since less would be padded to that.
/// \param elements that are asked for; the result is the next such number below, or the least one
int64_t WholeRounds(int64_t elements, int64_t ranks);

}  // namespace trainwright
