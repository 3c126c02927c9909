// The batches of several sets, against the vectors of the page and what a batch may be.
#include "lib/loading/set_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/loading/order_page.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

std::vector<std::vector<uint32_t>> EpochOf(const SetBatches& batches, uint64_t epoch) {
  std::vector<std::vector<uint32_t>> all;
  for (uint64_t batch = 0; batch < batches.batches(); ++batch) all.push_back(batches.SetsOf(epoch, batch));
  return all;
}

TEST(SetBatches, AreThoseOfThePage) {
  for (const auto& [arguments, value] : test::VectorsOf("batches")) {
    std::vector<uint64_t> numbers;
    for (const std::string& argument : arguments) numbers.push_back(test::NumberOf(argument));
    const std::vector<uint64_t> sizes(numbers.begin(), numbers.end() - 3);
    const uint64_t* const rest = numbers.data() + sizes.size();
    std::string found;
    for (const std::vector<uint32_t>& batch : EpochOf(SetBatches(sizes, rest[0], rest[1]), rest[2])) {
      found += (found.empty() ? "" : " | ") + test::Joined(batch);
    }
    EXPECT_EQ(found, value);
  }
}

TEST(SetBatches, AnEpochHasTheWholeBatchesOfEachSetAndAsManyMixedOnesAsTheRestMakes) {
  std::mt19937_64 random(test::TestSeed());
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE("seed " + std::to_string(test::TestSeed()) + ", round " + std::to_string(round));
    std::vector<uint64_t> sizes(1 + random() % 6);
    for (uint64_t& size : sizes) size = random() % 40;
    const uint64_t samples = 1 + random() % 9;
    const SetBatches batches(sizes, samples, random());
    uint64_t whole = 0, left = 0;
    for (const uint64_t size : sizes) {
      whole += size / samples;
      left += size % samples;
    }
    ASSERT_EQ(batches.batches(), whole + left / samples);
    for (uint64_t epoch = 0; epoch < 2; ++epoch) {
      std::map<uint32_t, uint64_t> taken;
      uint64_t of_one_set = 0;
      for (const std::vector<uint32_t>& batch : EpochOf(batches, epoch)) {
        ASSERT_EQ(batch.size(), samples);
        of_one_set += std::set(batch.begin(), batch.end()).size() == 1 ? 1 : 0;
        for (const uint32_t set : batch) ++taken[set];
      }
      EXPECT_GE(of_one_set, whole);
      for (const auto& [set, count] : taken) {
        EXPECT_LE(count, sizes[set]);
        EXPECT_GE(count, sizes[set] / samples * samples);
      }
    }
  }
}

TEST(SetBatches, AnotherEpochHasAnotherOrder) {
  const SetBatches batches({100, 100, 100}, 5, 1);
  EXPECT_NE(EpochOf(batches, 0), EpochOf(batches, 1));
  EXPECT_EQ(EpochOf(batches, 1), EpochOf(SetBatches({100, 100, 100}, 5, 1), 1));
}

}  // namespace
}  // namespace trainwright
