#include "lib/train/run_passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "tests/train/tiny_training.h"

namespace trainwright {
namespace {

class RunPassesTest : public testing::Test {
 protected:
  RunPassesTest() { plan_.sequence_tokens = 32; }
  SampleStream Stream() const { return SampleStream(&set_, plan_.stream_options()); }
  std::shared_ptr<const Objective> TheObjective() const { return ObjectiveOf(plan_, BuiltInObjectives()); }
  static int64_t TokensOf(std::span<const Sample> samples) {
    return std::accumulate(samples.begin(), samples.end(), int64_t{0},
                           [](int64_t sum, const Sample& sample) { return sum + sample.tokens(); });
  }

  const test::MemoryShardSet set_ = test::CountingDocuments();
  TrainPlan plan_ = test::TinyPlan();
};

TEST_F(RunPassesTest, TheLargestMicroBatchIsThatOfMostTokens) {
  SampleStream stream = Stream();
  const std::vector<Sample> samples = stream.NextStep(12, /*drop_last=*/false);
  int64_t most = 0;
  for (size_t begin = 0; begin < samples.size(); begin += 5) {
    const size_t size = std::min<size_t>(5, samples.size() - begin);
    most = std::max(most, TokensOf(std::span(samples).subspan(begin, size)));
  }
  const StepBatches largest = LargestMicroBatch(*TheObjective(), samples, {.samples = 5});
  ASSERT_EQ(largest.micro_batches.size(), 1u);
  EXPECT_EQ(largest.micro_batches[0].num_tokens(), most);
  EXPECT_EQ(PassesOf(*TheObjective(), largest).num_tokens(), most);
}

TEST_F(RunPassesTest, MicroBatchesOfAnySizeAreOfTheLongestSamplesOfAnEpoch) {
  SampleStream stream = Stream(), same = Stream();
  std::vector<int64_t> tokens;
  while (same.cursor().epoch == 0) tokens.push_back(same.Next().tokens());
  std::sort(tokens.begin(), tokens.end(), std::greater<>());
  ASSERT_GT(tokens.front(), tokens.back());
  const auto longest = [&](size_t count) {
    int64_t sum = 0;
    for (size_t i = 0; i < count; ++i) sum += tokens[i % tokens.size()];
    return sum;
  };
  const auto passes = LongestMicroBatches(TheObjective(), {{kMainLoader, &stream}});
  for (const size_t count : {size_t{1}, size_t{3}, tokens.size(), tokens.size() + 2}) {
    EXPECT_EQ(passes(static_cast<int64_t>(count)).num_tokens(), longest(count)) << count;
  }
}

TEST_F(RunPassesTest, TheLongestSamplesAreThoseOfAllLoaders) {
  const test::MemoryShardSet longer({{.segments = {{.tokens = 30}}, .tokens = std::vector<uint32_t>(30, 1)}},
                                    1, test::kTinyVocab);
  SampleStream main = Stream(), again = Stream(), other(&longer, plan_.stream_options());
  const auto longest = [&](const SampleLoaders& loaders) {
    return LongestMicroBatches(TheObjective(), loaders)(1).num_tokens();
  };
  const int64_t of_main = longest({{kMainLoader, &main}});
  EXPECT_GT(longest({{kMainLoader, &again}, {"other", &other}}), of_main);
}

TEST_F(RunPassesTest, PassesMakeTheModelsGradients) {
  SampleStream stream = Stream();
  const auto model =
      MakeModel(test::Families(), test::TinyModel(), Precision::kFp32, at::Device(at::kCPU), 1);
  model->parameters().ZeroGradients();
  LongestMicroBatches(TheObjective(), {{kMainLoader, &stream}})(2).run(model.get());
  EXPECT_GT(model->parameters().gradients().abs().sum().item<double>(), 0);
}

}  // namespace
}  // namespace trainwright
