#include "lib/scaling/step_estimate.h"

#include <vector>

#include "lib/base/error.h"
#include "lib/scaling/backward_timeline.h"
#include "lib/spec/gradient_buckets.h"

namespace trainwright {
namespace {

constexpr int64_t kFp32Bytes = 4;

/// Of gradients that travel together.
Traffic TrafficOf(const PartSize& part, const RankPlan& plan) {
  if (!plan.sums_by_owners()) return RingSum(kFp32Bytes * part.elements, plan.ranks);
  Traffic traffic = EqualParts(kFp32Bytes * part.most, plan.ranks);
  if (plan.sums_of() == SumsOf::kAll) traffic += traffic;
  return traffic;
}

}  // namespace

StepEstimate EstimateStep(const RankPlan& plan, const Link& link, const StepCosts& costs) {
  TRAINWRIGHT_CHECK(plan.ranks >= 1 && plan.accum >= 1 && link.bytes_per_s > 0 && link.latency_s >= 0);
  const std::vector<GradientBucket> buckets = CutIntoBuckets(plan.segment_elements, plan.bucket_elements());
  const int64_t reductions = plan.gives_gradients_away() ? plan.accum : 1;
  StepEstimate step;
  std::vector<double> bucket_s;
  for (const PartSize& part : plan.gradient_parts()) {
    const Traffic traffic = TrafficOf(part, plan);
    bucket_s.push_back(traffic.SecondsOver(link));
    for (int64_t i = 0; i < reductions; ++i) step.gradients += traffic;
  }
  for (const PartSize& part : plan.weight_parts()) {
    step.weights += EqualParts(plan.weight_bytes * part.most, plan.ranks);
  }
  for (const PartSize& part : plan.fp32_copy_parts()) {
    step.weights += EqualParts(kFp32Bytes * part.most, plan.ranks);
  }
  for (int64_t i = 0; i < kSmallExchanges; ++i) step.small += RingSum(kSmallExchangeBytes, plan.ranks);
  for (const int64_t bytes : plan.gathered_bytes) step.gathered += EqualParts(bytes, plan.ranks);
  step.link_s = step.sent().SecondsOver(link);
  const double passes_s = costs.passes_s.total();
  if (passes_s <= 0) return step;

  std::vector<double> segment_s = costs.passes_s.backward;
  TRAINWRIGHT_CHECK(segment_s.size() == plan.segment_elements.size());
  const BackwardTimeline timeline = FollowBackward(segment_s, buckets, bucket_s);
  const auto times = static_cast<double>(reductions), micro_batches = static_cast<double>(plan.accum);
  step.hidden_s = times * timeline.hidden_s();
  step.alone_s = micro_batches * passes_s + costs.update_s;
  step.step_s = micro_batches * passes_s +
                costs.update_s / (plan.is_sharded() ? static_cast<double>(plan.ranks) : 1.0) +
                times * timeline.exposed_s() + step.weights.SecondsOver(link) + step.small.SecondsOver(link) +
                step.gathered.SecondsOver(link);
  return step;
}

}  // namespace trainwright
