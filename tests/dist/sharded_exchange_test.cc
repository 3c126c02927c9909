// Gradients, values and checkpoints of parameters that are sharded over ranks: against what one process has.
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/rng.h"
#include "lib/dist/gradient_exchange.h"
#include "lib/dist/shard_reader.h"
#include "lib/dist/value_exchange.h"
#include "lib/nn/reduce.h"
#include "tests/support/support.h"
#include "tests/train/thread_world.h"

namespace trainwright {
namespace {

using test::ThreadWorld;

/// More ranks than there are blocks: the last two own nothing.
constexpr int64_t kManyRanks = 8;

/// Segments that are smaller and larger than a block, and whose borders are no block's; six blocks.
constexpr int64_t kSegments[] = {3 * kReductionBlock + 48, 160, 70000, 16, 32, kReductionBlock};

std::unique_ptr<FlatParameters> MakeParameters(const Numerics& numerics = {Precision::kFp32, at::kFloat}) {
  auto parameters = std::make_unique<FlatParameters>();
  for (const int64_t size : kSegments) {
    const size_t index =
        parameters->Add("part " + std::to_string(parameters->all().size()), {size / 16, 16}, false);
    (*parameters)[index].of_products = index % 2 == 0;
    parameters->StartSegment();
  }
  parameters->Allocate(numerics, at::Device(at::kCPU));
  return parameters;
}

int64_t Elements() {
  return MakeParameters()->elements();
}

at::Tensor Drawn(const std::string& stream, int64_t number) {
  at::Tensor values = at::empty({Elements()}, at::kFloat);
  const Rng rng(11, stream, static_cast<uint64_t>(number));
  rng.FillNormal(0, static_cast<uint64_t>(values.numel()), 1.0, values.mutable_data_ptr<float>());
  float* data = values.mutable_data_ptr<float>();
  for (int64_t i = 0; i < values.numel(); ++i) data[i] *= static_cast<float>(1 << ((i + 3 * number) % 11));
  return values;
}

/// Adds up the ranks' parts of a step as a balanced tree, an element at a time.
at::Tensor SlowTree(std::vector<at::Tensor> parts) {
  while (parts.size() > 1) {
    std::vector<at::Tensor> sums;
    for (size_t i = 0; i < parts.size(); i += 2) {
      sums.push_back(i + 1 < parts.size() ? parts[i].add(parts[i + 1]) : parts[i]);
    }
    parts = std::move(sums);
  }
  return parts[0];
}

/// What a rank's shard has of a whole.
at::Tensor ShardOf(const ShardLayout& layout, const at::Tensor& whole) {
  at::Tensor shard = at::zeros({layout.size()}, whole.options());
  for (int64_t element = 0; element < layout.elements(); element += 16) {
    if (layout.OwnerOf(element) != layout.rank()) continue;
    shard.narrow(0, layout.PlaceOf(element), 16).copy_(whole.narrow(0, element, 16));
  }
  return shard;
}

/// The gradients of this rank's shard after a step of some rounds.
struct Reduced {
  at::Tensor shard, squares;
};

Reduced Reduce(World* world, bool away, int64_t rounds) {
  const auto parameters = MakeParameters();
  const ShardLayout layout(parameters->elements(), world->rank(), world->size());
  parameters->Shard(layout, away);
  GradientExchange exchange(world, parameters.get(), {.bucket_bytes = 300000});
  exchange.Prepare();
  for (int step = 0; step < 2; ++step) {  // what a step leaves must not reach the next one
    exchange.BeginStep();
    for (int64_t round = 0; round < rounds; ++round) {
      if (round > 0) exchange.BeginRound();
      exchange.BeginLeaf();
      exchange.LastBackwardBegins();
      const at::Tensor own = Drawn("gradients", round * world->size() + world->rank());
      for (size_t segment = std::size(kSegments); segment-- > 0;) {
        at::Tensor gradient = parameters->Gradient(segment);
        const Parameter& parameter = parameters->all()[segment];
        gradient.view({-1}).add_(own.narrow(0, parameter.offset, parameter.size));
        exchange.SegmentDone(segment);
      }
      exchange.EndLeaf();
      exchange.Finish(/*complete=*/true);
    }
  }
  Reduced reduced;
  reduced.shard = at::zeros({layout.size()}, at::kFloat);
  parameters->ForEachGradientPart([&](int64_t begin, const at::Tensor& part) {
    reduced.shard.narrow(0, layout.PlaceOf(begin), part.numel()).copy_(part);
  });
  reduced.squares = exchange.AddUpSquares();
  return reduced;
}

class ShardedGradientsTest : public testing::TestWithParam<bool> {};

TEST_P(ShardedGradientsTest, AnOwnerHasTheTreeOfAllRanksAndAllHaveTheNormOfOneBuffer) {
  for (const int64_t ranks : {int64_t{2}, int64_t{3}, int64_t{4}, kManyRanks}) {
    for (const int64_t rounds : {1, 3}) {
      if (rounds > 1 && !GetParam()) continue;
      at::Tensor expected;
      for (int64_t round = 0; round < rounds; ++round) {
        std::vector<at::Tensor> parts;
        for (int64_t rank = 0; rank < ranks; ++rank)
          parts.push_back(Drawn("gradients", round * ranks + rank));
        const at::Tensor sum = SlowTree(std::move(parts));
        expected = round == 0 ? sum : expected.add(sum);
      }
      ThreadWorld world(ranks);
      const auto reduced = world.Run([&](World* own) { return Reduce(own, GetParam(), rounds); });
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const Reduced& own = reduced[static_cast<size_t>(rank)];
        EXPECT_TRUE(at::equal(own.shard, ShardOf(ShardLayout(Elements(), rank, ranks), expected)))
            << "rank " << rank << " of " << ranks << ", rounds " << rounds;
        EXPECT_EQ(own.squares.item<double>(), SumOfSquares(expected)) << "rank " << rank << " of " << ranks;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(GivenAway, ShardedGradientsTest, testing::Bool());

TEST(ShardedGradients, GivenAwayTheyTakeTheMemoryOfTheSegmentsOfABucketAndOfTheShard) {
  constexpr int64_t kSize = 60000, kCount = 8;
  ThreadWorld world(2);
  world.Run([](World* own) {
    FlatParameters parameters;
    for (int64_t i = 0; i < kCount; ++i) {
      parameters.Add("part " + std::to_string(i), {kSize}, false);
      parameters.StartSegment();
    }
    parameters.Allocate({Precision::kFp32, at::kFloat}, at::Device(at::kCPU));
    const ShardLayout layout(parameters.elements(), own->rank(), own->size());
    parameters.Shard(layout, /*gives_gradients_away=*/true);
    GradientExchange exchange(own, &parameters, {.bucket_bytes = 4 * 2 * kReductionBlock});
    exchange.Prepare();
    exchange.BeginStep();
    exchange.BeginLeaf();
    exchange.LastBackwardBegins();
    for (size_t segment = kCount; segment-- > 0;) {
      parameters.Gradient(segment).add_(1);
      exchange.SegmentDone(segment);
    }
    exchange.EndLeaf();
    exchange.Finish(/*complete=*/true);
    EXPECT_EQ(parameters.gradient_buffer().memory_bytes(), 2 * 4 * kSize) << "two segments a bucket";
    EXPECT_EQ(parameters.gradient_shard().numel(), layout.size());
    return 0;
  });
}

TEST(ShardedGradients, ARankWhosePassesFailedTakesPartInAllRounds) {
  ThreadWorld world(2);
  const auto ended = world.Run([](World* own) {
    const auto parameters = MakeParameters();
    parameters->Shard(ShardLayout(parameters->elements(), own->rank(), own->size()), /*away=*/true);
    GradientExchange exchange(own, parameters.get(), {.bucket_bytes = 300000});
    exchange.Prepare();
    exchange.BeginStep();
    for (int round = 0; round < 2; ++round) {
      if (round > 0) exchange.BeginRound();
      const bool fails = own->rank() == 1;
      if (!fails) {
        exchange.BeginLeaf();
        parameters->Gradient(2).fill_(1);
        exchange.EndLeaf();
      }
      exchange.Finish(/*complete=*/!fails);
    }
    exchange.AddUpSquares();
    return true;
  });
  EXPECT_EQ(ended, (std::vector<bool>{true, true}));
}

struct ValuesCase {
  std::string name;
  Numerics numerics;
};

class ValueExchangeTest : public testing::TestWithParam<ValuesCase> {};

TEST_P(ValueExchangeTest, AllRanksGetWhatTheOwnersUpdated) {
  const Numerics numerics = GetParam().numerics;
  const at::Tensor before = Drawn("values", 0), after = Drawn("values", 1);
  const auto expected = MakeParameters(numerics);
  expected->values().copy_(after);
  expected->RefreshCompute();
  for (const int64_t ranks : {int64_t{2}, int64_t{3}, kManyRanks}) {
    for (const int64_t bucket_bytes : {4096, 1 << 20}) {
      ThreadWorld world(ranks);
      world.Run([&](World* own) {
        const auto parameters = MakeParameters(numerics);
        parameters->values().copy_(before);
        parameters->RefreshCompute();
        const ShardLayout layout(parameters->elements(), own->rank(), ranks);
        parameters->Shard(layout, /*gives_gradients_away=*/false);
        ValueExchange exchange(own, parameters.get(), bucket_bytes);
        layout.ForEachPiece([&](const ShardLayout::Piece& piece) {
          parameters->Masters(piece.begin, piece.size).copy_(after.narrow(0, piece.begin, piece.size));
        });
        parameters->RefreshCompute();
        exchange.Share();
        EXPECT_TRUE(at::equal(parameters->compute(), expected->compute()));
        for (size_t i = 0; i < std::size(kSegments); ++i) {
          const Parameter& parameter = parameters->all()[i];
          const bool has_value = !parameters->masters_sharded() || !parameter.of_products;
          EXPECT_EQ(parameter.value.defined(), has_value) << parameter.name;
          if (!has_value) continue;
          EXPECT_TRUE(at::equal(parameter.value, expected->all()[i].value)) << parameter.name;
        }
        EXPECT_EQ(exchange.held_bytes(), ValueExchange::MemoryBytes(*parameters, bucket_bytes));
        return 0;
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ValueExchangeTest,
                         testing::Values(ValuesCase{"Fp32", {Precision::kFp32, at::kFloat}},
                                         ValuesCase{"Bf16", {Precision::kBf16, at::kBFloat16}},
                                         ValuesCase{"RoundedBf16", {Precision::kBf16, at::kFloat}}),
                         [](const auto& info) { return info.param.name; });

TEST(ShardReader, TheWriterReadsAnyElementsInAnyOrder) {
  const int64_t elements = Elements();
  const at::Tensor floats = Drawn("values", 0), shorts = floats.to(at::kBFloat16);
  for (const int64_t ranks : {int64_t{2}, int64_t{3}, kManyRanks}) {
    ThreadWorld world(ranks);
    world.Run([&](World* own) {
      const ShardLayout layout(elements, own->rank(), ranks);
      ShardReader reader(own, layout, /*part_bytes=*/1);
      for (int turn = 0; turn < 2; ++turn) {
        reader.Run({at::Tensor(), ShardOf(layout, floats), ShardOf(layout, shorts)}, [&] {
          const std::pair<int64_t, int64_t> ranges[] = {
              {0, elements}, {16, 48}, {kReductionBlock - 16, 32}, {elements - 16, 16}, {70000, 200000}};
          for (const auto& [begin, size] : ranges) {
            const at::Tensor read = at::empty({size}, at::kFloat),
                             read_short = at::empty({size}, at::kBFloat16);
            reader.Read(2, begin, read_short);
            reader.Read(1, begin, read);
            EXPECT_TRUE(at::equal(read, floats.narrow(0, begin, size))) << begin;
            EXPECT_TRUE(at::equal(read_short, shorts.narrow(0, begin, size))) << begin;
          }
        });
      }
      return 0;
    });
  }
}

TEST(ShardReader, WhatTheWritersWorkThrowsEndsAll) {
  ThreadWorld world(3);
  const auto ends = world.Run([&](World* own) {
    const ShardLayout layout(Elements(), own->rank(), own->size());
    ShardReader reader(own, layout, 1 << 20);
    std::string problem;
    try {
      reader.Run({at::zeros({layout.size()}, at::kFloat)}, [&] {
        reader.Read(0, 0, at::empty({100}, at::kFloat));
        throw Error(ErrorCode::kIo, "file", "is on a full disk");
      });
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kIo);
      problem = error.what();
    }
    return problem;
  });
  EXPECT_NE(ends[0].find("full disk"), std::string::npos);
  for (size_t rank : {1, 2}) EXPECT_EQ(ends[rank], "rank 0: failed: file: is on a full disk");
}

}  // namespace
}  // namespace trainwright
