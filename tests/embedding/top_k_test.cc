#include "lib/embedding/top_k.h"

#include <ATen/ops/empty.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <limits>

#include "lib/base/rng.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

bool operator==(const ScoredRow& a, const ScoredRow& b) {
  return a.row == b.row && a.score == b.score;
}

const TieOrder kRising = [](uint64_t a, uint64_t b) { return a < b; };

at::Tensor RandomRows(int64_t rows, int64_t columns, uint64_t seed) {
  at::Tensor values = at::empty({rows, columns}, at::kFloat);
  Rng(seed, "rows").FillNormal(0, static_cast<uint64_t>(rows * columns), 1, values.data_ptr<float>());
  return values;
}

/// Every product, and a sort of all of them.
std::vector<ScoredRow> SortAll(const at::Tensor& queries, int64_t query, const at::Tensor& rows, size_t k,
                               const TieOrder& ties) {
  std::vector<ScoredRow> all;
  const auto q = queries.accessor<float, 2>();
  const auto x = rows.accessor<float, 2>();
  for (int64_t row = 0; row < rows.size(0); ++row) {
    double sum = 0;
    for (int64_t i = 0; i < rows.size(1); ++i) sum += double{q[query][i]} * double{x[row][i]};
    all.push_back({static_cast<uint64_t>(row), static_cast<float>(sum)});
  }
  std::sort(all.begin(), all.end(),
            [&](const ScoredRow& a, const ScoredRow& b) { return GoesBefore(a, b, ties); });
  all.resize(std::min(k, all.size()));
  return all;
}

void ExpectAsSorted(const at::Tensor& queries, const at::Tensor& rows, int64_t k, const TieOrder& ties,
                    int64_t tile_bytes, int64_t block) {
  TopK top(queries, k, ties, tile_bytes);
  for (int64_t begin = 0; begin < rows.size(0); begin += block) {
    top.Add(rows.narrow(0, begin, std::min(block, rows.size(0) - begin)));
  }
  EXPECT_EQ(top.rows(), static_cast<uint64_t>(rows.size(0)));
  const std::vector<std::vector<ScoredRow>> best = top.Take();
  ASSERT_EQ(static_cast<int64_t>(best.size()), queries.size(0));
  for (int64_t query = 0; query < queries.size(0); ++query) {
    const std::vector<ScoredRow> expected = SortAll(queries, query, rows, static_cast<size_t>(k), ties);
    const std::vector<ScoredRow>& found = best[static_cast<size_t>(query)];
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_TRUE(found[i] == expected[i])
          << "query " << query << " place " << i << ": row " << found[i].row << ", not " << expected[i].row;
    }
  }
}

TEST(TopKTest, AreThoseOfASortOfAllScores) {
  ExpectAsSorted(RandomRows(5, 24, 1), RandomRows(20000, 24, 2), 10, kRising, int64_t{1} << 20, 4096);
}

TEST(TopKTest, NeitherTilesNorBlocksChangeABit) {
  const at::Tensor queries = RandomRows(7, 33, 3), rows = RandomRows(1000, 33, 4);
  for (const int64_t tile_bytes : {1, 4096, 1 << 20}) {
    for (const int64_t block : {1, 17, 1000}) ExpectAsSorted(queries, rows, 5, kRising, tile_bytes, block);
  }
}

TEST(TopKTest, EqualRowsComeInTheOrderThatIsAskedFor) {
  const at::Tensor few = RandomRows(10, 16, 5), queries = RandomRows(3, 16, 6);
  at::Tensor rows = at::empty({500, 16}, at::kFloat);
  for (int64_t i = 0; i < rows.size(0); ++i) rows[i].copy_(few[i % 10]);
  ExpectAsSorted(queries, rows, 60, kRising, 4096, 128);
  ExpectAsSorted(
      queries, rows, 60, [](uint64_t a, uint64_t b) { return a > b; }, 4096, 128);
}

TEST(TopKTest, AQueryOfZerosFindsEqualScores) {
  at::Tensor queries = at::empty({1, 8}, at::kFloat);
  queries.zero_();
  ExpectAsSorted(queries, RandomRows(100, 8, 7), 3, kRising, 4096, 30);
}

TEST(TopKTest, ASmallCorpusIsFoundWhole) {
  ExpectAsSorted(RandomRows(2, 4, 8), RandomRows(3, 4, 9), 10, kRising, 4096, 3);
}

TEST(TopKTest, MoreQueriesThanATileHasGiveTheirOwnRows) {
  ExpectAsSorted(RandomRows(2100, 4, 10), RandomRows(40, 4, 11), 2, kRising, 1 << 20, 40);
}

/// In KiB, of the whole life of the process.
int64_t PeakOfMemory() {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(TopKTest, AMillionRowsTakeNoMoreMemoryThanABlockOfThem) {
  constexpr int64_t kColumns = 384, kBlockRows = 8000, kBlocks = 125, kQueries = 8;
  const at::Tensor queries = RandomRows(kQueries, kColumns, 14);
  at::Tensor block = RandomRows(kBlockRows, kColumns, 15);
  TopK top(queries, 10, kRising);
  top.Add(block);
  const int64_t before = PeakOfMemory();
  for (int64_t i = 1; i < kBlocks; ++i) {
    // Query i mod 8 itself stands in block i, and nothing is nearer to it.
    block[i].copy_(queries[i % kQueries]);
    top.Add(block);
    block[i].zero_();
  }
  EXPECT_LT(PeakOfMemory() - before, 40 << 10) << "a block has 12 MiB, a tile 32 at most";
  EXPECT_EQ(top.rows(), 1000000u);
  const auto best = top.Take();
  for (int64_t query = 0; query < kQueries; ++query) {
    for (size_t place = 0; place < 10; ++place) {
      const ScoredRow& found = best[static_cast<size_t>(query)][place];
      const auto in_block = static_cast<int64_t>(found.row) / kBlockRows;
      EXPECT_EQ(static_cast<int64_t>(found.row) % kBlockRows, in_block) << "where the query was put";
      EXPECT_EQ(in_block, static_cast<int64_t>(place) * kQueries + (query > 0 ? query : kQueries));
    }
  }
}

TEST(TopKTest, ANumberThatIsNotFiniteIsRefusedWithItsRow) {
  at::Tensor rows = RandomRows(4, 3, 12);
  TopK top(RandomRows(1, 3, 13), 2, kRising);
  top.Add(rows);
  rows[2][1].fill_(std::numeric_limits<float>::quiet_NaN());
  EXPECT_THAT(test::MessageOf([&] { top.Add(rows); }), testing::HasSubstr("vector 6"));
}

}  // namespace
}  // namespace trainwright
