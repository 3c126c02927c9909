#include "lib/base/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace trainwright {
namespace {

TEST(KeyedPermutationTest, IsABijectionForEverySmallSize) {
  for (uint64_t size = 1; size <= 300; ++size) {
    const KeyedPermutation permutation(size, 42 + size);
    std::vector<bool> seen(size, false);
    for (uint64_t i = 0; i < size; ++i) {
      const uint64_t to = permutation(i);
      ASSERT_LT(to, size);
      ASSERT_FALSE(seen[to]) << "size " << size << ", index " << i;
      seen[to] = true;
    }
  }
}

TEST(KeyedPermutationTest, InverseNamesTheElementOfEveryPlace) {
  for (const uint64_t size : {1, 2, 3, 16, 17, 255, 1000}) {
    const KeyedPermutation permutation(size, 7 + size);
    for (uint64_t i = 0; i < size; ++i) ASSERT_EQ(permutation.InverseOf(permutation(i)), i) << size;
  }
}

TEST(KeyedPermutationTest, DifferentKeysGiveDifferentOrders) {
  const KeyedPermutation a(1000, 1), b(1000, 2);
  int equal = 0;
  for (uint64_t i = 0; i < 1000; ++i) equal += a(i) == b(i);
  EXPECT_LT(equal, 20);
}

TEST(RngTest, StreamsOfDifferentNamesSeedsAndIndicesDiffer) {
  EXPECT_NE(Rng(1, "a").Bits(0), Rng(1, "b").Bits(0));
  EXPECT_NE(Rng(1, "a").Bits(0), Rng(2, "a").Bits(0));
  EXPECT_NE(Rng(1, "a", 0).Bits(0), Rng(1, "a", 1).Bits(0));
  EXPECT_EQ(Rng(1, "a", 3).Bits(7), Rng(1, "a", 3).Bits(7));
}

TEST(RngTest, FilledNormalsAreTheSingleOnes) {
  const Rng rng(7, "normal");
  for (const uint64_t begin : {0, 1, 6, 7}) {
    for (const uint64_t count : {0, 1, 2, 5, 8}) {
      std::vector<float> filled(count + 1, -9.0f);
      rng.FillNormal(begin, count, 0.5, filled.data());
      for (uint64_t i = 0; i < count; ++i) {
        EXPECT_EQ(filled[i], static_cast<float>(0.5 * rng.Normal(begin + i)));
      }
      EXPECT_EQ(filled[count], -9.0f);
    }
  }
}

TEST(RngTest, NormalHasMeanZeroAndVarianceOne) {
  const Rng rng(7, "normal");
  constexpr int kDraws = 200000;
  double sum = 0, squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = rng.Normal(i);
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / kDraws, 0.0, 5.0 / std::sqrt(kDraws));
  EXPECT_NEAR(squares / kDraws, 1.0, 8.0 / std::sqrt(kDraws));
}

}  // namespace
}  // namespace trainwright
