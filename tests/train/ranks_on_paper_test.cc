// What lib/scaling tells of ranks that are not there is what the ranks take and send.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/dist/gradient_exchange.h"
#include "lib/dist/value_exchange.h"
#include "lib/memory/training_memory.h"
#include "lib/optim/optimizer_registry.h"
#include "lib/scaling/rank_memory.h"
#include "lib/scaling/step_estimate.h"
#include "lib/spec/llama_family.h"
#include "tests/model/families.h"
#include "tests/train/thread_world.h"

namespace trainwright {
namespace {

/// Some 1600 blocks: three for each of 512 ranks.
ModelConfig ManyBlocks() {
  ModelConfig config;
  config.family = &LlamaFamily();
  config.vocab_size = 20000;
  config.hidden_size = 1024;
  config.intermediate_size = 2048;
  config.num_layers = 6;
  config.num_heads = 8;
  config.num_kv_heads = 8;
  config.head_dim = 128;
  config.max_positions = 32;
  return config;
}

/// \param parameters of a run in one process
RankPlan PaperOf(const FlatParameters& parameters) {
  RankPlan plan;
  plan.weight_bytes = static_cast<int64_t>(parameters.compute().element_size());
  for (const GradientBuffer::Segment& segment : parameters.gradient_buffer().segments()) {
    plan.segment_elements.push_back(segment.end - segment.begin);
  }
  if (parameters.numerics().precision == Precision::kFp32) return plan;
  for (const Parameter& parameter : parameters.all()) {
    if (!parameter.trainable || parameter.of_products) continue;
    plan.fp32_copies.push_back({.begin = parameter.offset, .end = parameter.offset + parameter.size});
  }
  return plan;
}

struct PaperCase {
  std::string name;
  Precision precision = Precision::kFp32;
  Sharding sharding = Sharding::kNone;
  bool exact = false;
};

class MemoryOnPaperTest : public testing::TestWithParam<PaperCase> {};

TEST_P(MemoryOnPaperTest, IsThatOfTheRankThatHasMost) {
  const PaperCase& one = GetParam();
  MemoryRequest request = {
      .model = ManyBlocks(), .precision = one.precision, .optimizers = BuiltInOptimizers()};
  const MemoryParts alone = StateMemory(test::Families(), request);
  RankPlan plan = PaperOf(ShapesOf(test::Families(), request)->parameters());
  plan.sharding = request.sharding = one.sharding;
  for (const int64_t ranks : {2, 4, 64, 512}) {
    plan.ranks = request.ranks = ranks;
    plan.exact_leaves = request.exchange.exact_leaves = one.exact ? 2 * ranks : 0;
    plan.accum = 2;  // gradients are kept
    const MemoryParts taken = StateMemory(test::Families(), request);
    const RankMemory told = MemoryOfRank(alone, plan);
    EXPECT_EQ(told.exchange + told.leaf_sums, taken.exchange) << ranks << " ranks";
    EXPECT_EQ(told.parts.parameters, taken.parameters) << ranks << " ranks";
    EXPECT_EQ(told.parts.gradients, taken.gradients) << ranks << " ranks";
    EXPECT_EQ(told.parts.optimizer, taken.optimizer) << ranks << " ranks";
    EXPECT_EQ(told.parts.compute_copy, taken.compute_copy) << ranks << " ranks";
    EXPECT_GT(taken.exchange, 0) << ranks << " ranks";
  }
}

INSTANTIATE_TEST_SUITE_P(Runs, MemoryOnPaperTest,
                         testing::Values(PaperCase{.name = "ExactFp32", .exact = true},
                                         PaperCase{.name = "ZeroFp32", .sharding = Sharding::kOptimizer},
                                         PaperCase{.name = "ZeroBf16",
                                                   .precision = Precision::kBf16,
                                                   .sharding = Sharding::kOptimizer},
                                         PaperCase{.name = "ExactZeroBf16",
                                                   .precision = Precision::kBf16,
                                                   .sharding = Sharding::kGradients,
                                                   .exact = true}),
                         [](const auto& info) { return info.param.name; });

TEST(GradientsOnPaper, ThatAreGivenAwayAreThoseOfASegmentsBucketWithinASegment) {
  MemoryRequest request = {.model = ManyBlocks(), .optimizers = BuiltInOptimizers()};
  const ModelInput input = EqualSamples(1, 8);
  const MemoryParts alone = TrainingMemory(test::Families(), request, input);
  RankPlan plan = PaperOf(ShapesOf(test::Families(), request)->parameters());
  plan.sharding = request.sharding = Sharding::kGradients;
  request.gives_gradients_away = true;
  const int64_t layer_bytes = plan.segment_elements[1] * 4;
  for (const int64_t ranks : {2, 64, 512}) {
    plan.ranks = request.ranks = ranks;
    const int64_t taken = TrainingMemory(test::Families(), request, input).gradients;
    const int64_t told = MemoryOfRank(alone, plan).parts.gradients;
    EXPECT_GE(taken, told) << ranks << " ranks";
    EXPECT_LE(taken, told + layer_bytes) << ranks << " ranks: memory of a segment that no other fits into";
  }
}

/// Elements that a rank of a thread world has given to gathers, in all.
int64_t Gathered(const test::ThreadWorld& world) {
  int64_t elements = 0;
  for (const std::string& begun : world.begun(0)) {
    if (begun.rfind("gather ", 0) == 0) elements += std::stoll(begun.substr(7));
  }
  return elements;
}

/// Thirteen blocks and a part of one, in segments of which none ends with a block.
std::unique_ptr<FlatParameters> Parameters() {
  auto parameters = std::make_unique<FlatParameters>();
  for (const int64_t size : {7 * kReductionBlock + 48, int64_t{160}, 6 * kReductionBlock + 4464}) {
    parameters->Add("part " + std::to_string(parameters->all().size()), {size}, false);
    parameters->StartSegment();
  }
  parameters->Allocate({Precision::kFp32, at::kFloat}, at::Device(at::kCPU));
  return parameters;
}

constexpr int64_t kRanks = 4, kBucketBytes = 4 * 5 * kReductionBlock;
constexpr Link kLink = {.bytes_per_s = 1, .latency_s = 0};

RankPlan TrafficPlan() {
  RankPlan plan = PaperOf(*Parameters());
  plan.ranks = kRanks;
  plan.bucket_bytes = kBucketBytes;
  return plan;
}

TEST(TrafficOnPaper, OfExactLeavesIsTwiceWhatTheRanksGather) {
  test::ThreadWorld world(kRanks);
  world.Run([](World* own) {
    const auto parameters = Parameters();
    GradientExchange exchange(own, parameters.get(), {.bucket_bytes = kBucketBytes, .exact_leaves = kRanks});
    exchange.Prepare();
    exchange.BeginStep();
    exchange.BeginLeaf();
    exchange.EndLeaf();
    exchange.Finish(/*complete=*/true);
    return 0;
  });
  RankPlan plan = TrafficPlan();
  plan.exact_leaves = kRanks;
  EXPECT_EQ(EstimateStep(plan, kLink, {}).gradients.sent_bytes, 2 * (kRanks - 1) * 4 * Gathered(world));
}

TEST(TrafficOnPaper, OfNewWeightsIsWhatTheRanksGather) {
  test::ThreadWorld world(kRanks);
  world.Run([](World* own) {
    const auto parameters = Parameters();
    parameters->Shard(ShardLayout(parameters->elements(), own->rank(), own->size()), /*away=*/false);
    ValueExchange(own, parameters.get(), kBucketBytes).Share();
    return 0;
  });
  RankPlan plan = TrafficPlan();
  plan.sharding = Sharding::kOptimizer;
  EXPECT_EQ(EstimateStep(plan, kLink, {}).weights.sent_bytes, (kRanks - 1) * 4 * Gathered(world));
}

}  // namespace
}  // namespace trainwright
