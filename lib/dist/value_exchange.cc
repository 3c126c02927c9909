#include "lib/dist/value_exchange.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/spec/reduction_block.h"

namespace trainwright {
namespace {

/// At least a block of each rank: smaller parts would be padded to that.
int64_t RangeElements(int64_t bucket_elements, int64_t ranks) {
  const int64_t round = ranks * kReductionBlock;
  return std::max(round, bucket_elements / round * round);
}

int64_t ElementsOfBucket(int64_t bucket_bytes, const at::Tensor& values) {
  return bucket_bytes / static_cast<int64_t>(values.element_size());
}

}  // namespace

std::vector<RangePlan> ValueExchange::PlansOfAll(const ShardLayout& layout, int64_t bucket_elements) {
  const int64_t most = RangeElements(bucket_elements, layout.ranks());
  std::vector<RangePlan> plans;
  for (int64_t begin = 0; begin < layout.elements(); begin += most) {
    plans.push_back(PlanRanges({{begin, std::min(layout.elements(), begin + most)}}, layout.ranks()));
  }
  return plans;
}

std::vector<RangePlan> ValueExchange::PlansOfCopies(const FlatParameters& parameters,
                                                    int64_t bucket_elements) {
  const int64_t ranks = parameters.shard()->ranks(), most = RangeElements(bucket_elements, ranks);
  std::vector<RangePlan> plans;
  std::vector<ElementRange> ranges;
  int64_t elements = 0;
  const auto end_plan = [&] {
    if (!ranges.empty()) plans.push_back(PlanRanges(std::exchange(ranges, {}), ranks));
    elements = 0;
  };
  for (const FlatParameters::Fp32Copy& copy : parameters.fp32_copies()) {
    for (int64_t begin = copy.begin, end = copy.begin + copy.size; begin < end;) {
      const int64_t size = std::min(end - begin, most - elements);
      ranges.push_back({begin, begin + size});
      begin += size;
      elements += size;
      if (elements == most) end_plan();
    }
  }
  end_plan();
  return plans;
}

int64_t ValueExchange::MostOf(const std::vector<RangePlan>& plans) {
  int64_t most = 0;
  for (const RangePlan& plan : plans) most = std::max(most, plan.most);
  return most;
}

ValueExchange::ValueExchange(World* world, FlatParameters* parameters, int64_t bucket_bytes)
    : world_(world), parameters_(parameters) {
  TRAINWRIGHT_CHECK(parameters->shard() != nullptr && world->collectives() != nullptr);
  const ShardLayout& layout = *parameters->shard();
  TRAINWRIGHT_CHECK(layout.ranks() == world->size() && layout.rank() == world->rank());
  values_.plans = PlansOfAll(layout, ElementsOfBucket(bucket_bytes, parameters->compute()));
  values_.own = values_.all = [parameters](int64_t begin, int64_t size) {
    return parameters->compute().narrow(0, begin, size);
  };
  copies_.plans = PlansOfCopies(*parameters, ElementsOfBucket(bucket_bytes, parameters->values()));
  copies_.own = [parameters](int64_t begin, int64_t size) { return parameters->Masters(begin, size); };
  copies_.all = [this](int64_t begin, int64_t size) { return CopyOf(begin, size); };
}

void ValueExchange::Prepare() {
  const auto prepare = [&](Batch& batch, const at::TensorOptions& options) {
    const int64_t ranks = world_->size();
    const size_t slots = std::min(kSlots, batch.plans.size());
    while (batch.gathered.size() < slots) {
      const int64_t most = MostOf(batch.plans);
      at::Tensor packed = at::zeros({most}, options);
      batch.gathered.push_back(at::zeros({ranks * most}, options));
      batch.packed.push_back(std::move(packed));
    }
  };
  prepare(values_, parameters_->compute().options());
  prepare(copies_, parameters_->values().options());
}

at::Tensor ValueExchange::CopyOf(int64_t begin, int64_t size) const {
  const std::vector<FlatParameters::Fp32Copy>& copies = parameters_->fp32_copies();
  const auto after = std::upper_bound(
      copies.begin(), copies.end(), begin,
      [](int64_t place, const FlatParameters::Fp32Copy& copy) { return place < copy.begin; });
  TRAINWRIGHT_CHECK(after != copies.begin());
  return std::prev(after)->values.narrow(0, begin - std::prev(after)->begin, size);
}

std::unique_ptr<PendingWork> ValueExchange::Begin(Batch& batch, size_t number) {
  const RangePlan& plan = batch.plans[number];
  const at::Tensor packed = batch.packed[number % batch.packed.size()].narrow(0, 0, plan.most);
  for (const RangePlan::Piece& piece : plan.pieces) {
    if (piece.owner != world_->rank()) continue;
    packed.narrow(0, piece.place, piece.size).copy_(batch.own(piece.begin, piece.size));
  }
  const at::Tensor& gathered = batch.gathered[number % batch.gathered.size()];
  return world_->collectives()->BeginGather(packed, gathered.narrow(0, 0, world_->size() * plan.most));
}

void ValueExchange::End(Batch& batch, size_t number, PendingWork* work) {
  const auto start = std::chrono::steady_clock::now();
  work->Wait();
  wait_s_ += SecondsSince(start);
  const RangePlan& plan = batch.plans[number];
  const at::Tensor& gathered = batch.gathered[number % batch.gathered.size()];
  for (const RangePlan::Piece& piece : plan.pieces) {
    const int64_t place = piece.owner * plan.most + piece.place;
    batch.all(piece.begin, piece.size).copy_(gathered.narrow(0, place, piece.size));
  }
}

void ValueExchange::Share(Batch& batch) {
  std::unique_ptr<PendingWork> before;
  for (size_t i = 0; i < batch.plans.size(); ++i) {
    std::unique_ptr<PendingWork> work = Begin(batch, i);
    if (before) End(batch, i - 1, before.get());
    before = std::move(work);
  }
  if (before) End(batch, batch.plans.size() - 1, before.get());
}

void ValueExchange::Share() {
  Prepare();
  Share(values_);
  Share(copies_);
}

int64_t ValueExchange::held_bytes() const {
  int64_t bytes = 0;
  for (const Batch* batch : {&values_, &copies_}) {
    for (const auto* tensors : {&batch->packed, &batch->gathered}) {
      for (const at::Tensor& tensor : *tensors) bytes += static_cast<int64_t>(tensor.nbytes());
    }
  }
  return bytes;
}

int64_t ValueExchange::MemoryBytes(const FlatParameters& parameters, int64_t bucket_bytes) {
  const ShardLayout& layout = *parameters.shard();
  const at::Tensor& values = parameters.values();
  const at::Tensor& compute = parameters.compute();
  const auto bytes = [&](const std::vector<RangePlan>& plans, const at::Tensor& of) {
    const auto slots = static_cast<int64_t>(std::min(kSlots, plans.size()));
    return slots * (1 + layout.ranks()) * MostOf(plans) * static_cast<int64_t>(of.element_size());
  };
  return bytes(PlansOfAll(layout, ElementsOfBucket(bucket_bytes, compute)), compute) +
         bytes(PlansOfCopies(parameters, ElementsOfBucket(bucket_bytes, values)), values);
}

}  // namespace trainwright
