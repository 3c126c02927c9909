#include "lib/tok/byte_pair_merges.h"

#include <algorithm>
#include <bit>
#include <unordered_set>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/signals.h"

namespace trainwright {
namespace {

constexpr uint32_t kNone = 0xFFFFFFFF;
constexpr size_t kKeptSymbols = 1 << 16;
constexpr size_t kShort = 48;  // symbols up to which looking at all pairs beats a heap

}  // namespace

BytePairMerges::BytePairMerges(const std::array<uint32_t, 256>& byte_ids,
                               const std::vector<BytePairMerge>& merges)
    : byte_ids_(byte_ids) {
  TRAINWRIGHT_CHECK(merges.size() < kMaxMerges);
  const size_t slots = std::bit_ceil(std::max<size_t>(16, merges.size() * 2 + 1));
  slots_.assign(slots, kEmpty);
  mask_ = slots - 1;
  shift_ = 64 - std::countr_zero(slots);
  known_.assign(slots * 8 / 64, 0);
  known_shift_ = shift_ - 3;
  std::unordered_set<uint32_t> tied_ranks;
  for (const BytePairMerge& merge : merges) {
    TRAINWRIGHT_CHECK(merge.rank < kMaxMerges);
    if (merge.rank >= merged_.size()) merged_.resize(merge.rank + 1, kNever);
    if (merged_[merge.rank] != kNever && merged_[merge.rank] != merge.merged) tied_ranks.insert(merge.rank);
    merged_[merge.rank] = merge.merged;
    if (((merge.left | merge.right) >> kSymbolBits) != 0) {
      wide_[uint64_t{merge.left} << 32 | merge.right] = merge.rank;
      continue;
    }
    const uint64_t pair = PairOf(merge.left, merge.right);
    const uint64_t hash = HashOf(pair), bit = hash >> known_shift_;
    known_[bit >> 6] |= uint64_t{1} << (bit & 63);
    uint64_t at = hash >> shift_;
    while (slots_[at] != kEmpty && slots_[at] >> kRankBits != pair) at = (at + 1) & mask_;
    slots_[at] = pair << kRankBits | merge.rank;
  }
  for (const BytePairMerge& merge : merges) {
    if (!tied_ranks.contains(merge.rank)) continue;
    merged_[merge.rank] = kNever;
    tied_[uint64_t{merge.left} << 32 | merge.right] = merge.merged;
  }
  if (std::find(byte_ids_.begin(), byte_ids_.end(), kNoId) != byte_ids_.end()) return;
  byte_ranks_.reserve(1 << 16);
  for (const uint32_t first : byte_ids_) {
    for (const uint32_t second : byte_ids_) byte_ranks_.push_back(RankOf(first, second));
  }
}

uint32_t BytePairMerges::WideRankOf(uint32_t left, uint32_t right) const {
  if (wide_.empty()) return kNever;
  const auto found = wide_.find(uint64_t{left} << 32 | right);
  return found == wide_.end() ? kNever : found->second;
}

void BytePairMerges::Encode(std::string_view piece, Scratch* scratch) const {
  std::vector<uint32_t>& ids = scratch->ids;
  ids.clear();
  for (const char byte : piece) {
    if (const uint32_t id = byte_ids_[static_cast<uint8_t>(byte)]; id != kNoId) ids.push_back(id);
  }
  if (merged_.empty()) return;
  if (ids.size() <= kShort) {
    MergeShort(piece, &ids);
  } else {
    MergeLong(scratch);
  }
}

void BytePairMerges::Merge(Scratch* scratch) const {
  if (scratch->ids.size() <= kShort) {
    MergeShort({}, &scratch->ids);
  } else {
    MergeLong(scratch);
  }
}

void BytePairMerges::MergeShort(std::string_view piece, std::vector<uint32_t>* ids) const {
  uint32_t ranks[kShort];  // of each id with the next
  uint32_t* id = ids->data();
  size_t count = ids->size();
  const bool by_bytes = !byte_ranks_.empty() && !piece.empty();
  for (size_t i = 0; i + 1 < count; ++i) {
    ranks[i] =
        !by_bytes
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
    id[best] = MergedBy(rank, id[best], id[best + 1]);
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
    const uint32_t left = symbols[position].id, right = symbols[symbols[position].next].id;
    const uint32_t rank = RankOf(left, right);
    if (rank == kNever) return;
    heap.push_back({rank, position, left, right});
    if (sift) std::push_heap(heap.begin(), heap.end(), later);
  };
  for (uint32_t i = 0; i + 1 < count; ++i) push(i, false);
  std::make_heap(heap.begin(), heap.end(), later);
  for (uint32_t round = 0; !heap.empty(); ++round) {
    if (round % (1u << 16) == 0) ThrowIfStopped();
    const Scratch::Candidate best = heap.front();
    std::pop_heap(heap.begin(), heap.end(), later);
    heap.pop_back();
    auto& left = symbols[best.position];
    if (left.merged_away || left.next == kNone) continue;
    auto& right = symbols[left.next];
    // Either symbol may have grown since.
    if (best.left != left.id || best.right != right.id) continue;
    left.id = MergedBy(best.rank, left.id, right.id);
    right.merged_away = true;
    left.next = right.next;
    if (left.next != kNone) symbols[left.next].previous = best.position;
    push(left.previous, true);
    push(best.position, true);
  }
  scratch->ids.clear();
  for (uint32_t i = 0; i != kNone; i = symbols[i].next) scratch->ids.push_back(symbols[i].id);
  // One huge word must not take its memory to the end of the run.
  if (symbols.capacity() > kKeptSymbols) symbols = {};
  if (heap.capacity() > kKeptSymbols) heap = {};
}

}  // namespace trainwright
