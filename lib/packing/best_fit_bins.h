/// Best-fit decreasing: which items share a bin of a given capacity, from their sizes alone.
///
/// Items are placed by falling size, equal ones in their order, each into the bin with the least room that
/// holds it; of bins with equal room the one that got it first. Rooms are kept in a tree of 64-bit words, so
/// an item costs a few word operations, whatever the number of bins: 20 to 60 ns an item in windows of 65,536
/// (tests/packing/packer_speed_main.cc measures it).
/// \source best-fit packing: Ding et al. 2024, arXiv 2404.10830
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/packing/ordered_bit_set.h"

namespace trainwright {

/// Not thread-safe. Memory: 4 bytes times the capacity, 12 an item, 16 a bin.
class BestFitBins {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Bin {
    uint32_t room;
    uint32_t first_item, last_item;
    uint32_t next_bin;  // of the circular list of bins with equal room
  };

  /// \param capacity of a bin, at least 2 and below 2^32 - 1
  explicit BestFitBins(size_t capacity);

  /// Forgets what was there and places these.
  /// \param sizes each in [1, capacity)
  void Fill(std::span<const uint32_t> sizes);

  /// In the order in which they were begun.
  const std::vector<Bin>& bins() const { return bins_; }
  /// The item after this one in its bin, or kNone.
  uint32_t NextOf(uint32_t item) const { return next_item_[item]; }

 private:
  void SortBySize(std::span<const uint32_t> sizes);
  void PutBinWithRoom(uint32_t bin);
  uint32_t TakeOldestBinWithRoom(size_t room);

  const size_t capacity_;
  std::vector<uint32_t> order_, next_item_;  // by place in the order, by item
  std::vector<uint32_t> starts_;             // of the items of each size in the order
  std::vector<Bin> bins_;
  OrderedBitSet rooms_;                         // those > 0 that some bin has
  std::vector<uint32_t> newest_bin_with_room_;  // by room; it points to the oldest; kNone where no bin has it
};

}  // namespace trainwright
