// How gradients of leaves and ranks become those of a step: against sums that are written down element by
// element.
#include "lib/dist/gradient_exchange.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/rng.h"
#include "lib/nn/reduce.h"
#include "tests/support/support.h"
#include "tests/train/thread_world.h"

namespace trainwright {
namespace {

using test::ThreadWorld;

/// Segments that are smaller and larger than a block, and whose borders are no block's: so many blocks that
/// several buckets have one of each of eight ranks.
constexpr int64_t kSegments[] = {7 * kReductionBlock + 48, 160, 2 * kReductionBlock + 4464, 16, 32,
                                 3 * kReductionBlock};

std::unique_ptr<FlatParameters> MakeParameters() {
  auto parameters = std::make_unique<FlatParameters>();
  for (const int64_t size : kSegments) {
    parameters->Add("part " + std::to_string(parameters->all().size()), {size}, false);
    parameters->StartSegment();
  }
  parameters->Allocate({Precision::kFp32, at::kFloat}, at::Device(at::kCPU));
  return parameters;
}

/// The gradients of a leaf, of sizes so different that each order of addition has a sum of its own.
at::Tensor LeafGradients(int64_t leaf, int64_t elements) {
  at::Tensor values = at::empty({elements}, at::kFloat);
  const Rng rng(11, "leaves", static_cast<uint64_t>(leaf));
  rng.FillNormal(0, static_cast<uint64_t>(elements), 1.0, values.mutable_data_ptr<float>());
  float* data = values.mutable_data_ptr<float>();
  for (int64_t i = 0; i < elements; ++i) data[i] *= static_cast<float>(1 << ((i + 3 * leaf) % 11));
  return values;
}

float SlowSum(const std::vector<at::Tensor>& leaves, size_t first, size_t count, int64_t element) {
  if (count == 1) return leaves[first].const_data_ptr<float>()[element];
  const float left = SlowSum(leaves, first, count / 2, element);
  return left + SlowSum(leaves, first + count / 2, count / 2, element);
}

/// Adds up leaves as a balanced tree, an element at a time.
at::Tensor SlowTree(const std::vector<at::Tensor>& leaves) {
  at::Tensor sum = at::empty_like(leaves[0]);
  for (int64_t i = 0; i < sum.numel(); ++i) {
    sum.mutable_data_ptr<float>()[i] = SlowSum(leaves, 0, leaves.size(), i);
  }
  return sum;
}

std::vector<at::Tensor> Leaves(int64_t count, int64_t elements) {
  std::vector<at::Tensor> leaves;
  for (int64_t leaf = 0; leaf < count; ++leaf) leaves.push_back(LeafGradients(leaf, elements));
  return leaves;
}

/// A rank of a world, with parameters of its own.
struct RankUnderTest {
  RankUnderTest(World* world, const GradientExchangeOptions& options)
      : world(world), parameters(MakeParameters()), exchange(world, parameters.get(), options) {
    exchange.Prepare();
  }
  /// The leaves of a step; the last one's segments are done from the last to the first.
  /// \param all of the step, on all ranks
  void MakeLeaves(const std::vector<at::Tensor>& all) {
    exchange.BeginStep();
    const auto own = static_cast<size_t>(world->rank() * exchange.leaves());
    for (int64_t leaf = 0; leaf < exchange.leaves(); ++leaf) {
      exchange.BeginLeaf();
      EXPECT_TRUE(parameters->gradients().eq(0).all().item<bool>()) << "a leaf begins from zero";
      const bool last = leaf + 1 == exchange.leaves();
      if (last) exchange.LastBackwardBegins();
      const std::vector<GradientBuffer::Segment>& segments = parameters->gradient_buffer().segments();
      for (size_t s = segments.size(); s-- > 0;) {
        const int64_t begin = segments[s].begin, size = segments[s].end - begin;
        parameters->gradients()
            .narrow(0, begin, size)
            .add_(all[own + static_cast<size_t>(leaf)].narrow(0, begin, size));
        exchange.SegmentDone(s);
      }
      exchange.EndLeaf();
    }
  }
  at::Tensor Step(const std::vector<at::Tensor>& all) {
    MakeLeaves(all);
    exchange.Finish(/*complete=*/true);
    return parameters->gradients().clone();
  }

  World* world;
  std::unique_ptr<FlatParameters> parameters;
  GradientExchange exchange;
};

int64_t Elements() {
  return MakeParameters()->values().numel();
}

TEST(GradientExchange, ExactLeavesAddUpAsOneTreeOnAnyNumberOfRanks) {
  constexpr int64_t kLeaves = 8;
  const std::vector<at::Tensor> leaves = Leaves(kLeaves, Elements());
  const at::Tensor expected = SlowTree(leaves);
  for (const int64_t ranks : {1, 2, 4, 8}) {
    for (const int64_t bucket_bytes : {int64_t{100000}, int64_t{300000}, int64_t{25} << 20}) {
      ThreadWorld world(ranks);
      const auto sums = world.Run([&](World* own) {
        RankUnderTest rank(ranks == 1 ? Solo() : own, {bucket_bytes, kLeaves});
        rank.Step(leaves);
        return rank.Step(leaves);  // what a step leaves must not reach the next one
      });
      for (const at::Tensor& sum : sums) {
        EXPECT_TRUE(at::equal(sum, expected)) << ranks << " ranks, buckets of " << bucket_bytes;
      }
    }
  }
}

TEST(GradientExchange, WithoutExactLeavesAllRanksGetTheSameSumsOfAll) {
  for (const int64_t ranks : {2, 3, 5}) {
    const std::vector<at::Tensor> parts = Leaves(ranks, Elements());
    at::Tensor expected = parts[0].to(at::kDouble);
    for (size_t i = 1; i < parts.size(); ++i) expected.add_(parts[i]);
    ThreadWorld world(ranks);
    const auto sums = world.Run([&](World* own) { return RankUnderTest(own, {100000, 0}).Step(parts); });
    EXPECT_LT(sums[0].sub(expected).norm().item<double>(), 1e-6 * expected.norm().item<double>());
    for (const at::Tensor& sum : sums) EXPECT_TRUE(at::equal(sum, sums[0]));
  }
}

TEST(GradientExchange, OneProcessWithoutLeavesChangesNothing) {
  const std::vector<at::Tensor> one = Leaves(1, Elements());
  RankUnderTest rank(Solo(), {});
  EXPECT_FALSE(rank.exchange.between_ranks());
  EXPECT_EQ(rank.exchange.held_bytes(), 0);
  EXPECT_TRUE(at::equal(rank.Step(one), one[0]));
}

TEST(GradientExchange, BucketsCoverTheBufferFromItsEndInPiecesOfAtMostTheirSize) {
  const std::vector<at::Tensor> parts = Leaves(2, Elements());
  for (const int64_t bucket_bytes : {4096, 100000, 300000}) {
    ThreadWorld world(2);
    world.Run([&](World* own) { return RankUnderTest(own, {bucket_bytes, 0}).Step(parts); });
    EXPECT_EQ(world.begun(0), world.begun(1));
    int64_t elements = 0;
    for (const std::string& begun : world.begun(0)) {
      ASSERT_EQ(begun.rfind("sum ", 0), 0u);
      const int64_t size = std::stoll(begun.substr(4));
      EXPECT_LE(size * 4, bucket_bytes);
      elements += size;
    }
    EXPECT_EQ(elements, Elements());
  }
}

TEST(GradientExchange, SmallSegmentsShareABucket) {
  const std::vector<at::Tensor> parts = Leaves(2, Elements());
  ThreadWorld world(2);
  world.Run([&](World* own) { return RankUnderTest(own, {4 * (3 * kReductionBlock + 48), 0}).Step(parts); });
  EXPECT_EQ(world.begun(0)[0], "sum " + std::to_string(3 * kReductionBlock + 48)) << "three segments";
}

/// What of a step's buckets has begun as its segments are done.
struct Progress {
  std::vector<size_t> begun;
  size_t buckets = 0;
};

/// \param order of the segments
Progress ProgressOf(const std::vector<size_t>& order, int64_t exact_leaves, bool told) {
  ThreadWorld world(2);
  return world.Run([&](World* own) {
    RankUnderTest rank(own, {100000, exact_leaves});
    Progress progress;
    progress.buckets = rank.exchange.buckets();
    rank.exchange.BeginStep();
    rank.exchange.BeginLeaf();
    for (const size_t segment : order) rank.exchange.SegmentDone(segment);  // of a pass that is not the last
    if (told) rank.exchange.LastBackwardBegins();
    progress.begun.push_back(rank.exchange.buckets_begun());
    for (const size_t segment : order) {
      rank.exchange.SegmentDone(segment);
      progress.begun.push_back(rank.exchange.buckets_begun());
    }
    rank.exchange.EndLeaf();
    rank.exchange.Finish(/*complete=*/true);
    EXPECT_EQ(rank.exchange.buckets_begun(), progress.buckets);
    return progress;
  })[0];
}

TEST(GradientExchange, BucketsBeginWhileTheLastBackwardPassGoesOn) {
  for (const int64_t exact_leaves : {0, 2}) {
    const Progress progress = ProgressOf({5, 4, 3, 2, 1, 0}, exact_leaves, /*told=*/true);
    EXPECT_EQ(progress.begun.front(), 0u);
    EXPECT_TRUE(std::is_sorted(progress.begun.begin(), progress.begun.end()));
    EXPECT_GT(progress.begun[1], 0u) << "the first segment is buckets of its own";
    EXPECT_LT(progress.begun[5], progress.buckets);
    EXPECT_EQ(progress.begun[6], progress.buckets);
  }
}

TEST(GradientExchange, ABucketWaitsForThoseBeforeIt) {
  const Progress progress = ProgressOf({0, 1, 2, 3, 4, 5}, 0, /*told=*/true);
  for (size_t done = 0; done < 6; ++done) EXPECT_EQ(progress.begun[done], 0u) << done;
  EXPECT_EQ(progress.begun[6], progress.buckets);
}

TEST(GradientExchange, NothingBeginsBeforeTheLastBackwardPass) {
  const Progress progress = ProgressOf({5, 4, 3, 2, 1, 0}, 0, /*told=*/false);
  for (const size_t begun : progress.begun) EXPECT_EQ(begun, 0u);
}

TEST(GradientExchange, ABackwardPassAfterTheLastIsABug) {
  ThreadWorld world(2);
  const auto codes = world.Run([&](World* own) {
    RankUnderTest rank(own, {25 << 20, 0});
    rank.exchange.BeginStep();
    rank.exchange.LastBackwardBegins();
    rank.exchange.SegmentDone(3);
    return test::CodeOf([&] { rank.exchange.SegmentDone(3); });
  });
  for (const std::optional<ErrorCode> code : codes) EXPECT_EQ(code, ErrorCode::kInternal);
}

TEST(GradientExchange, ARankWhosePassesFailKeepsNobodyWaiting) {
  constexpr int64_t kLeaves = 4;
  const std::vector<at::Tensor> leaves = Leaves(kLeaves, Elements());
  const at::Tensor expected = SlowTree(leaves);
  for (const int64_t exact_leaves : {int64_t{0}, kLeaves}) {
    ThreadWorld world(2);
    const auto sums = world.Run([&](World* own) {
      RankUnderTest rank(own, {100000, exact_leaves});
      if (own->rank() == 1) {
        rank.exchange.BeginStep();
        rank.exchange.BeginLeaf();
        if (exact_leaves == 0) {
          rank.exchange.LastBackwardBegins();
          rank.exchange.SegmentDone(5);  // and then it fails
        }
        rank.exchange.Finish(/*complete=*/false);
      } else {
        rank.Step(leaves);
      }
      return rank.Step(leaves);
    });
    if (exact_leaves == 0) continue;
    for (const at::Tensor& sum : sums) EXPECT_TRUE(at::equal(sum, expected)) << "the step after";
  }
}

TEST(GradientExchange, ALossOfARankAsTheLastBucketBeginsIsToldAlsoByFinish) {
  const std::vector<at::Tensor> leaves = Leaves(2, Elements());
  ThreadWorld world(2);
  world.on_begin = [](int64_t) { throw Error(ErrorCode::kIo, "rank 1", "killed or cut off"); };
  const auto codes = world.Run([&](World* own) {
    RankUnderTest rank(own, {25 << 20, 2});
    EXPECT_EQ(rank.exchange.buckets(), 1u);
    EXPECT_EQ(test::CodeOf([&] { rank.MakeLeaves(leaves); }), ErrorCode::kIo);
    return test::CodeOf([&] { rank.exchange.Finish(/*complete=*/false); });
  });
  for (const std::optional<ErrorCode> code : codes) EXPECT_EQ(code, ErrorCode::kIo);
}

double SlowSum(const std::vector<double>& terms, size_t first, size_t count) {
  if (count == 1) return terms[first];
  const double left = SlowSum(terms, first, count / 2);
  return left + SlowSum(terms, first + count / 2, count / 2);
}

TEST(GradientExchange, AFullBucketOfExactLeavesHasEquallyManyBlocksOfEachRank) {
  for (const int64_t ranks : {2, 4, 8}) {
    for (const int64_t bucket_bytes : {int64_t{4096}, 9 * kReductionBlock * 4}) {
      const std::vector<at::Tensor> leaves = Leaves(ranks, Elements());
      ThreadWorld world(ranks);
      world.Run([&](World* own) { return RankUnderTest(own, {bucket_bytes, ranks}).Step(leaves); });
      const int64_t rounds = std::max(int64_t{1}, 9 / ranks);  // of a block of each
      int64_t full = 0;
      for (const std::string& begun : world.begun(0)) {
        if (begun.rfind("gather ", 0) != 0) continue;
        const int64_t most = std::stoll(begun.substr(7)), blocks = bucket_bytes == 4096 ? 1 : rounds;
        EXPECT_LE(most, blocks * kReductionBlock) << ranks << " ranks";
        full += most == blocks * kReductionBlock ? 1 : 0;
      }
      EXPECT_GT(full, 0) << ranks << " ranks";
    }
  }
}

TEST(GradientExchange, SumsOfLossesAddUpAsTheSameTree) {
  constexpr int64_t kLeaves = 8;
  std::vector<double> first_term;
  for (int64_t leaf = 0; leaf < kLeaves; ++leaf) {
    first_term.push_back(std::sin(static_cast<double>(leaf)) * std::exp2(static_cast<double>(5 * leaf % 13)));
  }
  const double expected = SlowSum(first_term, 0, kLeaves);
  for (const int64_t ranks : {1, 2, 4, 8}) {
    ThreadWorld world(ranks);
    const auto sums = world.Run([&](World* own) {
      RankUnderTest rank(own, {100000, kLeaves});
      const int64_t leaves = rank.exchange.leaves();
      at::Tensor sums_lt = at::empty({leaves, 2}, at::kDouble);
      for (int64_t leaf = 0; leaf < leaves; ++leaf) {
        const double value = first_term[static_cast<size_t>(own->rank() * leaves + leaf)];
        sums_lt[leaf].copy_(at::tensor({value, -value}, at::kDouble));
      }
      return rank.exchange.AddUp(sums_lt);
    });
    for (const at::Tensor& sum : sums) {
      EXPECT_EQ(sum[0].item<double>(), expected) << ranks << " ranks";
      EXPECT_EQ(sum[1].item<double>(), -expected) << ranks << " ranks";
    }
  }
}

TEST(GradientExchange, TakesTheMemoryThatIsForetold) {
  for (const int64_t ranks : {1, 2, 4}) {
    for (const int64_t exact_leaves : {0, 4, 16}) {
      for (const int64_t bucket_bytes : {100000, 25 << 20}) {
        const GradientExchangeOptions options = {bucket_bytes, exact_leaves};
        ThreadWorld world(ranks);
        const auto held =
            world.Run([&](World* own) { return RankUnderTest(own, options).exchange.held_bytes(); });
        EXPECT_EQ(held[0], GradientExchange::MemoryBytes(MakeParameters()->gradient_buffer(), ranks, options))
            << ranks << " ranks, " << exact_leaves << " leaves, buckets of " << bucket_bytes;
      }
    }
  }
}

}  // namespace
}  // namespace trainwright
