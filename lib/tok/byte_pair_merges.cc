#include "lib/tok/byte_pair_merges.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "lib/base/error.h"

namespace trainwright {
namespace {

constexpr uint32_t kNone = 0xFFFFFFFF;
constexpr size_t kShort = 48;  // symbols up to which looking at all pairs beats a heap

}  // namespace

BytePairMerges::BytePairMerges(const std::array<uint32_t, 256>& byte_ids, std::vector<BytePairMerge> merges)
    : byte_ids_(byte_ids), merges_(std::move(merges)) {
  TRAINWRIGHT_CHECK(merges_.size() < kMaxRank);
  const size_t slots = std::bit_ceil(std::max<size_t>(16, merges_.size() * 2 + 1));
  slots_.assign(slots, kNever);
  mask_ = slots - 1;
  shift_ = 64 - std::countr_zero(slots);
  for (uint32_t rank = 0; rank < merges_.size(); ++rank) {
    const BytePairMerge& merge = merges_[rank];
    const uint64_t hash = HashOf(merge.left, merge.right);
    uint64_t at = hash >> shift_;
    for (; slots_[at] != kNever; at = (at + 1) & mask_) {
      const BytePairMerge& other = merges_[slots_[at] & kMaxRank];
      if (other.left == merge.left && other.right == merge.right) break;
    }
    slots_[at] = TagOf(hash) << kRankBits | rank;
  }
  if (std::find(byte_ids_.begin(), byte_ids_.end(), kNoId) != byte_ids_.end()) return;
  byte_ranks_.reserve(1 << 16);
  for (const uint32_t first : byte_ids_) {
    for (const uint32_t second : byte_ids_) byte_ranks_.push_back(RankOf(first, second));
  }
}

void BytePairMerges::Encode(std::string_view piece, Scratch* scratch) const {
  std::vector<uint32_t>& ids = scratch->ids;
  ids.clear();
  for (const char byte : piece) {
    if (const uint32_t id = byte_ids_[static_cast<uint8_t>(byte)]; id != kNoId) ids.push_back(id);
  }
  if (merges_.empty()) return;
  if (ids.size() <= kShort) {
    MergeShort(piece, &ids);
  } else {
    MergeLong(scratch);
  }
}

void BytePairMerges::MergeShort(std::string_view piece, std::vector<uint32_t>* ids) const {
  uint32_t ranks[kShort];  // of each id with the next
  uint32_t* id = ids->data();
  size_t count = ids->size();
  for (size_t i = 0; i + 1 < count; ++i) {
    ranks[i] =
        byte_ranks_.empty()
            ? RankOf(id[i], id[i + 1])
            : byte_ranks_[size_t{static_cast<uint8_t>(piece[i])} << 8 | static_cast<uint8_t>(piece[i + 1])];
  }
  while (count > 1) {
    size_t best = 0;
    uint32_t rank = ranks[0];
    for (size_t i = 1; i + 1 < count; ++i) {
      best = ranks[i] < rank ? i : best;
      rank = std::min(rank, ranks[i]);
    }
    if (rank == kNever) break;
    id[best] = merges_[rank].merged;
    --count;
    for (size_t i = best + 1; i < count; ++i) {
      id[i] = id[i + 1];
      ranks[i - 1] = ranks[i];
    }
    if (best + 1 < count) ranks[best] = RankOf(id[best], id[best + 1]);
    if (best > 0) ranks[best - 1] = RankOf(id[best - 1], id[best]);
  }
  ids->resize(count);
}

void BytePairMerges::MergeLong(Scratch* scratch) const {
  auto& symbols = scratch->symbols;
  auto& heap = scratch->heap;
  symbols.clear();
  heap.clear();
  const auto count = static_cast<uint32_t>(scratch->ids.size());
  for (uint32_t i = 0; i < count; ++i) {
    symbols.push_back({scratch->ids[i], i == 0 ? kNone : i - 1, i + 1 == count ? kNone : i + 1, false});
  }
  const auto later = [](const Scratch::Candidate& a, const Scratch::Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
  };
  const auto push = [&](uint32_t position, bool sift) {
    if (position == kNone || symbols[position].next == kNone) return;
    const uint32_t rank = RankOf(symbols[position].id, symbols[symbols[position].next].id);
    if (rank == kNever) return;
    heap.push_back({rank, position});
    if (sift) std::push_heap(heap.begin(), heap.end(), later);
  };
  for (uint32_t i = 0; i + 1 < count; ++i) push(i, false);
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    const Scratch::Candidate best = heap.front();
    std::pop_heap(heap.begin(), heap.end(), later);
    heap.pop_back();
    auto& left = symbols[best.position];
    if (left.merged_away || left.next == kNone) continue;
    auto& right = symbols[left.next];
    // Either symbol may have grown since.
    const BytePairMerge& merge = merges_[best.rank];
    if (merge.left != left.id || merge.right != right.id) continue;
    left.id = merge.merged;
    right.merged_away = true;
    left.next = right.next;
    if (left.next != kNone) symbols[left.next].previous = best.position;
    push(left.previous, true);
    push(best.position, true);
  }
  scratch->ids.clear();
  for (uint32_t i = 0; i != kNone; i = symbols[i].next) scratch->ids.push_back(symbols[i].id);
}

}  // namespace trainwright
