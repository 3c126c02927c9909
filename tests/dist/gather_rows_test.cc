#include "lib/dist/gather_rows.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tests/support/on_ranks.h"

namespace trainwright {
namespace {

/// Rank r has the rows of numbers from 100 r on.
at::Tensor RowsOfRank(int64_t rank, int64_t rows, at::ScalarType type) {
  return at::arange(100 * rank, 100 * rank + 3 * rows, at::kLong).view({rows, 3}).to(type);
}

at::Tensor Expected(const std::vector<int64_t>& rows_of_rank, at::ScalarType type) {
  std::vector<at::Tensor> parts;
  for (size_t rank = 0; rank < rows_of_rank.size(); ++rank) {
    parts.push_back(RowsOfRank(static_cast<int64_t>(rank), rows_of_rank[rank], type));
  }
  return at::cat(parts);
}

std::vector<at::Tensor> Gather(const std::vector<int64_t>& rows_of_rank, at::ScalarType type) {
  return test::OnRanks(static_cast<int64_t>(rows_of_rank.size()), [&](World* world) {
    const int64_t own = rows_of_rank[static_cast<size_t>(world->rank())];
    return GatherRows(world, RowsOfRank(world->rank(), own, type), rows_of_rank);
  });
}

TEST(GatherRowsTest, AllRanksGetTheRowsOfAllInTheirOrder) {
  const std::vector<int64_t> rows = {2, 2, 2};
  for (const at::Tensor& all : Gather(rows, at::kFloat))
    EXPECT_TRUE(at::equal(all, Expected(rows, at::kFloat)));
}

TEST(GatherRowsTest, RowsInUnlikeNumbersComeWithoutWhatFilledThemUp) {
  const std::vector<int64_t> rows = {1, 0, 4, 2};
  for (const at::Tensor& all : Gather(rows, at::kFloat))
    EXPECT_TRUE(at::equal(all, Expected(rows, at::kFloat)));
}

TEST(GatherRowsTest, WholeNumbersKeepAllTheirBits) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  const std::vector<int64_t> rows = {2, 1};
  const auto results = test::OnRanks(2, [&](World* world) {
    at::Tensor own = RowsOfRank(world->rank(), rows[static_cast<size_t>(world->rank())], at::kLong);
    own[0][0].fill_(kLeast + world->rank() + 3);
    return GatherRows(world, own, rows);
  });
  for (const at::Tensor& all : results) {
    EXPECT_EQ(all[0][0].item<int64_t>(), kLeast + 3);
    EXPECT_EQ(all[2][0].item<int64_t>(), kLeast + 4);
    EXPECT_EQ(all[2][2].item<int64_t>(), 102);
  }
}

TEST(GatherRowsTest, RowsMayBeNumbersOrTables) {
  const auto numbers = test::OnRanks(2, [](World* world) {
    return GatherRows(world, at::arange(0, 2).add(world->rank()).to(at::kFloat), {2, 2});
  });
  EXPECT_TRUE(at::equal(numbers[1], at::cat({at::arange(0, 2), at::arange(1, 3)}).to(at::kFloat)));
  const auto tables = test::OnRanks(2, [](World* world) {
    return GatherRows(world, at::zeros({1 + world->rank(), 2, 5}), {1, 2});
  });
  EXPECT_EQ(tables[0].sizes().vec(), (std::vector<int64_t>{3, 2, 5}));
}

TEST(GatherRowsTest, WhereNoRankHasRowsNothingTravels) {
  test::ThreadWorld world(2);
  const auto results = world.Run([](World* rank) { return GatherRows(rank, at::zeros({0, 4}), {0, 0}); });
  EXPECT_EQ(results[0].numel(), 0);
  EXPECT_TRUE(world.begun(0).empty());
}

TEST(GatherRowsTest, OneRankHasItsOwn) {
  const at::Tensor own = RowsOfRank(0, 3, at::kFloat);
  EXPECT_TRUE(GatherRows(Solo(), own, {3}).is_same(own));
}

TEST(GatherRowsTest, MemoryIsTakenBeforeRanksCallEachOther) {
  test::ThreadWorld world(2);
  world.Run([](World* rank) {
    const RowGather gather(rank, at::zeros({1 + rank->rank(), 4}), {1, 2});
    return 0;
  });
  EXPECT_TRUE(world.begun(0).empty());
}

}  // namespace
}  // namespace trainwright
