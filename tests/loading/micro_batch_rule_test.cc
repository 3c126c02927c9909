#include "lib/loading/micro_batch_rule.h"

#include <gtest/gtest.h>

#include <memory>

#include "lib/base/error.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

std::vector<Sample> SamplesOf(const std::vector<uint32_t>& lengths) {
  auto window = std::make_shared<SampleWindow>();
  for (const uint32_t tokens : lengths) window->samples.push_back({.tokens = tokens});
  std::vector<Sample> samples;
  for (size_t i = 0; i < lengths.size(); ++i) samples.emplace_back(window, i);
  return samples;
}

/// The tokens of the samples of each micro-batch.
std::vector<std::vector<int64_t>> Divided(const std::vector<uint32_t>& lengths, const MicroBatchRule& rule) {
  const std::vector<Sample> samples = SamplesOf(lengths);
  std::vector<std::vector<int64_t>> divided;
  for (const std::span<const Sample> micro_batch : DivideSamples(samples, rule)) {
    divided.emplace_back();
    for (const Sample& sample : micro_batch) divided.back().push_back(sample.tokens());
  }
  return divided;
}

using Batches = std::vector<std::vector<int64_t>>;

TEST(DivideSamplesTest, WithoutALimitEachHasAsManySamples) {
  EXPECT_EQ(Divided({5, 9, 1, 4, 2}, {.samples = 2}), (Batches{{5, 9}, {1, 4}, {2}}));
  EXPECT_EQ(Divided({}, {.samples = 2}), Batches{});
}

TEST(DivideSamplesTest, ALimitTakesWhatFitsInTheirOrder) {
  EXPECT_EQ(Divided({5, 4, 1, 9, 1, 1, 10}, {.samples = 2, .max_tokens = 10}),
            (Batches{{5, 4, 1}, {9, 1}, {1}, {10}}));
  EXPECT_EQ(Divided({5, 4}, {.max_tokens = 1000}), (Batches{{5, 4}}));
}

TEST(DivideSamplesTest, ALongerSampleIsRefusedByItsLength) {
  EXPECT_NE(test::MessageOf([] {
              Divided({5, 11}, {.max_tokens = 10});
            }).find("a sample of 11 tokens"),
            std::string::npos);
}

}  // namespace
}  // namespace trainwright
