#include "lib/dist/batch_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "tests/support/on_ranks.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

/// What a batch comes to: the order of addition changes the bits of such sums.
double ValueOf(int64_t batch) {
  return std::ldexp(1.0 + 1.0 / static_cast<double>(batch + 3), static_cast<int>(batch * 7 % 61));
}

/// What a rank has of some batches.
struct Part {
  double sum = 0;
  std::set<int64_t> computed;
};

std::vector<Part> AddUp(int64_t ranks, int64_t batches) {
  return test::OnRanks(ranks, [&](World* world) {
    Part part;
    BatchSums sums(world);
    sums.Run([&] {
      for (int64_t batch = 0; batch < batches; ++batch) {
        sums.Next(1, [&] {
          part.computed.insert(batch);
          return ValueOf(batch);
        });
      }
    });
    part.sum = sums.sum();
    return part;
  });
}

TEST(BatchSumsTest, AllRanksHaveTheBitsOfASumInOrder) {
  for (const int64_t ranks : {1, 2, 3, 5}) {
    for (const int64_t batches : {0, 1, 2, 4, 15, 32, 33, 48, 80, 81, 200}) {
      double expected = 0;
      for (int64_t batch = 0; batch < batches; ++batch) expected += ValueOf(batch);
      for (const Part& part : AddUp(ranks, batches)) {
        EXPECT_EQ(std::bit_cast<uint64_t>(part.sum), std::bit_cast<uint64_t>(expected))
            << ranks << " ranks, " << batches << " batches";
      }
    }
  }
}

// Shows that the test above can fail.
TEST(BatchSumsTest, InAnotherOrderTheSumWouldHaveOtherBits) {
  double in_order = 0, by_rank = 0;
  for (int64_t batch = 0; batch < 48; ++batch) in_order += ValueOf(batch);
  for (int64_t rank = 0; rank < 3; ++rank) {
    double own = 0;
    for (int64_t batch = rank; batch < 48; batch += 3) own += ValueOf(batch);
    by_rank += own;
  }
  EXPECT_NE(in_order, by_rank);
}

TEST(BatchSumsTest, EveryBatchIsComputedOnceAndTheRanksHaveEquallyMany) {
  std::map<int64_t, int> computed;
  for (const Part& part : AddUp(3, 100)) {
    EXPECT_NEAR(static_cast<double>(part.computed.size()), 100 / 3.0, 1);
    for (const int64_t batch : part.computed) ++computed[batch];
  }
  ASSERT_EQ(computed.size(), 100u);
  for (const auto& [batch, times] : computed) EXPECT_EQ(times, 1) << batch;
}

/// What the ranks throw where rank 1 has other batches than rank 0.
std::vector<std::optional<ErrorCode>> Differing(int64_t batches, int64_t others, int64_t other_tokens) {
  return test::OnRanks(2, [&](World* world) {
    return test::CodeOf([&] {
      BatchSums sums(world);
      sums.Run([&] {
        const bool other = world->rank() == 1;
        for (int64_t batch = 0; batch < (other ? others : batches); ++batch) {
          sums.Next(other ? other_tokens : 10, [] { return 1.0; });
        }
      });
    });
  });
}

TEST(BatchSumsTest, BatchesThatDifferBetweenTheRanksEndAll) {
  for (const auto& [batches, others] : std::vector<std::pair<int64_t, int64_t>>{
           {3, 2}, {2, 3}, {40, 2}, {2, 40}, {0, 40}, {32, 31}, {31, 32}, {64, 33}}) {
    for (const auto& code : Differing(batches, others, 10)) {
      EXPECT_EQ(code, ErrorCode::kBadInput) << batches << " and " << others;
    }
  }
}

TEST(BatchSumsTest, BatchesOfOtherSizesEndAll) {
  for (const auto& code : Differing(5, 5, 11)) EXPECT_EQ(code, ErrorCode::kBadInput);
}

TEST(BatchSumsTest, ABatchThatFailsEndsAll) {
  for (const int64_t failing : {0, 1, 7, 90}) {
    const auto codes = test::OnRanks(2, [&](World* world) {
      return test::CodeOf([&] {
        BatchSums sums(world);
        int64_t batch = 0;
        sums.Run([&] {
          for (; batch < 100; ++batch) {
            sums.Next(1, [&]() -> double {
              if (batch == failing) throw Error(ErrorCode::kBadInput, "batch", "is bad");
              return 1;
            });
          }
        });
      });
    });
    const auto owner = static_cast<size_t>(failing % 2);
    EXPECT_EQ(codes[owner], ErrorCode::kBadInput) << failing;
    EXPECT_EQ(codes[1 - owner], ErrorCode::kIo) << failing;
  }
}

}  // namespace
}  // namespace trainwright
