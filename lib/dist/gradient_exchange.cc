#include "lib/dist/gradient_exchange.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <chrono>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/dist/tree_sum.h"
#include "lib/spec/gradient_buckets.h"

namespace trainwright {
namespace {

constexpr int64_t kNoLeaves = 0;

int64_t LeavesOfRank(int64_t exact_leaves, int64_t ranks) {
  if (exact_leaves == kNoLeaves) return 1;
  TRAINWRIGHT_CHECK(exact_leaves % ranks == 0);
  return exact_leaves / ranks;
}

}  // namespace

GradientExchange::GradientExchange(World* world, FlatParameters* parameters,
                                   const GradientExchangeOptions& options)
    : world_(world),
      parameters_(parameters),
      collectives_(world->size() > 1 ? world->collectives() : nullptr),
      leaves_(LeavesOfRank(options.exact_leaves, world->size())),
      tree_(leaves_),
      buckets_(BucketsOf(parameters->gradient_buffer().segments(), options.bucket_bytes)),
      segment_done_(parameters->gradient_buffer().segments().size()) {
  if (collectives_ != nullptr && options.exact_leaves != kNoLeaves && !buckets_.empty()) {
    all_reduce_.emplace(world, RangesOf(buckets_));
  }
}

std::vector<GradientExchange::Bucket> GradientExchange::BucketsOf(
    const std::vector<GradientBuffer::Segment>& segments, int64_t bucket_bytes) {
  std::vector<int64_t> elements;
  for (const GradientBuffer::Segment& segment : segments) elements.push_back(segment.end - segment.begin);
  const int64_t most = std::max<int64_t>(1, bucket_bytes / static_cast<int64_t>(sizeof(float)));
  std::vector<Bucket> buckets;
  int64_t end = segments.empty() ? 0 : segments.back().end;
  size_t last = segments.size();  // segments up to here end behind what is left
  for (const GradientBucket& cut : CutIntoBuckets(elements, most)) {
    while (segments[last - 1].begin >= end) --last;
    const ElementRange range = {end - cut.elements, end};
    buckets.push_back({.range = range, .first_segment = cut.lowest_segment, .last_segment = last - 1});
    end = range.begin;
  }
  return buckets;
}

std::vector<ElementRange> GradientExchange::RangesOf(const std::vector<Bucket>& buckets) {
  std::vector<ElementRange> ranges;
  for (const Bucket& bucket : buckets) ranges.push_back(bucket.range);
  return ranges;
}

int64_t GradientExchange::MemoryBytes(const GradientBuffer& gradients, int64_t ranks,
                                      const GradientExchangeOptions& options) {
  if (options.exact_leaves == kNoLeaves) return 0;
  int64_t bytes = LeafTree::BuffersOf(LeavesOfRank(options.exact_leaves, ranks)) * gradients.size_bytes();
  const std::vector<Bucket> buckets = BucketsOf(gradients.segments(), options.bucket_bytes);
  if (ranks > 1 && !buckets.empty()) bytes += TreeAllReduce::MemoryBytes(RangesOf(buckets), ranks);
  return bytes;
}

void GradientExchange::Prepare() {
  if (collectives_ == nullptr && leaves_ == 1) return;
  const at::Tensor& gradients = parameters_->gradients();
  tree_.Allocate(gradients);
  if (all_reduce_) all_reduce_->Allocate(gradients);
}

void GradientExchange::BeginStep() {
  tree_.Clear();
  if (all_reduce_) all_reduce_->Clear();
  under_way_.clear();
  segment_done_.assign(segment_done_.size(), false);
  ended_leaves_ = 0;
  begun_ = 0;
  last_backward_ = false;
  complete_ = true;
}

void GradientExchange::BeginLeaf() {
  parameters_->ZeroGradients();
}

void GradientExchange::SegmentDone(size_t segment) {
  if (!last_backward_ || collectives_ == nullptr) return;
  TRAINWRIGHT_CHECK(!segment_done_[segment]);  // else it was not the last backward pass
  segment_done_[segment] = true;
  while (begun_ < buckets_.size() && IsDone(buckets_[begun_])) BeginNextBucket();
}

bool GradientExchange::IsDone(const Bucket& bucket) const {
  const auto begin = segment_done_.begin();
  return std::all_of(begin + static_cast<ptrdiff_t>(bucket.first_segment),
                     begin + static_cast<ptrdiff_t>(bucket.last_segment) + 1, [](bool done) { return done; });
}

void GradientExchange::BeginNextBucket() {
  const ElementRange& range = buckets_[begun_].range;
  at::Tensor& gradients = parameters_->gradients();
  at::Tensor values = gradients.narrow(0, range.begin, range.size());
  if (complete_) tree_.Complete(range.begin, values);
  if (all_reduce_) {
    all_reduce_->Begin(gradients);
  } else if (collectives_ != nullptr) {
    under_way_.push_back(collectives_->BeginSum(values));
  }
  ++begun_;
}

void GradientExchange::EndLeaf() {
  if (++ended_leaves_ < leaves_) tree_.Add(parameters_->gradients());
}

void GradientExchange::Finish(bool complete) {
  TRAINWRIGHT_CHECK(!complete || ended_leaves_ == leaves_);
  if (collectives_ == nullptr && leaves_ == 1) return;
  complete_ = complete;
  while (begun_ < buckets_.size()) BeginNextBucket();
  if (all_reduce_) all_reduce_->Finish(parameters_->gradients());
  for (const std::unique_ptr<PendingWork>& work : under_way_) Wait(work.get());
  under_way_.clear();
}

void GradientExchange::Wait(PendingWork* work) {
  const auto start = std::chrono::steady_clock::now();
  work->Wait();
  wait_s_ += SecondsSince(start);
}

at::Tensor GradientExchange::AddUp(at::Tensor sums_lt) {
  AddAsTree(leaves_,
            [&](int64_t left, int64_t right) { sums_lt.select(0, left).add_(sums_lt.select(0, right)); });
  const at::Tensor own = sums_lt.select(0, 0);
  if (collectives_ == nullptr) return own;
  const int64_t ranks = world_->size();
  const at::Tensor all = at::empty({ranks, own.numel()}, own.options());
  Wait(collectives_->BeginGather(own, all.view({-1})).get());
  AddAsTree(ranks, [&](int64_t left, int64_t right) { all.select(0, left).add_(all.select(0, right)); });
  return all.select(0, 0);
}

int64_t GradientExchange::held_bytes() const {
  return tree_.held_bytes() + (all_reduce_ ? all_reduce_->held_bytes() : 0);
}

double GradientExchange::wait_s() const {
  return wait_s_ + (all_reduce_ ? all_reduce_->wait_s() : 0);
}

}  // namespace trainwright
