#include "lib/scaling/world_estimates.h"

#include <algorithm>
#include <utility>

#include "lib/base/units.h"
#include "lib/spec/reduction_block.h"

namespace trainwright {
namespace {

/// In the order of Sharding; with accumulation the second stage in both forms.
std::vector<RankPlan> ShardingsOf(const RankPlan& asked) {
  std::vector<RankPlan> plans;
  for (const Sharding sharding : {Sharding::kNone, Sharding::kOptimizer, Sharding::kGradients}) {
    RankPlan plan = asked;
    plan.sharding = sharding;
    plan.accumulation = ZeroAccumulation::kKeep;
    plans.push_back(plan);
  }
  if (asked.accum > 1 && asked.exact_leaves == 0) {
    plans.push_back(plans.back());
    plans.back().accumulation = ZeroAccumulation::kReduce;
  }
  return plans;
}

bool IsAsked(const RankPlan& plan, const RankPlan& asked) {
  return plan.sharding == asked.sharding && plan.gives_gradients_away() == asked.gives_gradients_away();
}

WorldEstimate EstimateWorld(const WorldRequest& request, const MemoryParts& alone, int64_t ranks) {
  WorldEstimate world = {.ranks = ranks};
  RankPlan asked = request.plan;
  asked.ranks = ranks;
  const auto step_tokens = static_cast<double>(request.batch_tokens * asked.accum * ranks);
  for (const RankPlan& plan : ShardingsOf(asked)) {
    if (IsAsked(plan, asked)) world.asked = world.rows.size();
    WorldRow row = {.plan = plan, .step = EstimateStep(plan, request.link, request.costs)};
    row.memory = MemoryOfRank(alone, plan, request.passes, request.vectors_of);
    row.memory_bytes = request.counts_host ? row.memory.total() : row.memory.of_model();
    if (row.step.step_s > 0) row.tokens_per_s = step_tokens / row.step.step_s;
    world.rows.push_back(std::move(row));
  }
  world.fit = FindFit({.memory_bytes = request.memory_bytes,
                       .counts_host = request.counts_host,
                       .plan = asked,
                       .passes = request.passes,
                       .knows_adapters = request.knows_adapters,
                       .memory_of = request.memory_of,
                       .vectors_of = request.vectors_of,
                       .length_flags = request.length_flags});
  return world;
}

std::vector<std::string> AssumptionsOf(const WorldRequest& request) {
  const auto bytes = [](double size) { return FormatBytes(static_cast<uint64_t>(size)); };
  const std::string latency_us = FormatFixed(1e6 * request.link.latency_s, 1);
  std::vector<std::string> assumptions = {
      "Each rank has " + request.device + ", and sends " + bytes(request.link.bytes_per_s) +
          " a second while it receives as many; a message takes " + latency_us + " us besides.",
      "The ranks form one ring: a sum of n bytes over W ranks sends 2 (W - 1) n / W bytes of each in 2 (W - "
      "1) messages. Engines with trees need fewer messages.",
      "Gradients travel in fp32 in buckets of at most " +
          bytes(static_cast<double>(request.plan.bucket_bytes)) +
          ", from the head down, in a step's last micro-batch: each begins when its layers' gradients are "
          "done and the bucket before it is through. The last one is never hidden.",
      "With --zero or --exact-world no ring adds them up: blocks of " +
          bytes(4.0 * static_cast<double>(kReductionBlock)) +
          " belong to the ranks round-robin, each rank sends every other the blocks that are that one's, and "
          "without --zero the sums come back to all. A bucket then has a whole number of blocks of each "
          "rank, "
          "at least one, and where its end leaves some of them fewer, all wait for the one that has most.",
      "With --zero, new weights travel at " + std::to_string(request.plan.weight_bytes) +
          " bytes an element after the update, and nothing hides them; each rank updates its part. With "
          "--zero 2, gradients leave after a step, or after each micro-batch while its backward pass runs.",
      std::to_string(kSmallExchanges) +
          " small exchanges a step, of counts, sums and decisions, are waited for."};
  assumptions.push_back(request.computing);
  assumptions.push_back(
      "Layers take equal times, the head and the passes by their operations. All ranks are equally fast, and "
      "links do not disturb computing; " +
      request.samples + ". Data, evaluations and checkpoints come on top.");
  if (!request.plan.gathered_bytes.empty()) {
    assumptions.emplace_back(
        "Each rank gives the vectors of its texts to all others before the backward passes, and nothing "
        "hides that; all ranks' vectors are counted as memory of each.");
  }
  assumptions.emplace_back(
      "Memory follows from the shapes of tensors; what libraries and allocators take besides is not "
      "counted.");
  assumptions.emplace_back(
      "Efficiency is the samples a second over those of as many ranks that need not wait for each other.");
  return assumptions;
}

}  // namespace

bool WorldEstimates::fits() const {
  return std::all_of(worlds.begin(), worlds.end(), [](const WorldEstimate& world) {
    return world.fit.verdict == FitVerdict::kFits || world.fit.verdict == FitVerdict::kUnknown;
  });
}

WorldEstimates EstimateWorlds(const WorldRequest& request) {
  WorldEstimates estimates;
  const MemoryParts alone = request.memory_of(request.passes);
  for (const int64_t ranks : request.worlds) {
    estimates.worlds.push_back(EstimateWorld(request, alone, ranks));
  }
  estimates.assumptions = AssumptionsOf(request);
  return estimates;
}

}  // namespace trainwright
