#include "lib/packing/best_fit_bins.h"

#include <algorithm>

namespace trainwright {
namespace {

// Sorting by counting pays as long as there are not many more sizes than items.
constexpr size_t kSizesPerItem = 4;

}  // namespace

BestFitBins::BestFitBins(size_t capacity)
    : capacity_(capacity), rooms_(capacity), newest_bin_with_room_(capacity, kNone) {}

void BestFitBins::SortBySize(std::span<const uint32_t> sizes) {
  order_.resize(sizes.size());
  if (capacity_ > kSizesPerItem * sizes.size()) {
    for (uint32_t i = 0; i < order_.size(); ++i) order_[i] = i;
    std::stable_sort(order_.begin(), order_.end(),
                     [&](uint32_t a, uint32_t b) { return sizes[a] > sizes[b]; });
    return;
  }
  starts_.assign(capacity_, 0);
  for (const uint32_t size : sizes) ++starts_[size];
  uint32_t start = 0;
  for (size_t size = capacity_; size-- > 0;) {
    const uint32_t count = starts_[size];
    starts_[size] = start;
    start += count;
  }
  for (uint32_t i = 0; i < sizes.size(); ++i) order_[starts_[sizes[i]]++] = i;
}

void BestFitBins::Fill(std::span<const uint32_t> sizes) {
  bins_.clear();
  next_item_.assign(sizes.size(), kNone);
  SortBySize(sizes);
  for (const uint32_t item : order_) {
    const size_t room = rooms_.NextAtLeast(sizes[item]);
    uint32_t bin;
    if (room == OrderedBitSet::kNone) {
      bin = static_cast<uint32_t>(bins_.size());
      bins_.push_back({static_cast<uint32_t>(capacity_), item, item, kNone});
    } else {
      bin = TakeOldestBinWithRoom(room);
      next_item_[bins_[bin].last_item] = item;
      bins_[bin].last_item = item;
    }
    bins_[bin].room -= sizes[item];
    if (bins_[bin].room > 0) PutBinWithRoom(bin);
  }
  for (size_t room = rooms_.NextAtLeast(0); room != OrderedBitSet::kNone; room = rooms_.NextAtLeast(room)) {
    rooms_.Erase(room);
    newest_bin_with_room_[room] = kNone;
  }
}

void BestFitBins::PutBinWithRoom(uint32_t bin) {
  uint32_t& newest = newest_bin_with_room_[bins_[bin].room];
  if (newest == kNone) {
    bins_[bin].next_bin = bin;
    rooms_.Insert(bins_[bin].room);
  } else {
    bins_[bin].next_bin = bins_[newest].next_bin;
    bins_[newest].next_bin = bin;
  }
  newest = bin;
}

uint32_t BestFitBins::TakeOldestBinWithRoom(size_t room) {
  uint32_t& newest = newest_bin_with_room_[room];
  const uint32_t oldest = bins_[newest].next_bin;
  if (oldest == newest) {
    newest = kNone;
    rooms_.Erase(room);
  } else {
    bins_[newest].next_bin = bins_[oldest].next_bin;
  }
  return oldest;
}

}  // namespace trainwright
