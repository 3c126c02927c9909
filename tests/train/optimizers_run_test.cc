// Whole runs with each optimizer of this library.
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "lib/run/plan_codec.h"
#include "lib/train/dry_run.h"
#include "lib/train/train_state.h"
#include "tests/support/support.h"
#include "tests/train/tiny_training.h"

namespace trainwright {
namespace {

using test::CountingDocuments;
using test::MemoryShardSet;
using test::TemporaryFolder;

constexpr int kRunSteps = 12, kRunStop = 7;

/// With matrices of more than 4096 elements, and smaller ones.
ModelConfig WiderModel() {
  ModelConfig config = test::TinyModel();
  config.hidden_size = 64;
  config.intermediate_size = 80;
  return config;
}

struct OptimizerRun {
  OptimizerRun(const ShardSet& set, const TrainPlan& plan, bool defer = false)
      : model(MakeModel(test::Families(), WiderModel(), plan.precision, at::Device(at::kCPU), plan.seed)),
        stream(&set, plan.stream_options()),
        trainer(test::PartsOf(model.get(), &stream, plan), plan, at::Device(at::kCPU), defer) {}

  std::unique_ptr<LanguageModel> model;
  SampleStream stream;
  Trainer trainer;
};

class OptimizerRunTest : public ::testing::TestWithParam<std::string> {
 protected:
  OptimizerRunTest() {
    plan_.optimizer = BuiltInOptimizers().Find(GetParam()).description.defaults;
    plan_.schedule.peak_lr = GetParam() == "sgd" ? 0.3 : GetParam() == "lion" ? 2e-3 : 1e-2;
  }
  static at::Tensor WeightsAt(OptimizerRun& run, int64_t step) {
    while (run.trainer.step() < step) run.trainer.Step();
    return run.model->parameters().values();
  }
  /// Weights at kRunSteps of a run that is written at kRunStop, read and continued in new objects.
  at::Tensor WeightsWithAStop(const StateCompression& compression, const std::string& forgotten = "") const {
    const TemporaryFolder folder;
    at::Tensor weights;
    {
      OptimizerRun run(set_, plan_);
      weights = WeightsAt(run, kRunStop).clone();
      TrainState state;
      state.plan = plan_;
      state.trainer = run.trainer.state();
      WriteTrainState(folder.path("state"), state, compression);
    }
    TrainState state = ReadTrainState(folder.path("state"));
    if (!forgotten.empty()) state.trainer.optimizer_state(forgotten).fill_(1);
    OptimizerRun run(set_, state.plan);
    run.trainer.Restore(state.trainer);
    run.model->parameters().values().copy_(weights);
    run.model->parameters().RefreshCompute();
    return WeightsAt(run, kRunSteps).clone();
  }

  const MemoryShardSet set_ = CountingDocuments();
  TrainPlan plan_ = test::TinyPlan();
};
INSTANTIATE_TEST_SUITE_P(BuiltIn, OptimizerRunTest,
                         ::testing::Values("adamw", "sgd", "lion", "muon", "adamw8bit"),
                         [](const auto& info) { return info.param; });

TEST_P(OptimizerRunTest, LearnsWhetherTheHostDecidesItsStepsOrNot) {
  for (const bool defer : {false, true}) {
    OptimizerRun run(set_, plan_, defer);
    const double first_nats = run.trainer.Step().loss_nats;
    double last_nats = first_nats;
    while (!run.trainer.done()) last_nats = run.trainer.Step().loss_nats;
    EXPECT_LT(last_nats, first_nats / 2) << "deferred " << defer;
  }
}

TEST_P(OptimizerRunTest, ResumesBitForBitFromEitherForm) {
  OptimizerRun whole(set_, plan_);
  const at::Tensor expected = WeightsAt(whole, kRunSteps);
  EXPECT_TRUE(at::equal(WeightsWithAStop({}), expected));
  EXPECT_TRUE(at::equal(WeightsWithAStop({.on = true}), expected));
}

TEST_P(OptimizerRunTest, NoneOfItsStatesMayBeForgotten) {
  OptimizerRun whole(set_, plan_);
  const at::Tensor expected = WeightsAt(whole, kRunSteps).clone();
  for (const OptimizerState& state : whole.trainer.optimizer().States()) {
    EXPECT_FALSE(at::equal(WeightsWithAStop({}, state.name), expected)) << state.name;
  }
}

TEST_P(OptimizerRunTest, GradientsThatAreOffloadedEndInTheSameWeights) {
  const TemporaryFolder folder;
  OptimizerRun kept(set_, plan_), offloaded(set_, plan_);
  offloaded.model->Offload({.gradients = true}, folder.path());
  EXPECT_TRUE(at::equal(WeightsAt(offloaded, kRunSteps), WeightsAt(kept, kRunSteps)));
  EXPECT_GT(offloaded.model->offload_counts().out_bytes, 0);
}

TEST_P(OptimizerRunTest, ItsStatesAreCountedByADryRun) {
  OptimizerRun run(set_, plan_);
  const DryRunRequest request = {.model = WiderModel(),
                                 .plan = plan_,
                                 .steps = 1,
                                 .optimizers = BuiltInOptimizers(),
                                 .objectives = BuiltInObjectives()};
  EXPECT_EQ(DryRun(test::Families(), request, {{kMainLoader, &run.stream}}).memory.optimizer,
            run.trainer.optimizer().state_bytes());
}

TEST_P(OptimizerRunTest, ThePlanKeepsItsNameAndItsOwnOptions) {
  const OptimizerOptions read = DecodePlan(nlohmann::json::parse(EncodePlan(plan_).dump()), "plan").optimizer;
  EXPECT_EQ(read.name, GetParam());
  EXPECT_EQ(read.own, plan_.optimizer.own);
}

}  // namespace
}  // namespace trainwright
