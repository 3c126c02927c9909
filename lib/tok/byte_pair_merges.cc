#include "lib/tok/byte_pair_merges.h"

#include <algorithm>
#include <bit>

namespace trainwright {
namespace {

constexpr uint32_t kNone = 0xFFFFFFFF;
constexpr size_t kShort = 48;  // symbols up to which looking at all pairs beats a heap

}  // namespace

BytePairMerges::BytePairMerges(const std::array<uint32_t, 256>& byte_ids,
                               std::span<const BytePairMerge> merges)
    : byte_ids_(byte_ids), merges_nothing_(merges.empty()) {
  const size_t slots = std::bit_ceil(std::max<size_t>(16, merges.size() * 2 + 1));
  entries_.assign(slots, {kEmpty, 0, 0});
  mask_ = slots - 1;
  shift_ = 64 - std::countr_zero(slots);
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const uint64_t pair = uint64_t{merges[rank].left} << 32 | merges[rank].right;
    uint64_t slot = Hash(pair) >> shift_;
    while (entries_[slot].pair != kEmpty && entries_[slot].pair != pair) slot = (slot + 1) & mask_;
    entries_[slot] = {pair, static_cast<uint32_t>(rank), merges[rank].merged};
  }
}

void BytePairMerges::Encode(std::string_view piece, Scratch* scratch) const {
  std::vector<uint32_t>& ids = scratch->ids;
  ids.clear();
  for (const char byte : piece) {
    if (const uint32_t id = byte_ids_[static_cast<uint8_t>(byte)]; id != kNoId) ids.push_back(id);
  }
  if (merges_nothing_) return;
  if (ids.size() <= kShort) {
    MergeShort(&ids);
  } else {
    MergeLong(scratch);
  }
}

void BytePairMerges::MergeShort(std::vector<uint32_t>* ids) const {
  struct Pair {
    uint32_t rank, merged;
  };
  Pair pairs[kShort];
  uint32_t* id = ids->data();
  size_t count = ids->size();
  const auto pair_at = [&](size_t i) -> Pair {
    const Entry* entry = Find(id[i], id[i + 1]);
    return entry == nullptr ? Pair{kNone, 0} : Pair{entry->rank, entry->merged};
  };
  for (size_t i = 0; i + 1 < count; ++i) pairs[i] = pair_at(i);
  while (count > 1) {
    size_t best = 0;
    uint32_t rank = pairs[0].rank;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (pairs[i].rank < rank) {
        rank = pairs[i].rank;
        best = i;
      }
    }
    if (rank == kNone) break;
    id[best] = pairs[best].merged;
    --count;
    for (size_t i = best + 1; i < count; ++i) {
      id[i] = id[i + 1];
      pairs[i - 1] = pairs[i];
    }
    if (best + 1 < count) pairs[best] = pair_at(best);
    if (best > 0) pairs[best - 1] = pair_at(best - 1);
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
    const Entry* entry = Find(symbols[position].id, symbols[symbols[position].next].id);
    if (entry == nullptr) return;
    heap.push_back({entry->rank, position, entry->merged});
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
    const Entry* entry = Find(left.id, right.id);
    if (entry == nullptr || entry->rank != best.rank) continue;
    left.id = best.merged;
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
