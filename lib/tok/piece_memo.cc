#include "lib/tok/piece_memo.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/checksum.h"

namespace trainwright {
namespace {

constexpr size_t kFirstSlots = 1 << 15;

}  // namespace

PieceMemo::Slots::Slots(size_t count) : count_(count) {
  constexpr size_t kLargePage = 2 << 20;
  const size_t size = count * sizeof(Slot);
  const size_t alignment = size % kLargePage == 0 ? kLargePage : sizeof(Slot);
  slots_.reset(static_cast<Slot*>(std::aligned_alloc(alignment, size)));
  if (slots_ == nullptr) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  if (alignment == kLargePage) madvise(slots_.get(), size, MADV_HUGEPAGE);  // no more than advice
#endif
  Clear();
}

void PieceMemo::Slots::Clear() {
  std::fill_n(slots_.get(), count_, Slot{});
}

PieceMemo::PieceMemo(size_t budget_bytes)
    : max_slots_(std::bit_floor(budget_bytes / 2 / sizeof(Slot))),
      max_arena_bytes_(budget_bytes / 4),
      slots_(std::min(kFirstSlots, max_slots_)),
      shift_(64 - std::countr_zero(slots_.size())) {}

PieceMemo::Key PieceMemo::KeyOf(std::string_view piece) {
  Key key;
  if (piece.size() <= kShortBytes) {
    uint64_t words[2] = {0, 0};
    std::memcpy(words, piece.data(), piece.size());
    key.low = words[0];
    key.high = words[1] | uint64_t{piece.size()} << 56;
  } else {
    key.low = Xxh3(AsBytes(piece));
    key.high = kLongMark | piece.size();
  }
  key.hash = HashOf(key.low, key.high);
  return key;
}

std::span<const uint32_t> PieceMemo::Find(const Key& key, std::string_view piece) const {
  const size_t mask = slots_.size() - 1;
  for (size_t at = key.hash >> shift_;; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.high == 0) return {};
    if (slot.low != key.low || slot.high != key.high) continue;
    if (piece.size() <= kShortBytes) {
      return {slot.count() <= kInline ? slot.ids.data() : ids_.data() + slot.ids[0], slot.count()};
    }
    const uint32_t* ids = ids_.data() + slot.ids[0];
    if (std::memcmp(text_.data() + ids[0], piece.data(), piece.size()) != 0) continue;
    return {ids + 1, slot.count()};
  }
}

void PieceMemo::Remember(const Key& key, std::string_view piece, std::span<const uint32_t> ids) {
  if (piece.size() > kMaxPieceBytes || ids.empty()) return;
  // Either grows by doubling, and never beyond its part of the budget.
  if (ids_.size() + ids.size() + 1 > max_arena_bytes_ / 2 / sizeof(uint32_t) ||
      text_.size() + piece.size() > max_arena_bytes_ / 2) {
    Forget();
  }
  if (used_ * 8 >= slots_.size() * 5) {
    if (slots_.size() * 2 <= max_slots_) {
      Grow();
    } else {
      Forget();
    }
  }
  const size_t mask = slots_.size() - 1;
  size_t at = key.hash >> shift_;
  while (slots_[at].high != 0) at = (at + 1) & mask;
  Slot& slot = slots_[at];
  slot.low = key.low;
  slot.high = key.high;
  slot.ids[kInline] = static_cast<uint32_t>(ids.size());
  if (piece.size() <= kShortBytes && ids.size() <= kInline) {
    std::copy(ids.begin(), ids.end(), slot.ids.begin());
  } else {
    slot.ids[0] = static_cast<uint32_t>(ids_.size());
    if (piece.size() > kShortBytes) {
      ids_.push_back(static_cast<uint32_t>(text_.size()));
      text_.insert(text_.end(), piece.begin(), piece.end());
    }
    ids_.insert(ids_.end(), ids.begin(), ids.end());
  }
  ++used_;
}

size_t PieceMemo::memory_bytes() const {
  return slots_.size() * sizeof(Slot) + ids_.capacity() * sizeof(uint32_t) + text_.capacity();
}

void PieceMemo::Grow() {
  const Slots old = std::exchange(slots_, Slots(slots_.size() * 2));
  shift_ = 64 - std::countr_zero(slots_.size());
  const size_t mask = slots_.size() - 1;
  for (size_t i = 0; i < old.size(); ++i) {
    const Slot& slot = old[i];
    if (slot.high == 0) continue;
    size_t at = HashOf(slot.low, slot.high) >> shift_;
    while (slots_[at].high != 0) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

void PieceMemo::Forget() {
  slots_.Clear();
  used_ = 0;
  ids_.clear();
  text_.clear();
}

}  // namespace trainwright
