#include "lib/dist/tree_all_reduce.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/dist/tree_sum.h"

namespace trainwright {
namespace {

/// How many ranges may be under way, and after how many more the parts of one are added up: all ranks must
/// begin the same work in the same order, so neither can depend on what has come.
constexpr size_t kSlots = kGradientPartsUnderWay, kAhead = 2;

size_t SlotsOf(size_t ranges) {
  return std::min(kSlots, ranges);
}

}  // namespace

TreeAllReduce::TreeAllReduce(World* world, const std::vector<ElementRange>& ranges, SumsOf sums_of,
                             Buffer buffer)
    : world_(world), sums_of_(sums_of), buffer_(std::move(buffer)), slots_(SlotsOf(ranges.size())) {
  TRAINWRIGHT_CHECK(!ranges.empty() && world->collectives() != nullptr);
  for (const ElementRange& range : ranges) plans_.push_back(PlanRanges({range}, world->size()));
}

int64_t TreeAllReduce::MemoryBytes(const std::vector<ElementRange>& ranges, int64_t ranks, SumsOf sums_of) {
  std::vector<PartSize> parts;
  for (const ElementRange& range : ranges) parts.push_back(SizeOfRange(range, ranks));
  return GradientExchangeBytes(parts, ranks, sums_of);
}

void TreeAllReduce::Allocate(const at::TensorOptions& options) {
  std::vector<PartSize> parts;
  for (const RangePlan& plan : plans_) parts.push_back(plan.size());
  const ExchangeBuffers sizes = GradientBuffers(parts, world_->size(), sums_of_);
  for (Slot& slot : slots_) {
    if (slot.received.defined()) continue;
    slot.packed = at::empty({sizes.packed}, options);
    slot.received = at::empty({sizes.received}, options);
  }
}

int64_t TreeAllReduce::held_bytes() const {
  int64_t bytes = 0;
  for (const Slot& slot : slots_) {
    if (slot.received.defined()) bytes += static_cast<int64_t>(slot.received.nbytes() + slot.packed.nbytes());
  }
  return bytes;
}

void TreeAllReduce::Clear() {
  begun_ = added_ = completed_ = 0;
  for (Slot& slot : slots_) slot.work.reset();
}

void TreeAllReduce::Wait(Slot& slot) {
  TRAINWRIGHT_CHECK(slot.work != nullptr);
  const auto start = std::chrono::steady_clock::now();
  slot.work->Wait();
  slot.work.reset();
  wait_s_ += SecondsSince(start);
}

void TreeAllReduce::Begin() {
  TRAINWRIGHT_CHECK(begun_ < plans_.size());
  if (begun_ >= added_ + kAhead) AddNext();
  if (begun_ >= completed_ + kSlots) CompleteNext();
  const RangePlan& plan = plans_[begun_];
  Slot& slot = SlotOf(begun_);
  std::vector<int64_t> starts = {0};
  for (const int64_t count : plan.counts) starts.push_back(starts.back() + count);
  for (const RangePlan::Piece& piece : plan.pieces) {
    const int64_t place = starts[static_cast<size_t>(piece.owner)] + piece.place;
    buffer_.read(piece.begin, slot.packed.narrow(0, place, piece.size));
  }
  const int64_t ranks = world_->size(), own = plan.counts[static_cast<size_t>(world_->rank())];
  slot.work = world_->collectives()->BeginExchange(slot.packed.narrow(0, 0, starts.back()),
                                                   slot.received.narrow(0, 0, ranks * own), plan.counts,
                                                   std::vector<int64_t>(static_cast<size_t>(ranks), own));
  ++begun_;
}

void TreeAllReduce::AddNext() {
  const RangePlan& plan = plans_[added_];
  Slot& slot = SlotOf(added_);
  Wait(slot);
  const int64_t ranks = world_->size(), own = plan.counts[static_cast<size_t>(world_->rank())];
  const auto from = [&](int64_t rank) { return slot.received.narrow(0, rank * own, own); };
  AddAsTree(ranks, [&](int64_t left, int64_t right) { from(left).add_(from(right)); });
  ++added_;
  if (sums_of_ == SumsOf::kAll) {
    // Equal parts: what a part has in excess of its owner's elements is nothing.
    slot.work = world_->collectives()->BeginGather(slot.received.narrow(0, 0, plan.most),
                                                   slot.packed.narrow(0, 0, ranks * plan.most));
    return;
  }
  for (const RangePlan::Piece& piece : plan.pieces) {
    if (piece.owner != world_->rank()) continue;
    buffer_.write(piece.begin, slot.received.narrow(0, piece.place, piece.size));
  }
  ++completed_;
}

void TreeAllReduce::CompleteNext() {
  const RangePlan& plan = plans_[completed_];
  Slot& slot = SlotOf(completed_);
  Wait(slot);
  for (const RangePlan::Piece& piece : plan.pieces) {
    const int64_t place = piece.owner * plan.most + piece.place;
    buffer_.write(piece.begin, slot.packed.narrow(0, place, piece.size));
  }
  ++completed_;
}

void TreeAllReduce::Finish() {
  TRAINWRIGHT_CHECK(begun_ == plans_.size());
  while (added_ < begun_) AddNext();
  while (completed_ < begun_) CompleteNext();
}

}  // namespace trainwright
