#include "lib/memory/batch_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/machine/fixture_devices.h"
#include "tests/model/families.h"

namespace trainwright {
namespace {

std::vector<BatchPoint> Points(const std::vector<double>& speeds) {
  std::vector<BatchPoint> points;
  int64_t batch = 1;
  for (const double speed : speeds) {
    points.push_back({.batch = batch, .tokens = test::SteadyRate(speed), .activation_bytes = 1});
    batch *= 2;
  }
  return points;
}

std::optional<int64_t> Chosen(const std::vector<double>& speeds, BatchStop stop) {
  const auto point = SmallestFastBatch(Points(speeds), stop);
  return point ? std::optional(point->batch) : std::nullopt;
}

TEST(SmallestFastBatchTest, IsTheSmallestWithinThreePerCentOfTheFastest) {
  EXPECT_EQ(Chosen({50, 96.9, 97.1, 100}, BatchStop::kLevelled), 4);
  EXPECT_EQ(Chosen({100, 60, 50}, BatchStop::kLevelled), 1);
  EXPECT_EQ(Chosen({50, 70, 100}, BatchStop::kMemory), 4);
  EXPECT_EQ(Chosen({}, BatchStop::kMemory), std::nullopt);
}

TEST(SmallestFastBatchTest, IsUnknownWhereTimeEndedTheSearchAtItsFastest) {
  EXPECT_EQ(Chosen({50, 70, 100}, BatchStop::kTime), std::nullopt);
  EXPECT_EQ(Chosen({50, 100, 101}, BatchStop::kTime), 2);
}

ModelConfig Tiny() {
  ModelConfig config = test::Families().descriptions().PresetConfig("llama-1m", 64);
  config.num_layers = 1;
  return config;
}

/// Samples of one length.
std::function<MicroBatchPasses(int64_t)> EqualOf(const ModelConfig& model, int64_t sequence_tokens) {
  return [=](int64_t samples) { return EqualSamplePasses(model, samples, sequence_tokens); };
}

/// A search that memory bounds, never time: what training keeps, and `activation_bytes` besides.
BatchSearch SearchWithin(int64_t activation_bytes) {
  const MemoryRequest training = {.model = Tiny(), .optimizers = BuiltInOptimizers()};
  const int64_t bytes = StateMemory(test::Families(), training).total() + activation_bytes;
  return SearchBatch(test::Families(), {.training = training,
                                        .passes = EqualOf(training.model, 16),
                                        .time_s = 3600,
                                        .memory_bytes = bytes * 10 / 9 + 1});
}

TEST(SearchBatchTest, DoublesTheBatchUntilTheNextWouldOutgrowTheMemory) {
  const BatchSearch smallest = SearchWithin(0);
  ASSERT_EQ(smallest.points.size(), 1u);
  EXPECT_EQ(smallest.stop, BatchStop::kMemory);
  EXPECT_EQ(smallest.chosen->batch, 1);
  const int64_t of_one = smallest.points[0].activation_bytes;
  const MemoryRequest training = {.model = Tiny(), .optimizers = BuiltInOptimizers()};
  const int64_t products = TrainingMemory(test::Families(), training, EqualSamples(1, 16)).products;
  ASSERT_GT(products, 0);
  EXPECT_EQ(SearchWithin(of_one * 3).points.size(), 1u);           // what products leave counts, too
  const BatchSearch search = SearchWithin(of_one * 3 + products);  // two fit, four do not
  ASSERT_EQ(search.points.size(), 2u);
  EXPECT_EQ(search.stop, BatchStop::kMemory);
  EXPECT_EQ(search.points[1].batch, 2);
  EXPECT_GT(search.points[1].activation_bytes, of_one);
  EXPECT_GT(search.points[1].tokens.median, 0);
}

TEST(SearchBatchTest, MeasuresThePassesThatAreAskedForAndBoundsThemByWhatTheyTake) {
  const MemoryRequest training = {.model = Tiny(), .optimizers = BuiltInOptimizers()};
  std::set<int64_t> computed, on_shapes;
  // A sample is as long as the batch is large.
  const auto passes = [&](int64_t samples) {
    const MicroBatchPasses equal = EqualSamplePasses(training.model, samples, 16 * samples);
    const auto run = [&, equal, samples](LanguageModel* model) {
      (model->parameters().values().is_meta() ? on_shapes : computed).insert(samples);
      equal.run(model);
    };
    return MicroBatchPasses{.run = run, .span_starts = equal.span_starts};
  };
  const int64_t state_bytes = StateMemory(test::Families(), training).total();
  const MemoryParts of_four = TrainingMemory(test::Families(), training, passes(4));
  const int64_t bytes = state_bytes + of_four.activations + of_four.logits;
  on_shapes.clear();
  const BatchSearch search = SearchBatch(
      test::Families(),
      {.training = training, .passes = passes, .time_s = 3600, .memory_bytes = bytes * 10 / 9 - 1});
  EXPECT_EQ(search.stop, BatchStop::kMemory);
  EXPECT_EQ(search.points.size(), 2u);
  EXPECT_THAT(computed, testing::ElementsAre(1, 2));
  EXPECT_THAT(on_shapes, testing::ElementsAre(2, 4));
}

TEST(SearchBatchTest, MakesNoModelThatDoesNotFitIntoMemoryOrTime) {
  const MemoryRequest large = {.model = test::Families().descriptions().PresetConfig("gpt2-1558m", 50257),
                               .optimizers = BuiltInOptimizers()};
  const BatchSearch memory = SearchBatch(
      test::Families(),
      {.training = large, .passes = EqualOf(large.model, 64), .time_s = 600, .memory_bytes = 1 << 30});
  EXPECT_TRUE(memory.points.empty());
  EXPECT_EQ(memory.stop, BatchStop::kMemory);
  const BatchSearch time =
      SearchBatch(test::Families(), {.training = large, .passes = EqualOf(large.model, 64), .time_s = 1});
  EXPECT_TRUE(time.points.empty());
  EXPECT_EQ(time.stop, BatchStop::kTime);
}

TEST(SearchBatchTest, TellsTheStateThatTheTuningLeaves) {
  MemoryRequest training = {.model = Tiny(), .optimizers = BuiltInOptimizers()};
  const auto state_bytes = [&] {
    return SearchBatch(test::Families(),
                       {.training = training, .passes = EqualOf(training.model, 16), .time_s = 0})
        .state_bytes;
  };
  const int64_t full = state_bytes();
  training.optimizer.states = OptimizerStates::kBf16;
  EXPECT_EQ(state_bytes(), full / 16 * 12);
  training.offload.gradients = true;
  EXPECT_LT(state_bytes(), full / 16 * 12);
  training.tuning.lora = LoraOptions{.rank = 1, .alpha = 1};
  EXPECT_LT(state_bytes(), full / 3);
  const int64_t plain = state_bytes();
  training.tuning.frozen_format = WeightFormat::kNf4;
  EXPECT_LT(state_bytes(), plain);
}

}  // namespace
}  // namespace trainwright
