#include "lib/dist/gradient_exchange.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/base/profile_scope.h"
#include "lib/dist/tree_sum.h"
#include "lib/nn/reduce.h"
#include "lib/spec/gradient_buckets.h"

namespace trainwright {
namespace {

constexpr int64_t kNoLeaves = 0;

int64_t LeavesOfRank(int64_t exact_leaves, int64_t ranks) {
  if (exact_leaves == kNoLeaves) return 1;
  TRAINWRIGHT_CHECK(exact_leaves % ranks == 0);
  return exact_leaves / ranks;
}

/// Whether ranks add up blocks of their own.
bool IsByOwners(const GradientExchangeOptions& options, SumsOf sums_of) {
  return options.exact_leaves != kNoLeaves || sums_of == SumsOf::kOwners;
}

SumsOf SumsOfRanks(const FlatParameters& parameters) {
  return parameters.shard() != nullptr ? SumsOf::kOwners : SumsOf::kAll;
}

}  // namespace

GradientExchange::GradientExchange(World* world, FlatParameters* parameters,
                                   const GradientExchangeOptions& options)
    : world_(world),
      parameters_(parameters),
      collectives_(world->size() > 1 ? world->collectives() : nullptr),
      leaves_(LeavesOfRank(options.exact_leaves, world->size())),
      tree_(leaves_),
      buckets_(BucketsOf(parameters->gradient_buffer().segments(),
                         BucketElements(options.bucket_bytes, world->size(),
                                        IsByOwners(options, SumsOfRanks(*parameters))))),
      segment_done_(parameters->gradient_buffer().segments().size()) {
  const SumsOf sums_of = SumsOfRanks(*parameters);
  TRAINWRIGHT_CHECK(sums_of == SumsOf::kAll || collectives_ != nullptr);
  TRAINWRIGHT_CHECK(!takes_rounds() || leaves_ == 1);
  if (collectives_ != nullptr && IsByOwners(options, sums_of) && !buckets_.empty()) {
    all_reduce_.emplace(world, RangesOf(buckets_), sums_of, FlatBuffer());
  }
}

TreeAllReduce::Buffer GradientExchange::FlatBuffer() const {
  FlatParameters* parameters = parameters_;
  TreeAllReduce::Buffer buffer;
  buffer.read = [parameters](int64_t begin, at::Tensor out) {
    parameters->gradient_buffer().CopyTo(begin, std::move(out));
  };
  if (!takes_rounds()) {
    buffer.write = [parameters](int64_t begin, const at::Tensor& sums) {
      parameters->gradient_buffer().View(begin, sums.numel()).copy_(sums);
    };
    return buffer;
  }
  buffer.write = [parameters, round = &round_](int64_t begin, const at::Tensor& sums) {
    at::Tensor own = parameters->gradient_shard().narrow(0, parameters->PlaceOf(begin), sums.numel());
    if (*round == 0) {
      own.copy_(sums);
    } else {
      own.add_(sums);
    }
  };
  return buffer;
}

std::vector<GradientExchange::Bucket> GradientExchange::BucketsOf(
    const std::vector<GradientBuffer::Segment>& segments, int64_t bucket_elements) {
  std::vector<int64_t> elements;
  for (const GradientBuffer::Segment& segment : segments) elements.push_back(segment.end - segment.begin);
  const std::vector<GradientBucket> cuts = CutIntoBuckets(elements, bucket_elements);
  const std::vector<ElementRange> ranges =
      trainwright::RangesOf(cuts, segments.empty() ? 0 : segments.back().end);
  std::vector<Bucket> buckets;
  size_t last = segments.size();  // segments up to here end behind what is left
  for (size_t i = 0; i < cuts.size(); ++i) {
    while (segments[last - 1].begin >= ranges[i].end) --last;
    buckets.push_back(
        {.range = ranges[i], .first_segment = cuts[i].lowest_segment, .last_segment = last - 1});
  }
  return buckets;
}

std::vector<ElementRange> GradientExchange::RangesOf(const std::vector<Bucket>& buckets) {
  std::vector<ElementRange> ranges;
  for (const Bucket& bucket : buckets) ranges.push_back(bucket.range);
  return ranges;
}

int64_t GradientExchange::MemoryBytes(const GradientBuffer& gradients, int64_t ranks,
                                      const GradientExchangeOptions& options, SumsOf sums_of) {
  if (!IsByOwners(options, sums_of)) return 0;
  int64_t bytes = LeafTree::BuffersOf(LeavesOfRank(options.exact_leaves, ranks)) * gradients.size_bytes();
  const std::vector<Bucket> buckets =
      BucketsOf(gradients.segments(), BucketElements(options.bucket_bytes, ranks, /*by_owners=*/true));
  if (ranks > 1 && !buckets.empty()) bytes += TreeAllReduce::MemoryBytes(RangesOf(buckets), ranks, sums_of);
  return bytes;
}

std::function<void(size_t)> GradientExchange::Releaser(GradientBuffer* gradients, int64_t ranks,
                                                       int64_t bucket_bytes) {
  struct State {
    std::vector<Bucket> buckets;
    std::vector<bool> done;
    size_t begun = 0;
  };
  auto state = std::make_shared<State>();
  state->buckets = BucketsOf(gradients->segments(), BucketElements(bucket_bytes, ranks, /*by_owners=*/true));
  state->done.resize(gradients->segments().size());
  return [state, gradients](size_t segment) {
    state->done[segment] = true;
    while (state->begun < state->buckets.size()) {
      const Bucket& bucket = state->buckets[state->begun];
      for (size_t i = bucket.first_segment; i <= bucket.last_segment; ++i) {
        if (!state->done[i]) return;
      }
      for (size_t i = bucket.first_segment; i <= bucket.last_segment; ++i) {
        if (gradients->segments()[i].begin >= bucket.range.begin) gradients->Release(i);
      }
      ++state->begun;
    }
    state->begun = 0;
    state->done.assign(state->done.size(), false);
  };
}

void GradientExchange::Prepare(int64_t sums) {
  if (collectives_ == nullptr && leaves_ == 1) return;
  if (takes_rounds()) {
    parameters_->gradient_shard();
  } else {
    tree_.Allocate(parameters_->gradients());
  }
  if (all_reduce_) all_reduce_->Allocate(parameters_->values().options());
  if (collectives_ == nullptr) return;
  Gathered(sums, &gathered_sums_);
  if (const ShardLayout* layout = parameters_->shard(); layout != nullptr && !own_squares_.defined()) {
    const at::Tensor& all = Gathered(layout->most_blocks(), &gathered_squares_);
    own_squares_ = at::zeros({all.size(1)}, all.options());
  }
}

at::Tensor& GradientExchange::Gathered(int64_t numbers, at::Tensor* memory) const {
  if (!memory->defined() || memory->size(1) != numbers) {
    *memory = at::empty({world_->size(), numbers}, parameters_->values().options().dtype(at::kDouble));
  }
  return *memory;
}

void GradientExchange::BeginStep() {
  BeginRound();
  round_ = 0;
}

void GradientExchange::BeginRound() {
  ++round_;
  tree_.Clear();
  if (all_reduce_) all_reduce_->Clear();
  under_way_.clear();
  segment_done_.assign(segment_done_.size(), false);
  ended_leaves_ = 0;
  begun_ = 0;
  released_from_ = segment_done_.size();
  last_backward_ = false;
  complete_ = true;
}

void GradientExchange::BeginLeaf() {
  parameters_->ZeroGradients();
}

void GradientExchange::SegmentDone(size_t segment) {
  const ProfileScope scope("begin_gradient_sums", ProfilePart::kExchange);
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
  if (takes_rounds()) {
    all_reduce_->Begin();
    Release(range.begin);
  } else {
    at::Tensor values = parameters_->gradient_buffer().View(range.begin, range.size());
    if (complete_) tree_.Complete(range.begin, values);
    if (all_reduce_) {
      all_reduce_->Begin();
    } else if (collectives_ != nullptr) {
      under_way_.push_back(collectives_->BeginSum(values));
    }
  }
  ++begun_;  // a bucket that could not begin is tried again by Finish, which then tells why
}

void GradientExchange::Release(int64_t read_from) {
  GradientBuffer& gradients = parameters_->gradient_buffer();
  while (released_from_ > 0 && gradients.segments()[released_from_ - 1].begin >= read_from) {
    gradients.Release(--released_from_);
  }
}

void GradientExchange::EndLeaf() {
  if (++ended_leaves_ < leaves_) tree_.Add(parameters_->gradients());
}

void GradientExchange::Finish(bool complete) {
  const ProfileScope scope("finish_gradient_sums", ProfilePart::kExchange);
  TRAINWRIGHT_CHECK(!complete || ended_leaves_ == leaves_);
  if (collectives_ == nullptr && leaves_ == 1) return;
  complete_ = complete;
  while (begun_ < buckets_.size()) BeginNextBucket();
  if (all_reduce_) all_reduce_->Finish();
  for (const std::unique_ptr<PendingWork>& work : under_way_) Wait(work.get());
  under_way_.clear();
}

void GradientExchange::Wait(PendingWork* work) {
  const auto start = std::chrono::steady_clock::now();
  work->Wait();
  wait_s_ += SecondsSince(start);
}

at::Tensor GradientExchange::AddUp(at::Tensor sums_lt) {
  const ProfileScope scope("add_up_losses", ProfilePart::kExchange);
  AddAsTree(leaves_,
            [&](int64_t left, int64_t right) { sums_lt.select(0, left).add_(sums_lt.select(0, right)); });
  const at::Tensor own = sums_lt.select(0, 0);
  if (collectives_ == nullptr) return own;
  const at::Tensor& all = Gathered(own.numel(), &gathered_sums_);
  Wait(collectives_->BeginGather(own, all.view({-1})).get());
  AddAsTree(world_->size(),
            [&](int64_t left, int64_t right) { all.select(0, left).add_(all.select(0, right)); });
  return all.select(0, 0);
}

at::Tensor GradientExchange::AddUpSquares() {
  const ProfileScope scope("add_up_squares", ProfilePart::kExchange);
  const ShardLayout& layout = *parameters_->shard();
  std::vector<at::Tensor> pieces;
  parameters_->ForEachGradientPart(
      [&](int64_t /*begin*/, const at::Tensor& gradients) { pieces.push_back(gradients); });
  const int64_t ranks = layout.ranks(), most = layout.most_blocks();
  TRAINWRIGHT_CHECK(own_squares_.defined());
  at::Tensor sums = own_squares_.narrow(0, 0, static_cast<int64_t>(pieces.size()));
  SumSquaresOfBlocks(pieces, sums);
  const at::Tensor& all = gathered_squares_;
  if (most > 0) Wait(collectives_->BeginGather(own_squares_, all.view({-1})).get());
  // A rank's blocks are every so many of all.
  if (!all.is_cpu()) return all.t().contiguous().sum().view({1});
  double total = 0;
  const auto* block_sums = all.const_data_ptr<double>();
  for (int64_t block = 0; block < ranks * most; ++block) {
    total += block_sums[block % ranks * most + block / ranks];
  }
  return at::full({1}, total, all.options());
}

int64_t GradientExchange::held_bytes() const {
  return tree_.held_bytes() + (all_reduce_ ? all_reduce_->held_bytes() : 0);
}

double GradientExchange::wait_s() const {
  return wait_s_ + (all_reduce_ ? all_reduce_->wait_s() : 0);
}

}  // namespace trainwright
