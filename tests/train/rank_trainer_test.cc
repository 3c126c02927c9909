// What a trainer does as one of several ranks: ranks that are threads of this process.
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/train/trainer.h"
#include "tests/support/faulty_shard_set.h"
#include "tests/support/support.h"
#include "tests/train/rank_one.h"
#include "tests/train/rank_runs.h"
#include "tests/train/thread_world.h"
#include "tests/train/tiny_training.h"
#include "tests/train/toy_objective.h"

namespace trainwright {
namespace {

using test::RankPoint;
using test::RankRun;
using test::RankRunSetup;

constexpr int64_t kSamples = 12;  // of a step

/// What a rank has of its first step.
struct FirstStep {
  StepReport report;
  at::Tensor gradients;
  SampleCursor cursor;
};

/// How a step is split.
struct Split {
  int64_t ranks = 1, batch = kSamples;
};

/// The first step as a rank takes it, of a model that drops elements of its adapters' inputs.
FirstStep Take(const ShardSet& set, const Split& split, World* world) {
  TrainPlan plan = test::TinyPlan();
  plan.batch = split.batch;
  plan.accum = kSamples / split.ranks / split.batch;
  plan.ranks = split.ranks;
  plan.tuning.lora = LoraOptions{.rank = 2, .alpha = 4, .dropout = 0.4};
  const std::unique_ptr<LanguageModel> model =
      MakeModel(test::Families(), test::TinyModel(), plan.precision, at::Device(at::kCPU), plan.seed,
                AttentionBackend::kAuto, plan.tuning);
  for (const Parameter& parameter : model->parameters().all()) {
    if (parameter.name.ends_with("lora_B.weight")) at::Tensor(parameter.value).fill_(0.03);
  }
  model->parameters().RefreshCompute();
  SampleStream stream(&set, plan.stream_options());
  TrainerParts parts = test::PartsOf(model.get(), &stream, plan);
  parts.world = world;
  Trainer trainer(std::move(parts), plan, at::Device(at::kCPU));
  FirstStep taken;
  taken.report = trainer.Step();
  taken.gradients = model->parameters().gradients().clone();
  taken.cursor = stream.cursor();
  return taken;
}

class RanksTest : public testing::TestWithParam<Split> {
 protected:
  std::vector<FirstStep> TakeOnAllRanks() {
    test::ThreadWorld world(GetParam().ranks);
    return world.Run([&](World* rank) { return Take(set_, GetParam(), rank); });
  }
  const test::MemoryShardSet set_ = test::CountingDocuments();
};

TEST_P(RanksTest, HaveTheGradientsOfOneProcessOnTheJoinedBatchWithTheSameDropout) {
  const FirstStep whole = Take(set_, {}, Solo());
  const std::vector<FirstStep> taken = TakeOnAllRanks();
  for (const FirstStep& own : taken) {
    EXPECT_LT(own.gradients.sub(whole.gradients).norm().item<double>(),
              1e-6 * whole.gradients.norm().item<double>());
    EXPECT_TRUE(at::equal(own.gradients, taken[0].gradients));
  }
}

TEST_P(RanksTest, CountTheWholeStepAndDivideByIt) {
  const FirstStep whole = Take(set_, {}, Solo());
  for (const FirstStep& part : TakeOnAllRanks()) {
    EXPECT_EQ(part.report.tokens, whole.report.tokens);
    EXPECT_EQ(part.report.labels, whole.report.labels);
    EXPECT_EQ(part.report.attention_pairs, whole.report.attention_pairs);
    EXPECT_EQ(part.cursor, whole.cursor);
    EXPECT_NEAR(part.report.loss_nats, whole.report.loss_nats, 1e-6);
    EXPECT_NEAR(part.report.grad_norm, whole.report.grad_norm, 1e-6 * whole.report.grad_norm);
  }
}

INSTANTIATE_TEST_SUITE_P(Splits, RanksTest,
                         testing::Values(Split{.ranks = 2, .batch = 3}, Split{.ranks = 2, .batch = 1},
                                         Split{.ranks = 3, .batch = 2}),
                         [](const auto& info) {
                           return std::to_string(info.param.ranks) + "RanksOfBatch" +
                                  std::to_string(info.param.batch);
                         });

/// The first step as a rank draws it from two loaders.
/// \returns the second one's cursor, too
FirstStep TakeFromTwoLoaders(const ShardSet& set, int64_t ranks, World* world) {
  TrainPlan plan = test::TinyPlan();
  plan.batch = kSamples / ranks;
  plan.accum = 1;
  plan.ranks = ranks;
  const std::unique_ptr<LanguageModel> model =
      MakeModel(test::Families(), test::TinyModel(), plan.precision, at::Device(at::kCPU), plan.seed);
  auto objective = std::make_unique<test::TwoLoaderToy>(0.25);
  const OpenedLoaders loaders = objective->OpenLoaders(&set, plan.stream_options(), {});
  Trainer trainer(
      {.model = model.get(),
       .loaders = LoadersOf(loaders),
       .objective = std::move(objective),
       .optimizer = MakeOptimizer(BuiltInOptimizers(), &model->parameters(), plan.optimizer, plan.seed),
       .world = world},
      plan, at::Device(at::kCPU));
  FirstStep taken;
  taken.report = trainer.Step();
  taken.gradients = model->parameters().gradients().clone();
  taken.cursor = loaders.at(test::kSecondLoader)->cursor();
  return taken;
}

TEST(RankTrainer, DrawsFromSeveralLoadersWhatOneRankAloneDraws) {
  const test::MemoryShardSet set = test::CountingDocuments(24, test::kToyRecords);
  const FirstStep whole = TakeFromTwoLoaders(set, 1, Solo());
  EXPECT_EQ(whole.cursor.sample, uint64_t{kSamples / 2});
  test::ThreadWorld world(2);
  for (const FirstStep& own : world.Run([&](World* rank) { return TakeFromTwoLoaders(set, 2, rank); })) {
    EXPECT_LT(own.gradients.sub(whole.gradients).norm().item<double>(),
              1e-6 * whole.gradients.norm().item<double>());
    EXPECT_EQ(own.report.tokens, whole.report.tokens);
    EXPECT_EQ(own.cursor, whole.cursor);
  }
}

/// Eight chunks of a document each.
std::vector<Chunk> Documents() {
  constexpr uint32_t kTokens = 16;
  std::vector<Chunk> chunks(8);
  for (Chunk& chunk : chunks) {
    chunk.segments = {{.tokens = kTokens, .source_bytes = kTokens}};
    for (uint32_t i = 0; i < kTokens; ++i) chunk.tokens.push_back(i);
  }
  return chunks;
}

/// \returns what the step ends with
std::optional<ErrorCode> CodeOfStep(const ShardSet& set, World* world) {
  try {
    Take(set, {.ranks = 2, .batch = 3}, world);
    return std::nullopt;
  } catch (const Error& error) {
    return error.code();
  }
}

TEST(RankTrainer, WhatOneRankCannotReadEndsTheStepOfAll) {
  const test::FaultyShardSet sound(Documents(), 4);
  test::FaultyShardSet corrupt(Documents(), 4);
  for (uint64_t chunk = 0; chunk < corrupt.chunks(); ++chunk) corrupt.corrupt.insert(chunk);
  test::ThreadWorld world(2);
  const auto codes =
      world.Run([&](World* rank) { return CodeOfStep(rank->rank() == 1 ? corrupt : sound, rank); });
  EXPECT_EQ(codes[1], ErrorCode::kBadInput);
  EXPECT_EQ(codes[0], ErrorCode::kIo);
}

/// What two steps of two ranks end with, which may leave chunks out.
/// \param one_begins where rank 1 begins to read
std::vector<std::optional<Error>> ErrorsOfReading(const ShardSet& zero, const ShardSet& one,
                                                  const SampleCursor& one_begins = {}) {
  test::ThreadWorld world(2);
  return world.Run([&](World* rank) {
    TrainPlan plan = test::TinyPlan();
    plan.batch = kSamples / 2;
    plan.accum = 1;
    plan.ranks = 2;
    const std::unique_ptr<LanguageModel> model =
        MakeModel(test::Families(), test::TinyModel(), plan.precision, at::Device(at::kCPU), plan.seed);
    SampleStream stream(rank->rank() == 1 ? &one : &zero, plan.stream_options(), {.skip_bad_chunks = 4});
    if (rank->rank() == 1) stream.Seek(one_begins);
    TrainerParts parts = test::PartsOf(model.get(), &stream, plan);
    parts.world = rank;
    Trainer trainer(std::move(parts), plan, at::Device(at::kCPU));
    const at::Tensor weights = model->parameters().values().clone();
    std::optional<Error> thrown;
    try {
      for (int step = 0; step < 2; ++step) trainer.Step();
    } catch (const Error& error) {
      thrown = error;
      EXPECT_TRUE(at::equal(model->parameters().values(), weights)) << "the step that failed was taken";
    }
    return thrown;
  });
}

/// That all end, rank 1 with what its data is, and name it.
void ExpectRankOneIsNamed(const std::vector<std::optional<Error>>& thrown, const std::string& difference) {
  for (const auto& error : thrown) ASSERT_TRUE(error);
  EXPECT_EQ(thrown[0]->code(), ErrorCode::kIo);
  EXPECT_EQ(thrown[1]->code(), ErrorCode::kBadInput);
  EXPECT_THAT(thrown[0]->what(), testing::HasSubstr("rank 1: " + difference));
  EXPECT_THAT(thrown[1]->what(), testing::HasSubstr("rank 1 (this one): " + difference));
}

TEST(RankTrainer, ARankThatAloneLeavesAChunkOutIsNamed) {
  const test::FaultyShardSet sound(Documents(), 1);
  test::FaultyShardSet corrupt(Documents(), 1);
  corrupt.corrupt = {3};
  ExpectRankOneIsNamed(ErrorsOfReading(sound, corrupt),
                       "list of chunks that could not be read is 3, in rank 0 none");
}

TEST(RankTrainer, ARankThatReadsFromAnotherPlaceIsNamed) {
  const test::MemoryShardSet set = test::CountingDocuments();
  ExpectRankOneIsNamed(ErrorsOfReading(set, set, {.epoch = 0, .window = 1, .sample = 0}),
                       "place in the data is epoch ");
}

TEST(RankTrainer, AChunkThatAllRanksLeaveOutEndsNoStep) {
  test::FaultyShardSet corrupt(Documents(), 1);
  corrupt.corrupt = {3};
  for (const auto& error : ErrorsOfReading(corrupt, corrupt)) EXPECT_FALSE(error) << error->what();
}

/// A model that calls something around its passes.
class Watched final : public LanguageModel {
 public:
  using Call = std::function<void(LanguageModel* model, int64_t tokens)>;
  Watched(LanguageModel* model, Call before, Call after)
      : LanguageModel(model->shared_body()), before_(std::move(before)), after_(std::move(after)) {}
  LossSum LossAndGradients(const ModelInput& input, const GradientScale& scale) override {
    if (before_) before_(this, input.tokens_n.numel());
    const LossSum loss = LanguageModel::LossAndGradients(input, scale);
    if (after_) after_(this, input.tokens_n.numel());
    return loss;
  }

 private:
  Call before_, after_;
};

RankRunSetup SetupOf(const ShardSet& set, int64_t batch, int64_t accum) {
  RankRunSetup setup = {.set = &set, .plan = test::TinyPlan()};
  setup.plan.batch = batch;
  setup.plan.accum = accum;
  return setup;
}

TEST(RankTrainer, DataParallelEndsWithTheWeightsOfOneProcessWithinAThousandthOfTheirWay) {
  const test::MemoryShardSet set = test::CountingDocuments();
  constexpr int kSteps = 20;
  const RankRunSetup setup = SetupOf(set, 2, 4);
  const at::Tensor start = RankRun(setup, Solo()).model->parameters().values().clone();
  const RankPoint alone = test::TakeSteps(setup, 1, kSteps)[0];
  const double travelled = alone.weights.sub(start).norm().item<double>();
  ASSERT_GT(travelled, 0.1 * start.norm().item<double>()) << "they go somewhere";
  for (const int64_t ranks : {2, 4}) {
    for (const RankPoint& point : test::TakeSteps(setup, ranks, kSteps)) {
      EXPECT_LT(point.weights.sub(alone.weights).norm().item<double>(), 1e-3 * travelled)
          << ranks << " ranks";
    }
  }
}

TEST(RankTrainer, AllRanksHaveTheSameWeightsStepAfterStep) {
  const test::MemoryShardSet set = test::CountingDocuments();
  for (const int64_t ranks : {2, 3}) {
    for (const bool defer : {false, true}) {
      RankRunSetup setup = SetupOf(set, 2, 2 * ranks);
      setup.defer = defer;
      const std::vector<RankPoint> points = test::TakeSteps(setup, ranks, 8);
      for (const RankPoint& point : points) {
        EXPECT_EQ(point.sha256(), points[0].sha256()) << ranks << " ranks";
        EXPECT_EQ(point.reports.back().grad_norm, points[0].reports.back().grad_norm);
        EXPECT_EQ(point.reports.back().loss_nats, points[0].reports.back().loss_nats);
      }
    }
  }
}

TEST(RankTrainer, GradientsInBf16AreThoseOfOneProcessWithinItsRounding) {
  const test::MemoryShardSet set = test::CountingDocuments();
  RankRunSetup setup = SetupOf(set, 12, 1);
  setup.plan.precision = Precision::kBf16;
  RankRun whole(setup, Solo());
  whole.trainer->Step();
  const at::Tensor expected = whole.model->parameters().gradients().clone();
  setup = SetupOf(set, 3, 4);
  setup.plan.precision = Precision::kBf16;
  test::ThreadWorld world(2);
  const auto gradients = world.Run([&](World* own) {
    RankRun run(setup, own);
    run.trainer->Step();
    return run.model->parameters().gradients().clone();
  });
  for (const at::Tensor& own : gradients) {
    EXPECT_LT(own.sub(expected).norm().item<double>(), 1e-2 * expected.norm().item<double>());
  }
}

TEST(RankTrainer, WhereOneRankRunsOutOfMemoryAllHalveAndTakeTheStepAgain) {
  const test::MemoryShardSet set = test::CountingDocuments();
  for (const bool defer : {false, true}) {
    RankRunSetup setup = SetupOf(set, 2, 4);
    setup.defer = defer;
    const std::vector<RankPoint> expected = test::TakeSteps(setup, 2, 4);
    setup = SetupOf(set, 4, 2);
    setup.defer = defer;
    setup.wrap = [](World* world, LanguageModel* model) {
      const auto fail = [rank = world->rank()](LanguageModel*, int64_t tokens) {
        if (rank == 1 && tokens > 2 * 16) throw std::bad_alloc();  // with buckets under way
      };
      return std::make_unique<Watched>(model, nullptr, fail);
    };
    test::ThreadWorld world(2);
    const auto points = world.Run([&](World* own) {
      RankRun run(setup, own);
      int halved = 0;
      while (run.trainer->step() < 4) {
        try {
          run.trainer->Step();
        } catch (const std::bad_alloc&) {
          EXPECT_TRUE(run.trainer->HalveMicroBatches());
          ++halved;
        }
      }
      EXPECT_EQ(halved, 1) << "rank " << own->rank();
      return run.point();
    });
    for (const RankPoint& point : points) EXPECT_EQ(point.sha256(), expected[0].sha256());
  }
}

TEST(RankTrainer, GradientsOfOneRankThatAreNotFiniteEndTheStepOfAll) {
  const test::MemoryShardSet set = test::CountingDocuments();
  RankRunSetup setup = SetupOf(set, 2, 4);
  setup.wrap = [](World* world, LanguageModel* model) {
    const auto spoil = [rank = world->rank()](LanguageModel* model, int64_t) {
      if (rank == 1) model->parameters().gradients()[0] = std::numeric_limits<float>::quiet_NaN();
    };
    return std::make_unique<Watched>(model, spoil, nullptr);
  };
  test::ThreadWorld world(2);
  const auto codes = world.Run([&](World* own) {
    RankRun run(setup, own);
    const at::Tensor before = run.model->parameters().values().clone();
    const std::optional<ErrorCode> code = test::CodeOf([&] { run.trainer->Step(); });
    EXPECT_TRUE(at::equal(run.model->parameters().values(), before));
    return code;
  });
  for (const std::optional<ErrorCode> code : codes) EXPECT_EQ(code, ErrorCode::kNonFinite);
}

/// What a rank has begun to exchange when a pass ends.
std::vector<size_t> BegunAfterPasses(RankRunSetup setup, test::ThreadWorld* world) {
  std::vector<std::vector<size_t>> begun(2);
  setup.wrap = [&](World* own, LanguageModel* model) {
    const int64_t rank = own->rank();
    const auto count = [&begun, world, rank](LanguageModel*, int64_t) {
      begun[static_cast<size_t>(rank)].push_back(world->begun(rank).size());
    };
    return std::make_unique<Watched>(model, nullptr, count);
  };
  world->Run([&](World* own) {
    RankRun run(setup, own);
    run.trainer->Step();
    return 0;
  });
  EXPECT_EQ(begun[0], begun[1]);
  return begun[0];
}

/// Each layer has more than a block of each of two ranks.
ModelConfig WideModel() {
  ModelConfig config = test::TinyModel();
  config.hidden_size = 128;
  config.intermediate_size = 256;
  config.num_layers = 4;
  config.num_heads = 4;
  config.num_kv_heads = 4;
  config.head_dim = 32;
  return config;
}

TEST(RankTrainer, BucketsBeginInTheLastPassOfAStepAndInTheSameOrder) {
  const test::MemoryShardSet set = test::CountingDocuments();
  for (const bool tied : {false, true}) {
    for (const int64_t exact_world : {0, 2}) {
      RankRunSetup setup = SetupOf(set, 2, 6);
      setup.model = WideModel();
      setup.bucket_bytes = 2 * kReductionBlock * 4;
      setup.tie_embeddings = tied;
      setup.plan.exact_world = exact_world;
      test::ThreadWorld world(2);
      const std::vector<size_t> begun = BegunAfterPasses(setup, &world);
      ASSERT_EQ(begun.size(), 3u);
      EXPECT_EQ(begun[0], 0u);
      EXPECT_EQ(begun[1], 0u);
      EXPECT_GE(begun[2], 4u) << "a bucket a layer, and those below and above them";
      EXPECT_EQ(world.begun(0), world.begun(1));
    }
  }
}

TEST(RankTrainer, TheFirstBucketBeginsBeforeTheBackwardPassReachesTheEmbeddings) {
  const test::MemoryShardSet set = test::CountingDocuments();
  const RankRunSetup setup = SetupOf(set, 4, 2);
  test::ThreadWorld world(2);
  std::vector<FlatParameters*> parameters(2);
  std::array<bool, 2> untouched = {};
  world.on_begin = [&](int64_t rank) {
    const auto i = static_cast<size_t>(rank);
    if (!world.begun(rank).empty()) return;
    untouched[i] = parameters[i]->Gradient(0).eq(0).all().item<bool>();
  };
  const auto reached = world.Run([&](World* own) {
    RankRun run(setup, own);
    parameters[static_cast<size_t>(own->rank())] = &run.model->parameters();
    run.trainer->Step();
    return run.model->parameters().Gradient(0).ne(0).any().item<bool>();
  });
  for (size_t rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(untouched[rank]);
    EXPECT_TRUE(reached[rank]);
  }
}

TEST(RankTrainer, EndsAtTheNextLookWhereTheNumbersOfRankZeroAreNotFinite) {
  const test::MemoryShardSet set = test::CountingDocuments();
  TrainPlan plan = test::TinyPlan();
  plan.ranks = 2;
  const std::unique_ptr<LanguageModel> model =
      MakeModel(test::Families(), test::TinyModel(), plan.precision, at::Device(at::kCPU), plan.seed);
  SampleStream stream(&set, plan.stream_options());
  test::RankOne world([](test::Moment moment, int64_t) {
    return std::vector<int64_t>{moment == test::Moment::kOtherwise ? 2 : 0};  // the second step is bad
  });
  TrainerParts parts = test::PartsOf(model.get(), &stream, plan);
  parts.world = &world;
  Trainer trainer(std::move(parts), plan, at::Device(at::kCPU), /*defer=*/true);
  for (int step = 1; step <= 3; ++step) trainer.Step(/*read=*/false);
  EXPECT_EQ(test::CodeOf([&] { trainer.Look(); }), ErrorCode::kNonFinite);
}

}  // namespace
}  // namespace trainwright
