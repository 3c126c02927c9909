// The order in which leaves are added up, against a recursion that says it in other words.
#include "lib/dist/tree_sum.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/dist/leaf_tree.h"

namespace trainwright {
namespace {

/// "((0+1)+2)": which parts are added, and in which order.
std::string SlowTree(int64_t first, int64_t parts) {
  if (parts == 1) return std::to_string(first);
  int64_t half = 1;
  while (2 * half < parts) half *= 2;
  return "(" + SlowTree(first, half) + "+" + SlowTree(first + half, parts - half) + ")";
}

TEST(AddAsTree, AddsNeighboursOfEqualSizesFirst) {
  for (int64_t parts = 1; parts <= 33; ++parts) {
    std::vector<std::string> sums;
    for (int64_t i = 0; i < parts; ++i) sums.push_back(std::to_string(i));
    AddAsTree(parts, [&](int64_t left, int64_t right) {
      const auto i = static_cast<size_t>(left), j = static_cast<size_t>(right);
      ASSERT_FALSE(sums[i].empty() || sums[j].empty());
      sums[i] = "(" + sums[i] + "+" + sums[j] + ")";
      sums[j].clear();
    });
    EXPECT_EQ(sums[0], SlowTree(0, parts));
  }
}

constexpr int64_t kElements = 37;

/// Numbers of sizes so different that each order of addition has a sum of its own.
float ValueOf(int64_t leaf, int64_t element) {
  const Rng rng(5, "leaves", static_cast<uint64_t>(leaf));
  const auto at = static_cast<uint64_t>(element);
  return static_cast<float>(rng.Normal(2 * at) * std::exp2(8 * rng.Uniform(1000 + at)));
}

float SlowSum(int64_t first, int64_t leaves, int64_t element) {
  if (leaves == 1) return ValueOf(first, element);
  const float left = SlowSum(first, leaves / 2, element);
  return left + SlowSum(first + leaves / 2, leaves / 2, element);
}

at::Tensor LeafOf(int64_t leaf) {
  at::Tensor values = at::empty({kElements}, at::kFloat);
  for (int64_t i = 0; i < kElements; ++i) values.mutable_data_ptr<float>()[i] = ValueOf(leaf, i);
  return values;
}

TEST(LeafTree, AddsLeavesThatComeOneAfterTheOtherInTheOrderOfTheTree) {
  for (const int64_t leaves : {1, 2, 4, 8, 16, 32}) {
    LeafTree tree(leaves);
    tree.Allocate(LeafOf(0));
    EXPECT_EQ(tree.held_bytes(), LeafTree::BuffersOf(leaves) * kElements * 4);
    for (int step = 0; step < 2; ++step) {  // what a step leaves must not reach the next one
      tree.Clear();
      at::Tensor buffer = at::empty({kElements}, at::kFloat);
      for (int64_t leaf = 0; leaf < leaves; ++leaf) {
        buffer.copy_(LeafOf(leaf));
        if (leaf + 1 < leaves) tree.Add(buffer);
      }
      for (const auto& [begin, end] : {std::pair<int64_t, int64_t>(20, kElements), {0, 20}}) {
        at::Tensor part = buffer.narrow(0, begin, end - begin);
        tree.Complete(begin, part);
      }
      for (int64_t i = 0; i < kElements; ++i) {
        EXPECT_EQ(buffer.const_data_ptr<float>()[i], SlowSum(0, leaves, i)) << leaves << " leaves, " << i;
      }
    }
  }
}

// Shows that the values tell orders apart: else the test above could not fail.
TEST(LeafTree, AnotherOrderHasOtherSums) {
  int64_t different = 0;
  for (int64_t i = 0; i < kElements; ++i) {
    float in_order = 0;
    for (int64_t leaf = 0; leaf < 8; ++leaf) in_order += ValueOf(leaf, i);
    different += in_order != SlowSum(0, 8, i) ? 1 : 0;
  }
  EXPECT_GT(different, kElements / 4);
}

}  // namespace
}  // namespace trainwright
