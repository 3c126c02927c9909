#include "lib/dist/value_exchange.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/base/profile_scope.h"
#include "lib/spec/exchange_memory.h"

namespace trainwright {
namespace {

std::vector<RangePlan> PlansOf(const std::vector<ElementRange>& ranges, const ShardLayout& layout,
                               int64_t bucket_bytes, const at::Tensor& values) {
  const int64_t elements = bucket_bytes / static_cast<int64_t>(values.element_size());
  return PlanInParts(ranges, WholeRounds(elements, layout.ranks()), layout.ranks());
}

std::vector<PartSize> SizesOf(const std::vector<RangePlan>& plans) {
  std::vector<PartSize> sizes;
  for (const RangePlan& plan : plans) sizes.push_back(plan.size());
  return sizes;
}

}  // namespace

std::vector<RangePlan> ValueExchange::PlansOfAll(const FlatParameters& parameters, int64_t bucket_bytes) {
  const ShardLayout& layout = *parameters.shard();
  if (layout.elements() == 0) return {};
  return PlansOf({{0, layout.elements()}}, layout, bucket_bytes, parameters.compute());
}

std::vector<RangePlan> ValueExchange::PlansOfCopies(const FlatParameters& parameters, int64_t bucket_bytes) {
  std::vector<ElementRange> ranges;
  for (const FlatParameters::Fp32Copy& copy : parameters.fp32_copies()) {
    ranges.push_back({copy.begin, copy.begin + copy.size});
  }
  return PlansOf(ranges, *parameters.shard(), bucket_bytes, parameters.values());
}

ValueExchange::ValueExchange(World* world, FlatParameters* parameters, int64_t bucket_bytes)
    : world_(world), parameters_(parameters) {
  TRAINWRIGHT_CHECK(parameters->shard() != nullptr && world->collectives() != nullptr);
  const ShardLayout& layout = *parameters->shard();
  TRAINWRIGHT_CHECK(layout.ranks() == world->size() && layout.rank() == world->rank());
  values_.plans = PlansOfAll(*parameters, bucket_bytes);
  values_.own = values_.all = [parameters](int64_t begin, int64_t size) {
    return parameters->compute().narrow(0, begin, size);
  };
  copies_.plans = PlansOfCopies(*parameters, bucket_bytes);
  copies_.own = [parameters](int64_t begin, int64_t size) { return parameters->Masters(begin, size); };
  copies_.all = [this](int64_t begin, int64_t size) { return CopyOf(begin, size); };
}

void ValueExchange::Prepare() {
  const auto prepare = [&](Batch& batch, const at::TensorOptions& options) {
    const ExchangeBuffers sizes = ValueBuffers(SizesOf(batch.plans), world_->size());
    const size_t slots = std::min<size_t>(kValuePartsUnderWay, batch.plans.size());
    while (batch.gathered.size() < slots) {
      at::Tensor packed = at::zeros({sizes.packed}, options);
      batch.gathered.push_back(at::zeros({sizes.received}, options));
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
  const ProfileScope scope("share_values", ProfilePart::kExchange);
  Prepare();
  Share(values_);
  Share(copies_);
  parameters_->RefreshScales();
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
  const int64_t ranks = parameters.shard()->ranks();
  const auto bytes = [&](const std::vector<RangePlan>& plans, const at::Tensor& of) {
    return ValueExchangeBytes(SizesOf(plans), ranks, static_cast<int64_t>(of.element_size()));
  };
  return bytes(PlansOfAll(parameters, bucket_bytes), parameters.compute()) +
         bytes(PlansOfCopies(parameters, bucket_bytes), parameters.values());
}

}  // namespace trainwright
