// What ranks agree on of kernels that each has tried for itself.
#include "lib/train/product_choice.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "tests/support/on_ranks.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

constexpr int64_t kWorld = 3;

ProductChoices ChoiceOf(int64_t candidate) {
  return {{"matmul bf16 tn 8x8x8", candidate}};
}

TEST(AgreeOnProductsTest, AllRanksTakeTheChoicesOfTheWritersTrial) {
  const auto agreed = test::OnRanks(kWorld, [](World* world) {
    return AgreeOnProducts(world, {}, [world] { return ChoiceOf(world->rank() + 1); });
  });
  for (const AgreedProducts& of_rank : agreed) {
    EXPECT_EQ(of_rank.choices, ChoiceOf(1));
    EXPECT_TRUE(of_rank.are_new);
  }
}

TEST(AgreeOnProductsTest, WhatTheWriterHasFromBeforeIsNotTried) {
  const auto agreed = test::OnRanks(kWorld, [](World* world) {
    return AgreeOnProducts(
        world, world->is_writer() ? ChoiceOf(4) : ProductChoices(),
        []() -> ProductChoices { throw Error(ErrorCode::kInternal, "trial", "was made"); });
  });
  for (const AgreedProducts& of_rank : agreed) {
    EXPECT_EQ(of_rank.choices, ChoiceOf(4));
    EXPECT_FALSE(of_rank.are_new);
  }
}

TEST(AgreeOnProductsTest, ATrialThatFailsOnOneRankIsNamedByTheOthers) {
  const auto messages = test::OnRanks(kWorld, [](World* world) {
    return test::MessageOf([world] {
      AgreeOnProducts(world, {}, [world] {
        if (world->rank() == 1) throw Error(ErrorCode::kDevice, "cuda", "is lost");
        return ChoiceOf(2);
      });
    });
  });
  const std::string named = "rank 1: failed: cuda: is lost | ";
  EXPECT_EQ(messages, (std::vector<std::string>{named, "cuda: is lost | ", named}));
}

}  // namespace
}  // namespace trainwright
