// From the times of kernels to the choice, and its stored form.
#include "lib/spec/product_choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "lib/base/error.h"

namespace trainwright {
namespace {

constexpr double kFailed = std::numeric_limits<double>::infinity();

TEST(FastestCandidateTest, TheFastestIsChosen) {
  EXPECT_EQ(FastestCandidate({3e-3, 2e-3, 1e-3, 4e-3}), 2);
  EXPECT_EQ(FastestCandidate({1e-3, 2e-3}), 0);
  EXPECT_EQ(FastestCandidate({5e-3}), 0);
}

TEST(FastestCandidateTest, WhatNoiseMayMakeOfNothingIsNoReasonToLeaveTheFirst) {
  EXPECT_EQ(FastestCandidate({1.00e-3, 0.99e-3}), 0);
  EXPECT_EQ(FastestCandidate({1.00e-3, 0.97e-3}), 1);
}

TEST(FastestCandidateTest, OfEquallyFastOnesTheFirstIsChosen) {
  EXPECT_EQ(FastestCandidate({2e-3, 1e-3, 1e-3}), 1);
}

TEST(FastestCandidateTest, WhatFailedIsNotChosenUnlessAllDid) {
  EXPECT_EQ(FastestCandidate({kFailed, 2e-3, kFailed}), 1);
  EXPECT_EQ(FastestCandidate({2e-3, kFailed}), 0);
  EXPECT_EQ(FastestCandidate({kFailed, kFailed}), 0);
}

TEST(ProductChoicesTest, TheStoredFormReadsBack) {
  const ProductChoices choices = {{"linear_gradients bf16 65536x768x3072", 3},
                                  {"linear_with_bias fp32 8x16x24", 0}};
  EXPECT_EQ(DecodeProductChoices(EncodeProductChoices(choices), "file"), choices);
  EXPECT_EQ(DecodeProductChoices(EncodeProductChoices({}), "file"), ProductChoices());
}

TEST(ProductChoicesTest, TheStoredFormIsThisText) {
  EXPECT_EQ(EncodeProductChoices({{"linear_with_gelu bf16 64x32x16", 2}}),
            "{\n  \"schema\": \"trainwright.product_choices/1\",\n  \"candidates\": {\n"
            "    \"linear_with_gelu bf16 64x32x16\": 2\n  }\n}\n");
}

TEST(ProductChoicesTest, WhatIsNoSuchTextIsRefusedByItsPlace) {
  for (const char* text :
       {"", "{", "[]", "{\"schema\": \"trainwright.product_choices/2\", \"candidates\": {}}",
        "{\"schema\": \"trainwright.product_choices/1\"}",
        "{\"schema\": \"trainwright.product_choices/1\", \"candidates\": {\"a\": -1}}",
        "{\"schema\": \"trainwright.product_choices/1\", \"candidates\": {\"a\": \"1\"}}"}) {
    try {
      DecodeProductChoices(text, "run/product_choices.json");
      ADD_FAILURE() << "took " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadInput);
      EXPECT_EQ(error.object(), "run/product_choices.json");
    }
  }
}

}  // namespace
}  // namespace trainwright
