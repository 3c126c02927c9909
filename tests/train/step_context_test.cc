// What an objective makes once a step: when it is asked, what its passes get of it, and how failures end.
#include <gtest/gtest.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/dist/shared_work.h"
#include "lib/spec/shard_layout.h"
#include "tests/support/support.h"
#include "tests/train/rank_runs.h"
#include "tests/train/toy_objective.h"

namespace trainwright {
namespace {

/// What a rank's objective was asked.
struct Call {
  bool begins = false;
  int64_t step = 0;
  const StepContext* context = nullptr;  ///< that it made, or was given
  size_t first = 0, count = 0, of_step = 0;
  int64_t leaves = 0;
};

struct Watched {
  std::vector<Call> calls;
  int64_t contexts = 0;     ///< that exist
  bool fails_once = false;  ///< in the next Begin
};

class WatchedContext final : public StepContext {
 public:
  explicit WatchedContext(Watched* watched) : watched_(watched) { ++watched_->contexts; }
  ~WatchedContext() override { --watched_->contexts; }

 private:
  Watched* watched_;
};

class WatchedSteps final : public test::ToyObjective {
 public:
  explicit WatchedSteps(Watched* watched) : ToyObjective(0.25), watched_(*watched) {}
  StepWork WorkOf(const PackedBatch& micro_batch, const ModelConfig& model) const override {
    StepWork work = ToyObjective::WorkOf(micro_batch, model);
    work.tokens_if_padded = 3 * work.tokens;
    work.texts = {.queries = 1, .passages = 2, .generative_rows = 3};
    return work;
  }
  std::unique_ptr<StepContext> Begin(const StepPass& pass, World* world) const override {
    std::exception_ptr failure;
    if (std::exchange(watched_.fails_once, false)) {
      failure = std::make_exception_ptr(Error(ErrorCode::kBadInput, "context", "cannot be made"));
    }
    ShareEnd(world, failure);
    auto context = std::make_unique<WatchedContext>(&watched_);
    Add(pass, /*begins=*/true, context.get());
    return context;
  }
  void Run(const StepPass& pass, LossSums* sums) const override {
    Add(pass, /*begins=*/false, pass.context);
    ToyObjective::Run(pass, sums);
  }

 private:
  void Add(const StepPass& pass, bool begins, const StepContext* context) const {
    watched_.calls.push_back({.begins = begins,
                              .step = pass.step,
                              .context = context,
                              .first = pass.first_micro_batch,
                              .count = pass.batches->micro_batches.size(),
                              .of_step = pass.batches->of_step,
                              .leaves = pass.leaves});
  }

  Watched& watched_;
};

/// Four micro-batches of a step, on all ranks together.
TrainPlan WatchedPlan() {
  TrainPlan plan = test::TinyPlan();
  plan.accum = 4;
  return plan;
}

/// Of blocks enough for two ranks to have some each.
ModelConfig SomeBlocks() {
  ModelConfig config = test::TinyModel();
  config.hidden_size = 128;
  config.intermediate_size = 192;
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.head_dim = 32;
  return config;
}

/// A run as one of the ranks has it.
struct WatchedRun {
  WatchedRun(const ShardSet& set, TrainPlan plan, World* world) {
    plan.ranks = world->size();
    plan.accum /= plan.ranks;
    auto objective = std::make_unique<WatchedSteps>(&watched);
    loaders = objective->OpenLoaders(&set, plan.stream_options(), {});
    const ModelConfig config = plan.zero > 0 ? SomeBlocks() : test::TinyModel();
    model = MakeModel(test::Families(), config, plan.precision, at::Device(at::kCPU), plan.seed);
    FlatParameters& parameters = model->parameters();
    if (plan.sharding() != Sharding::kNone) {
      parameters.Shard(ShardLayout(parameters.elements(), world->rank(), world->size()),
                       plan.gives_gradients_away());
    }
    TrainerParts parts = {
        .model = model.get(),
        .loaders = LoadersOf(loaders),
        .objective = std::move(objective),
        .optimizer = MakeOptimizer(BuiltInOptimizers(), &parameters, plan.optimizer, plan.seed),
        .world = world};
    trainer = std::make_unique<Trainer>(std::move(parts), plan, at::Device(at::kCPU));
  }

  Watched watched;
  std::unique_ptr<LanguageModel> model;
  OpenedLoaders loaders;
  std::unique_ptr<Trainer> trainer;
};

class StepContextTest : public testing::Test {
 protected:
  /// What the first rank was asked in two steps.
  std::vector<Call> CallsOf(const TrainPlan& plan, int64_t ranks) {
    test::ThreadWorld world(ranks);
    return world.Run([&](World* own) {
      WatchedRun run(set_, plan, ranks == 1 ? Solo() : own);
      run.trainer->Step();
      EXPECT_EQ(run.watched.contexts, 0) << "it ends with its step";
      run.trainer->Step();
      return run.watched.calls;
    })[0];
  }
  /// Expects that of each step the context is made first, of all micro-batches, and given to passes of
  /// `passes` equal parts of them.
  void ExpectCalls(const std::vector<Call>& calls, size_t micro_batches, size_t passes, int64_t leaves) {
    ASSERT_EQ(calls.size(), 2 * (1 + passes));
    for (size_t i = 0; i < calls.size(); ++i) {
      const size_t of_step = i % (1 + passes);
      const Call& begin = calls[i - of_step];
      EXPECT_EQ(calls[i].begins, of_step == 0) << i;
      EXPECT_EQ(calls[i].step, i < 1 + passes ? 1 : 2) << i;
      EXPECT_EQ(calls[i].context, begin.context) << i;
      EXPECT_NE(calls[i].context, nullptr) << i;
      EXPECT_EQ(begin.count, micro_batches);
      EXPECT_EQ(begin.leaves, leaves);
      if (of_step == 0) continue;
      EXPECT_EQ(calls[i].count, micro_batches / passes) << i;
      EXPECT_EQ(calls[i].first, (of_step - 1) * (micro_batches / passes)) << i;
      EXPECT_EQ(calls[i].of_step, passes > 1 ? micro_batches : 0) << i;
    }
  }

  const test::MemoryShardSet set_ = test::CountingDocuments(24, test::kToyRecords);
};

TEST_F(StepContextTest, IsMadeOnceAStepForPassesOfTheWholeStep) {
  ExpectCalls(CallsOf(WatchedPlan(), 1), /*micro_batches=*/4, /*passes=*/1, /*leaves=*/1);
}

TEST_F(StepContextTest, IsMadeOnceAStepForThePassesOfAllLeaves) {
  TrainPlan plan = WatchedPlan();
  plan.exact_world = 4;
  ExpectCalls(CallsOf(plan, 1), /*micro_batches=*/4, /*passes=*/4, /*leaves=*/4);
  ExpectCalls(CallsOf(plan, 2), /*micro_batches=*/2, /*passes=*/2, /*leaves=*/2);
}

TEST_F(StepContextTest, IsMadeOnceAStepForPassesWhoseGradientsAreGivenAway) {
  TrainPlan plan = WatchedPlan();
  plan.zero = 2;
  ExpectCalls(CallsOf(plan, 2), /*micro_batches=*/2, /*passes=*/2, /*leaves=*/1);
}

TEST_F(StepContextTest, ThatCannotBeMadeOnOneRankEndsTheStepOnAllAndLeavesTheWeights) {
  test::ThreadWorld world(2);
  world.Run([&](World* own) {
    WatchedRun run(set_, WatchedPlan(), own);
    run.watched.fails_once = own->rank() == 1;
    const at::Tensor before = run.model->parameters().values().clone();
    const std::string message = test::MessageOf([&] { run.trainer->Step(); });
    EXPECT_NE(message.find("cannot be made"), std::string::npos) << message;
    EXPECT_TRUE(at::equal(run.model->parameters().values(), before));
    EXPECT_TRUE(run.watched.calls.empty()) << "no pass follows";
    EXPECT_EQ(run.trainer->Step().step, 1) << "takes the samples again";
    return 0;
  });
}

TEST_F(StepContextTest, TheTokensOfPaddingAndTheTextsAreAddedUpOverTheRanks) {
  test::ThreadWorld world(2);
  const std::vector<StepReport> reports = world.Run([&](World* own) {
    WatchedRun run(set_, WatchedPlan(), own);
    return run.trainer->Step();
  });
  WatchedRun alone(set_, WatchedPlan(), Solo());
  const StepReport whole = alone.trainer->Step();
  EXPECT_EQ(whole.tokens_if_padded, 3 * whole.tokens);
  for (const StepReport& report : reports) {
    EXPECT_EQ(report.tokens_if_padded, whole.tokens_if_padded);
    EXPECT_EQ(report.texts, (TextCounts{.queries = 4, .passages = 8, .generative_rows = 12}));
  }
}

}  // namespace
}  // namespace trainwright
