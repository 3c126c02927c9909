// --exact-world: the same run bit for bit on any number of ranks.
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/print_precision.h"
#include "tests/train/rank_runs.h"

namespace trainwright {
namespace {

using test::ExpectSameOnRanks;
using test::ExpectSameWhereRanksChange;
using test::RankCase;
using test::RankPoint;
using test::RankRun;
using test::RankRunSetup;
using test::TakeSteps;

constexpr int64_t kLeaves = 4;

TrainPlan ExactPlan(Precision precision = Precision::kFp32) {
  TrainPlan plan = test::TinyPlan(precision);
  plan.batch = 2;
  plan.accum = 8;
  plan.exact_world = kLeaves;
  plan.clip = 0.3;  // the norm decides each step
  return plan;
}

std::vector<RankCase> AllCases() {
  std::vector<RankCase> cases = {
      {.name = "Fp32", .plan = ExactPlan()},
      {.name = "TiedEmbeddings", .plan = ExactPlan(), .tie_embeddings = true},
      {.name = "Bf16Copy", .plan = ExactPlan(Precision::kBf16)},
      {.name = "OneMicroBatchALeaf", .plan = ExactPlan()},
      {.name = "Deferred", .plan = ExactPlan(), .defer = true},
      {.name = "Bf16Moments", .plan = ExactPlan()},
      {.name = "LoraWithDropout", .plan = ExactPlan()},
      {.name = "DropLast", .plan = ExactPlan()},
      {.name = "MicroBatchesWithoutLabels", .plan = ExactPlan(), .few_labels = true},
      {.name = "LossTerms", .plan = ExactPlan()},
      {.name = "Fp16WithOverflows", .plan = ExactPlan(Precision::kFp16), .overflowing = true},
      {.name = "DeferredFp16WithOverflows",
       .plan = ExactPlan(Precision::kFp16),
       .defer = true,
       .overflowing = true}};
  for (RankCase& one : cases) {
    TrainPlan& plan = one.plan;
    if (one.name == "OneMicroBatchALeaf") plan.batch = 3, plan.accum = 4;
    if (one.name == "Bf16Moments") plan.optimizer.states = OptimizerStates::kBf16;
    if (one.name == "LoraWithDropout") plan.tuning.lora = LoraOptions{.rank = 2, .alpha = 4, .dropout = 0.4};
    if (one.name == "DropLast") plan.drop_last = true;
    if (one.name == "MicroBatchesWithoutLabels") plan.batch = 1;
    if (one.name == "LossTerms") plan.loss_addends = {.z_loss = 0.01, .label_smoothing = 0.1};
  }
  return cases;
}

class ExactWorldTest : public testing::TestWithParam<RankCase> {
 protected:
  /// Also over the end of an epoch.
  static constexpr int kSteps = 14;

  RankRunSetup setup() const {
    RankRunSetup setup = {.set = GetParam().few_labels ? &few_labels_ : &counting_,
                          .plan = GetParam().plan,
                          .tie_embeddings = GetParam().tie_embeddings,
                          .defer = GetParam().defer};
    if (GetParam().overflowing) {
      setup.wrap = [](World*, LanguageModel* model) {
        return std::make_unique<test::SometimesOverflowing>(model);
      };
    }
    return setup;
  }

  const test::MemoryShardSet counting_ = test::CountingDocuments(), few_labels_ = test::HalfWithoutLabels();
};

TEST_P(ExactWorldTest, EndsInTheSameBitsOnAnyNumberOfRanks) {
  const RankPoint alone = TakeSteps(setup(), 1, kSteps)[0];
  EXPECT_GT(alone.state.data().cursor.epoch, 0u) << "a step crosses the end of an epoch";
  ExpectSameOnRanks(setup(), kSteps, alone);
}

TEST_P(ExactWorldTest, IsTheSameRunWhereTheNumberOfRanksChangesOnTheWay) {
  const RankPoint alone = TakeSteps(setup(), 1, kSteps)[0];
  ExpectSameWhereRanksChange(setup(), {{4, 5}, {1, 3}, {2, 6}}, alone);
}

INSTANTIATE_TEST_SUITE_P(Runs, ExactWorldTest, testing::ValuesIn(AllCases()),
                         [](const auto& info) { return info.param.name; });

// What the cases say of themselves, so that none tests less than it seems to.

TEST(ExactWorldCases, SomeMicroBatchesAndLeavesHaveNoLabel) {
  const test::MemoryShardSet set = test::HalfWithoutLabels();
  const TrainPlan plan = ExactPlan();
  SampleStream stream(&set, plan.stream_options());
  const auto objective = ObjectiveOf(plan, BuiltInObjectives());
  int64_t without = 0, leaves_without = 0;
  for (int step = 0; step < 14; ++step) {
    const StepBatches batches = objective->Cut(stream.NextStep(8, false), {.samples = 1});
    for (size_t leaf = 0; leaf < 4; ++leaf) {
      const bool first = batches.micro_batches[2 * leaf].num_labels > 0,
                 second = batches.micro_batches[2 * leaf + 1].num_labels > 0;
      without += (first ? 0 : 1) + (second ? 0 : 1);
      leaves_without += first || second ? 0 : 1;
    }
  }
  EXPECT_GT(without, 20);
  EXPECT_GT(leaves_without, 3);
}

TEST(ExactWorldCases, SomeStepsOverflowAndSomeDoNot) {
  const test::MemoryShardSet set = test::CountingDocuments();
  RankRunSetup setup = {.set = &set, .plan = ExactPlan(Precision::kFp16)};
  setup.wrap = [](World*, LanguageModel* model) {
    return std::make_unique<test::SometimesOverflowing>(model);
  };
  for (const bool defer : {false, true}) {
    setup.defer = defer;
    const RankPoint point = TakeSteps(setup, 1, 14)[0];
    EXPECT_GE(point.state.scaler.skipped_steps, 3);
    EXPECT_GE(point.state.updates, 3);
  }
}

TEST(ExactWorld, HasOtherBitsThanARunWithoutIt) {
  const test::MemoryShardSet set = test::CountingDocuments();
  RankRunSetup setup = {.set = &set, .plan = ExactPlan()};
  const std::string exact = TakeSteps(setup, 1, 3)[0].sha256();
  setup.plan.exact_world = 0;
  EXPECT_NE(TakeSteps(setup, 1, 3)[0].sha256(), exact);
}

TEST(ExactWorld, KeepsItsMicroBatchesWhereMemoryRunsOut) {
  const test::MemoryShardSet set = test::CountingDocuments();
  const RankRunSetup setup = {.set = &set, .plan = ExactPlan()};
  RankRun run(setup, Solo());
  EXPECT_FALSE(run.trainer->HalveMicroBatches());
  EXPECT_EQ(run.trainer->plan().batch, setup.plan.batch);
}

/// What a leaf's passes make, each alone from zero.
struct Leaf {
  at::Tensor gradients;
  double loss = 0;
};

float SlowSum(const std::vector<Leaf>& leaves, size_t first, size_t count, int64_t element) {
  if (count == 1) return leaves[first].gradients.const_data_ptr<float>()[element];
  const float left = SlowSum(leaves, first, count / 2, element);
  return left + SlowSum(leaves, first + count / 2, count / 2, element);
}

double SlowLoss(const std::vector<Leaf>& leaves, size_t first, size_t count) {
  if (count == 1) return leaves[first].loss;
  const double left = SlowLoss(leaves, first, count / 2);
  return left + SlowLoss(leaves, first + count / 2, count / 2);
}

/// The leaves of the first step, of one process that knows no trainer.
std::vector<Leaf> FirstLeaves(const RankRunSetup& setup) {
  const TrainPlan& plan = setup.plan;
  SampleStream stream(setup.set, plan.stream_options());
  const std::vector<Sample> samples = stream.NextStep(plan.samples_per_step(), false);
  const auto objective = ObjectiveOf(plan, BuiltInObjectives());
  const std::vector<int64_t> denominators = objective->Cut(samples, plan.micro_batches()).denominators;
  const size_t leaf_samples = samples.size() / static_cast<size_t>(kLeaves);
  std::vector<Leaf> leaves;
  for (size_t leaf = 0; leaf < static_cast<size_t>(kLeaves); ++leaf) {
    RankRun run(setup, Solo());
    StepBatches batches = objective->Cut(std::span(samples).subspan(leaf * leaf_samples, leaf_samples),
                                         plan.micro_batches(), static_cast<int64_t>(leaf * leaf_samples));
    batches.denominators = denominators;
    at::Tensor sums = at::zeros({static_cast<int64_t>(objective->terms().size())}, at::kDouble);
    TensorLossSums loss_sums(sums);
    objective->Run({.model = run.model.get(), .batches = &batches, .seed = plan.seed, .step = 1}, &loss_sums);
    leaves.push_back(
        {.gradients = run.model->parameters().gradients().clone(), .loss = sums[0].item<double>()});
  }
  return leaves;
}

class FirstStepTest : public testing::TestWithParam<bool> {
 protected:
  FirstStepTest() {
    setup_.plan.clip = 0;  // which changes the gradients
    setup_.tie_embeddings = GetParam();
    setup_.plan.tuning.lora = LoraOptions{.rank = 2, .alpha = 4, .dropout = 0.4};
    if (GetParam()) setup_.plan.tuning.lora.reset();
  }
  const test::MemoryShardSet set_ = test::CountingDocuments();
  RankRunSetup setup_ = {.set = &set_, .plan = ExactPlan()};
};

TEST_P(FirstStepTest, GradientsAndLossAreTheBalancedTreeOfTheLeaves) {
  const std::vector<Leaf> leaves = FirstLeaves(setup_);
  at::Tensor expected = at::empty_like(leaves[0].gradients);
  for (int64_t i = 0; i < expected.numel(); ++i) {
    expected.mutable_data_ptr<float>()[i] = SlowSum(leaves, 0, leaves.size(), i);
  }
  for (const int64_t ranks : {1, 2, 4}) {
    test::ThreadWorld world(ranks);
    world.Run([&](World* own) {
      RankRun run(setup_, ranks == 1 ? Solo() : own);
      const StepReport report = run.trainer->Step();
      EXPECT_TRUE(at::equal(run.model->parameters().gradients(), expected)) << ranks << " ranks";
      EXPECT_EQ(report.loss_nats, SlowLoss(leaves, 0, leaves.size()) / static_cast<double>(report.labels))
          << ranks << " ranks";
      return 0;
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Models, FirstStepTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "TiedWhole" : "LoraWithDropout"; });

}  // namespace
}  // namespace trainwright
