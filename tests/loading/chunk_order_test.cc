#include "lib/loading/chunk_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <set>

#include "lib/base/rng.h"
#include "lib/loading/sample_loaders.h"
#include "tests/loading/order_page.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::Hex;
using test::Joined;
using test::NumberOf;
using test::VectorsOf;

TEST(SampleOrderPage, HasTheVectorsOfTheRandomNumbers) {
  for (const auto& [arguments, value] : VectorsOf("mix64"))
    EXPECT_EQ(Hex(Mix64(NumberOf(arguments[0]))), value);
  for (const auto& [arguments, value] : VectorsOf("key")) {
    const std::string name = (arguments[1] + " " + arguments[2]).substr(1);
    // Names have one word or two.
    const bool two = arguments.size() == 4;
    const std::string stream =
        two ? name.substr(0, name.size() - 1) : arguments[1].substr(1, arguments[1].size() - 2);
    EXPECT_EQ(Hex(Rng(NumberOf(arguments[0]), stream, NumberOf(arguments.back())).key()), value) << stream;
  }
  for (const auto& [arguments, value] : VectorsOf("bits")) {
    EXPECT_EQ(Hex(Rng::BitsOf(NumberOf(arguments[0], 16), NumberOf(arguments[1]))), value);
  }
  for (const auto& [arguments, value] : VectorsOf("permutation")) {
    const KeyedPermutation order(NumberOf(arguments[0]), NumberOf(arguments[1], 16));
    std::vector<uint64_t> elements;
    for (uint64_t i = 0; i < order.size(); ++i) elements.push_back(order(i));
    EXPECT_EQ(Joined(elements), value);
  }
}

TEST(SampleOrderPage, HasTheVectorsOfTheChunks) {
  for (const auto& [arguments, value] : VectorsOf("pass")) {
    const ChunkOrder order({{.chunks = NumberOf(arguments[0])}},
                           {.seed = NumberOf(arguments[2]), .block_chunks = NumberOf(arguments[1])});
    std::vector<uint64_t> chunks;
    for (uint64_t slot = 0; slot < order.slots(); ++slot) chunks.push_back(order.At(0, slot).chunk);
    EXPECT_EQ(Joined(chunks), value);
  }
  for (const auto& [arguments, value] : VectorsOf("draws")) {
    std::vector<OrderedSet> sets;
    for (const std::string& weight : arguments) sets.push_back({.chunks = 100, .weight = NumberOf(weight)});
    const ChunkOrder order(sets, {});
    std::vector<uint32_t> drawn;
    for (uint64_t slot = 0; slot < (value.size() + 1) / 2; ++slot) drawn.push_back(order.At(0, slot).set);
    EXPECT_EQ(Joined(drawn), value);
  }
  for (const auto& [arguments, value] : VectorsOf("slots")) {
    const ChunkOrder order(
        {{.chunks = NumberOf(arguments[0]), .weight = NumberOf(arguments[2])},
         {.first_chunk = 1000, .chunks = NumberOf(arguments[1]), .weight = NumberOf(arguments[3])}},
        {.seed = NumberOf(arguments[4])});
    std::string draws;
    for (uint64_t t = 0; t < 12; ++t) {
      const ChunkDraw draw = order.At(t / order.slots(), t % order.slots());
      draws += (t == 0 ? "" : " ") + std::to_string(draw.set) + "." + std::to_string(draw.pass) + "." +
               std::to_string(draw.place) + "." + std::to_string(draw.chunk - 1000 * draw.set);
    }
    EXPECT_EQ(draws, value);
  }
  for (const auto& [arguments, value] : VectorsOf("substitutes")) {
    const ChunkOrder order({{.chunks = NumberOf(arguments[0])}}, {.seed = NumberOf(arguments[1])});
    std::vector<uint64_t> chunks;
    for (uint64_t attempt = 0; attempt < order.slots(); ++attempt) {
      chunks.push_back(order.Substitute({.place = NumberOf(arguments[2])}, attempt));
    }
    EXPECT_EQ(Joined(chunks), value);
  }
}

TEST(SampleOrderPage, HasTheVectorsOfTheShares) {
  for (const auto& [arguments, value] : VectorsOf("shares")) {
    const auto samples = static_cast<uint32_t>(NumberOf(arguments[0]));
    const auto ranks = static_cast<int64_t>(NumberOf(arguments[1]));
    // A sample is known by its number of tokens.
    const auto window = std::make_shared<SampleWindow>();
    for (uint32_t i = 0; i < samples; ++i) window->samples.push_back({.tokens = i});
    std::vector<Sample> step;
    for (uint32_t i = 0; i < samples; ++i) step.emplace_back(window, i);
    std::string shares;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      std::vector<int64_t> numbers;
      for (const Sample& sample : ShareOf(step, rank, ranks)) numbers.push_back(sample.tokens());
      shares += (rank == 0 ? "" : " | ") + (numbers.empty() ? "none" : Joined(numbers));
    }
    EXPECT_EQ(shares, value);
  }
}

TEST(ChunkOrder, TakesEveryChunkOnceAPassWhateverTheBlock) {
  for (uint64_t chunks = 1; chunks <= 130; ++chunks) {
    for (const uint64_t block : {1, 2, 3, 7, 16, 64, 200}) {
      const ChunkOrder order({{.first_chunk = 5, .chunks = chunks}}, {.seed = chunks, .block_chunks = block});
      std::set<uint64_t> seen, substitutes;
      for (uint64_t slot = 0; slot < chunks; ++slot) {
        seen.insert(order.At(3, slot).chunk);
        substitutes.insert(order.Substitute(order.At(3, 0), slot));
      }
      ASSERT_EQ(seen.size(), chunks) << "block " << block;
      ASSERT_EQ(*seen.begin(), 5u);
      ASSERT_EQ(*seen.rbegin(), 4 + chunks);
      ASSERT_EQ(substitutes, seen);
    }
  }
}

TEST(ChunkOrder, KeepsTheChunksOfABlockTogether) {
  const uint64_t chunks = 1003, block = 10;
  const ChunkOrder order({{.chunks = chunks}}, {.seed = 4, .block_chunks = block});
  uint64_t breaks = 0;
  for (uint64_t slot = 1; slot < chunks; ++slot) {
    if (order.At(0, slot).chunk != order.At(0, slot - 1).chunk + 1) ++breaks;
  }
  EXPECT_LE(breaks, chunks / block + 1);
  EXPECT_GT(breaks, chunks / block - 10) << "blocks that follow each other as stored should be rare";
}

TEST(ChunkOrder, GivesEverySetItsShareAtEveryMomentAndCountsInClosedForm) {
  std::mt19937_64 random(test::TestSeed());
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE("seed " + std::to_string(test::TestSeed()) + ", round " + std::to_string(round));
    std::vector<OrderedSet> sets(1 + random() % 6);
    uint64_t first = 0;
    for (OrderedSet& set : sets) {
      set = {.first_chunk = first, .chunks = 1 + random() % 40, .weight = 1 + random() % (uint64_t{1} << 32)};
      first += set.chunks;
    }
    double total_weight = 0;
    for (const OrderedSet& set : sets) total_weight += static_cast<double>(set.weight);
    const ChunkOrder order(sets, {.seed = random()});
    std::vector<uint64_t> counts(sets.size());
    std::map<std::pair<uint32_t, uint64_t>, std::multiset<uint64_t>> passes;
    for (uint64_t t = 0; t < 700; ++t) {
      ASSERT_EQ(order.CountsOf(t), counts);
      for (size_t set = 0; set < sets.size(); ++set) {
        const double share = static_cast<double>(sets[set].weight) / total_weight * static_cast<double>(t);
        ASSERT_LT(std::abs(static_cast<double>(counts[set]) - share), static_cast<double>(set) + 1);
      }
      const ChunkDraw draw = order.At(t / order.slots(), t % order.slots());
      const OrderedSet& set = sets[draw.set];
      ASSERT_EQ(draw.pass * set.chunks + draw.place, counts[draw.set]);
      ASSERT_GE(draw.chunk, set.first_chunk);
      ASSERT_LT(draw.chunk, set.first_chunk + set.chunks);
      passes[{draw.set, draw.pass}].insert(draw.chunk);
      ++counts[draw.set];
    }
    for (const auto& [key, chunks] : passes) {
      for (const uint64_t chunk : chunks) ASSERT_EQ(chunks.count(chunk), 1u) << "twice in a pass";
    }
  }
}

TEST(ChunkOrder, WithoutWeightsTakesEveryChunkOnceAnEpoch) {
  const std::vector<OrderedSet> sets = {{.first_chunk = 0, .chunks = 17, .weight = 17},
                                        {.first_chunk = 17, .chunks = 1, .weight = 1},
                                        {.first_chunk = 18, .chunks = 40, .weight = 40}};
  const ChunkOrder order(sets, {.seed = 9});
  for (const uint64_t epoch : {0, 1, 1000000}) {
    std::set<uint64_t> seen;
    for (uint64_t slot = 0; slot < order.slots(); ++slot) {
      const ChunkDraw draw = order.At(epoch, slot);
      EXPECT_EQ(draw.pass, epoch);
      seen.insert(draw.chunk);
    }
    EXPECT_EQ(seen.size(), 58u);
  }
}

TEST(ChunkOrder, CountsBeyondWhatFitsIntoProducts) {
  // 2^40 epochs of 2^20 chunks with weights near 2^32: products need more than 64 bits.
  const uint64_t chunks = uint64_t{1} << 20, weight = 0xFFFFFFFF;
  const ChunkOrder order(
      {{.chunks = chunks, .weight = weight}, {.first_chunk = chunks, .chunks = chunks, .weight = 1}}, {});
  const uint64_t epoch = uint64_t{1} << 40;
  const std::vector<uint64_t> counts = order.CountsOf(epoch * 2 * chunks);
  EXPECT_EQ(counts[1], uint64_t{1} << 29);
  EXPECT_EQ(counts[0] + counts[1], epoch * 2 * chunks);
}

}  // namespace
}  // namespace trainwright
