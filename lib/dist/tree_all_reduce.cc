#include "lib/dist/tree_all_reduce.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <chrono>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/dist/tree_sum.h"
#include "lib/nn/reduce.h"

namespace trainwright {
namespace {

/// How many ranges may be under way, and after how many more the parts of one are added up: all ranks must
/// begin the same work in the same order, so neither can depend on what has come.
constexpr size_t kSlots = 4, kAhead = 2;

size_t SlotsOf(size_t ranges) {
  return std::min(kSlots, ranges);
}

}  // namespace

TreeAllReduce::Plan TreeAllReduce::PlanOf(const ElementRange& range, int64_t ranks) {
  Plan plan;
  plan.counts.resize(static_cast<size_t>(ranks));
  for (int64_t begin = range.begin; begin < range.end;) {
    const int64_t block = begin / kReductionBlock;
    const int64_t size = std::min(range.end, (block + 1) * kReductionBlock) - begin;
    int64_t& count = plan.counts[static_cast<size_t>(block % ranks)];
    plan.pieces.push_back({.offset = begin, .owner = block % ranks, .place = count, .size = size});
    count += size;
    begin += size;
  }
  plan.most = *std::max_element(plan.counts.begin(), plan.counts.end());
  return plan;
}

TreeAllReduce::TreeAllReduce(World* world, const std::vector<ElementRange>& ranges)
    : world_(world), slots_(SlotsOf(ranges.size())) {
  TRAINWRIGHT_CHECK(!ranges.empty() && world->collectives() != nullptr);
  for (const ElementRange& range : ranges) plans_.push_back(PlanOf(range, world->size()));
}

int64_t TreeAllReduce::MemoryBytes(const std::vector<ElementRange>& ranges, int64_t ranks) {
  int64_t most = 0;
  for (const ElementRange& range : ranges) most = std::max(most, PlanOf(range, ranks).most);
  constexpr int64_t kBuffersOfSlot = 2;
  return static_cast<int64_t>(SlotsOf(ranges.size())) * kBuffersOfSlot * ranks * most *
         static_cast<int64_t>(sizeof(float));
}

void TreeAllReduce::Allocate(const at::Tensor& values) {
  int64_t most = 0;
  for (const Plan& plan : plans_) most = std::max(most, plan.most);
  for (Slot& slot : slots_) {
    if (slot.received.defined()) continue;
    slot.packed = at::empty({world_->size() * most}, values.options());
    slot.received = at::empty_like(slot.packed);
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
  begun_ = gathered_ = completed_ = 0;
  for (Slot& slot : slots_) slot.work.reset();
}

void TreeAllReduce::Wait(Slot& slot) {
  const auto start = std::chrono::steady_clock::now();
  slot.work->Wait();
  slot.work.reset();
  wait_s_ += SecondsSince(start);
}

void TreeAllReduce::Begin(at::Tensor& values) {
  TRAINWRIGHT_CHECK(begun_ < plans_.size());
  if (begun_ >= gathered_ + kAhead) GatherNext();
  if (begun_ >= completed_ + kSlots) CompleteNext(values);
  const Plan& plan = plans_[begun_];
  Slot& slot = SlotOf(begun_);
  std::vector<int64_t> starts = {0};
  for (const int64_t count : plan.counts) starts.push_back(starts.back() + count);
  for (const Piece& piece : plan.pieces) {
    const int64_t place = starts[static_cast<size_t>(piece.owner)] + piece.place;
    slot.packed.narrow(0, place, piece.size).copy_(values.narrow(0, piece.offset, piece.size));
  }
  const int64_t ranks = world_->size(), own = plan.counts[static_cast<size_t>(world_->rank())];
  slot.work = world_->collectives()->BeginExchange(slot.packed.narrow(0, 0, starts.back()),
                                                   slot.received.narrow(0, 0, ranks * own), plan.counts,
                                                   std::vector<int64_t>(static_cast<size_t>(ranks), own));
  ++begun_;
}

void TreeAllReduce::GatherNext() {
  const Plan& plan = plans_[gathered_];
  Slot& slot = SlotOf(gathered_);
  Wait(slot);
  const int64_t ranks = world_->size(), own = plan.counts[static_cast<size_t>(world_->rank())];
  const auto from = [&](int64_t rank) { return slot.received.narrow(0, rank * own, own); };
  AddAsTree(ranks, [&](int64_t left, int64_t right) { from(left).add_(from(right)); });
  // Equal parts: what a part has in excess of its owner's elements is nothing.
  slot.work = world_->collectives()->BeginGather(slot.received.narrow(0, 0, plan.most),
                                                 slot.packed.narrow(0, 0, ranks * plan.most));
  ++gathered_;
}

void TreeAllReduce::CompleteNext(at::Tensor& values) {
  const Plan& plan = plans_[completed_];
  Slot& slot = SlotOf(completed_);
  Wait(slot);
  for (const Piece& piece : plan.pieces) {
    const int64_t place = piece.owner * plan.most + piece.place;
    values.narrow(0, piece.offset, piece.size).copy_(slot.packed.narrow(0, place, piece.size));
  }
  ++completed_;
}

void TreeAllReduce::Finish(at::Tensor& values) {
  TRAINWRIGHT_CHECK(begun_ == plans_.size());
  while (gathered_ < begun_) GatherNext();
  while (completed_ < begun_) CompleteNext(values);
}

}  // namespace trainwright
