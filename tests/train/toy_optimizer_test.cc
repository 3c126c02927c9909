// What an optimizer promises whatever it keeps, shown with one that the library does not know.
#include "tests/train/toy_optimizer.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/memory/batch_search.h"
#include "lib/run/plan_codec.h"
#include "lib/train/dry_run.h"
#include "lib/train/snapshot_buffers.h"
#include "lib/train/train_state.h"
#include "tests/support/support.h"
#include "tests/train/tiny_training.h"

namespace trainwright {
namespace {

using test::CountingDocuments;
using test::MemoryShardSet;
using test::PartsOf;
using test::TemporaryFolder;

constexpr int kSteps = 24, kStop = 15;

OptimizerRegistry WithToy() {
  OptimizerRegistry registry = BuiltInOptimizers();
  registry.Add(test::ToyOptimizerKind());
  return registry;
}

TrainPlan ToyPlan() {
  TrainPlan plan = test::TinyPlan();
  plan.optimizer = test::ToyOptimizerKind().description.defaults;
  plan.schedule.peak_lr = 0.3;
  return plan;
}

struct ToyRun {
  explicit ToyRun(const TrainPlan& plan, bool defer = false)
      : model(
            MakeModel(test::Families(), test::TinyModel(), plan.precision, at::Device(at::kCPU), plan.seed)),
        stream(&set, plan.stream_options()),
        trainer(PartsOf(model.get(), &stream, plan, WithToy()), plan, at::Device(at::kCPU), defer) {}
  at::Tensor WeightsAt(int64_t step) {
    while (trainer.step() < step) trainer.Step();
    return model->parameters().values();
  }
  const MemoryShardSet set = CountingDocuments();
  std::unique_ptr<LanguageModel> model;
  SampleStream stream;
  Trainer trainer;
};

/// Weights at kSteps of a run that is written at kStop, read and continued in new objects.
at::Tensor WeightsWithAStop(const StateCompression& compression, const std::string& forgotten = "") {
  const TemporaryFolder folder;
  const TrainPlan plan = ToyPlan();
  at::Tensor weights;
  {
    ToyRun run(plan);
    weights = run.WeightsAt(kStop).clone();
    TrainState state;
    state.plan = plan;
    state.trainer = run.trainer.state();
    WriteTrainState(folder.path("state"), state, compression);
  }
  TrainState state = ReadTrainState(folder.path("state"));
  if (!forgotten.empty()) state.trainer.optimizer_state(forgotten).fill_(1);
  ToyRun run(state.plan);
  run.trainer.Restore(state.trainer);
  run.model->parameters().values().copy_(weights);
  run.model->parameters().RefreshCompute();
  return run.WeightsAt(kSteps).clone();
}

TEST(ToyOptimizerTest, TrainsThroughTheTrainer) {
  for (const bool defer : {false, true}) {
    ToyRun run(ToyPlan(), defer);
    const double first_nats = run.trainer.Step().loss_nats;
    double last_nats = first_nats;
    while (!run.trainer.done()) last_nats = run.trainer.Step().loss_nats;
    EXPECT_LT(last_nats, first_nats / 3) << "deferred " << defer;
  }
}

TEST(ToyOptimizerTest, ResumesBitForBitFromEitherForm) {
  const at::Tensor expected = ToyRun(ToyPlan()).WeightsAt(kSteps);
  EXPECT_TRUE(at::equal(WeightsWithAStop({}), expected));
  EXPECT_TRUE(at::equal(WeightsWithAStop({.on = true}), expected));
}

TEST(ToyOptimizerTest, NoneOfItsStatesMayBeForgotten) {
  const at::Tensor expected = ToyRun(ToyPlan()).WeightsAt(kSteps);
  for (const char* name : {"momentum", "squares", "counts"}) {
    EXPECT_FALSE(at::equal(WeightsWithAStop({}, name), expected)) << name;
  }
}

TEST(ToyOptimizerTest, GradientsThatAreOffloadedEndInTheSameWeights) {
  const TemporaryFolder folder;
  ToyRun kept(ToyPlan()), offloaded(ToyPlan());
  offloaded.model->Offload({.gradients = true}, folder.path());
  EXPECT_TRUE(at::equal(offloaded.WeightsAt(kSteps), kept.WeightsAt(kSteps)));
  EXPECT_GT(offloaded.model->offload_counts().out_bytes, 0);
}

TEST(ToyOptimizerTest, ItsStatesAreCountedInMemoryBeforeAndDuringTheRun) {
  ToyRun run(ToyPlan());
  const FlatParameters& parameters = run.model->parameters();
  const TrainedSizes sizes = {.elements = parameters.values().numel(),
                              .segments = static_cast<int64_t>(parameters.all().back().segment) + 1};
  const int64_t bytes = run.trainer.optimizer().state_bytes();
  EXPECT_EQ(bytes, 4 * sizes.elements + 8 * sizes.segments + 48);
  EXPECT_EQ(test::ToyOptimizerKind().description.state_bytes(ToyPlan().optimizer, sizes), bytes);
  const DryRunRequest request = {.model = test::TinyModel(),
                                 .plan = ToyPlan(),
                                 .steps = 1,
                                 .optimizers = WithToy(),
                                 .objectives = BuiltInObjectives()};
  EXPECT_EQ(DryRun(test::Families(), request, {{kMainLoader, &run.stream}}).memory.optimizer, bytes);
}

TEST(ToyOptimizerTest, ItsStatesAreCountedWhereAMicroBatchIsFound) {
  ToyRun run(ToyPlan());
  MemoryRequest training = {.model = test::TinyModel(), .optimizers = WithToy()};
  const auto state_bytes = [&] {
    const auto passes = [&](int64_t samples) { return EqualSamplePasses(training.model, samples, 16); };
    return SearchBatch(test::Families(), {.training = training, .passes = passes, .time_s = 0}).state_bytes;
  };
  const int64_t with_adamw = state_bytes();
  training.optimizer = ToyPlan().optimizer;
  const int64_t moments = 2 * 4 * run.model->parameters().values().numel();
  EXPECT_EQ(state_bytes() - with_adamw, run.trainer.optimizer().state_bytes() - moments);
}

TEST(ToyOptimizerTest, ABackgroundSaveCopiesAllOfItsStates) {
  ToyRun run(ToyPlan());
  run.WeightsAt(3);
  SnapshotBuffers buffers;
  const std::vector<OptimizerState> live = run.trainer.state().optimizer;
  std::vector<OptimizerState> copies;
  for (const OptimizerState& state : live) {
    copies.push_back({state.name, buffers.Copy(copies.size() + 1, state.value)});
  }
  ASSERT_EQ(copies.size(), 3u);
  std::vector<at::Tensor> before;
  for (const OptimizerState& state : live) before.push_back(state.value.clone());
  run.WeightsAt(4);
  for (size_t i = 0; i < copies.size(); ++i) {
    EXPECT_EQ(copies[i].name, live[i].name);
    EXPECT_TRUE(at::equal(copies[i].value, before[i])) << copies[i].name;
    EXPECT_FALSE(at::equal(copies[i].value, live[i].value)) << copies[i].name;
  }
}

TEST(ToyOptimizerTest, AStateOfAnotherOptimizerIsRefused) {
  ToyRun run(ToyPlan());
  const TrainPlan other = test::TinyPlan();
  test::TrainingRun adamw(run.set, other);
  EXPECT_EQ(test::CodeOf([&] { run.trainer.Restore(adamw.trainer.state()); }), ErrorCode::kBadInput);
  EXPECT_EQ(test::CodeOf([&] { adamw.trainer.Restore(run.trainer.state()); }), ErrorCode::kBadInput);
}

TEST(ToyOptimizerTest, ThePlanKeepsItsNameAndItsOwnOptions) {
  TrainPlan plan = ToyPlan();
  plan.optimizer.own["damping"] = 0.25;
  const OptimizerOptions read = DecodePlan(nlohmann::json::parse(EncodePlan(plan).dump()), "plan").optimizer;
  EXPECT_EQ(read.name, test::kToyOptimizer);
  EXPECT_EQ(read.own, plan.optimizer.own);
  EXPECT_FALSE(EncodePlan(test::TinyPlan()).contains("optimizer")) << "states of today stay as they are";
}

TEST(ToyOptimizerTest, AnOptionThatAStateLacksHasItsDefault) {
  TrainPlan without = ToyPlan();
  without.optimizer.own.clear();
  EXPECT_TRUE(at::equal(ToyRun(without).WeightsAt(3), ToyRun(ToyPlan()).WeightsAt(3)));
}

TEST(ToyOptimizerTest, AnOptionThatItDoesNotHaveIsRefusedByName) {
  TrainPlan other = ToyPlan();
  other.optimizer.own["period"] = 2;
  EXPECT_EQ(test::CodeOf([&] { ToyRun{other}; }), ErrorCode::kBadInput);
  EXPECT_EQ(test::MessageOf([&] { ToyRun{other}; }),
            "the optimizer toy: has no option 'period' of its own | it has damping");
}

TEST(ToyOptimizerTest, ANameThatNobodyPutIntoTheRegistryIsRefusedWithThoseThatThereAre) {
  const std::string message = test::MessageOf([&] { BuiltInOptimizers().Find(test::kToyOptimizer); });
  EXPECT_NE(message.find("toy"), std::string::npos) << message;
}

}  // namespace
}  // namespace trainwright
