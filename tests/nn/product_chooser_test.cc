// Which kernel computes a product: tried once, or as it was chosen before.
#include "lib/nn/linear/product_chooser.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <stdexcept>
#include <thread>

namespace trainwright {
namespace {

/// A library of three kernels, the second of which is much the fastest and the third one fails.
class ProductChooserTest : public testing::Test {
 protected:
  int64_t CandidateOf(const std::string& product) {
    return chooser_.CandidateOf(product, at::Device(at::kCPU), [this](int64_t candidate) {
      if (candidate > 2) return false;
      ++trials_[candidate];
      if (candidate == 2) throw std::runtime_error("no room");
      std::this_thread::sleep_for(std::chrono::milliseconds(candidate == 0 ? 30 : 2));
      return true;
    });
  }

  ProductChooser chooser_;
  std::map<int64_t, int> trials_;
};

TEST_F(ProductChooserTest, TheFastestOfThoseThatRunIsChosenAndNotTriedAgain) {
  chooser_.set_tries(true);
  EXPECT_EQ(CandidateOf("a"), 1);
  const auto trials = trials_;
  EXPECT_EQ(CandidateOf("a"), 1);
  EXPECT_EQ(trials_, trials);
  EXPECT_EQ(chooser_.choices(), (ProductChoices{{"a", 1}}));
}

TEST_F(ProductChooserTest, UnlessItTriesWhatIsNotChosenIsTheFirst) {
  EXPECT_EQ(CandidateOf("a"), 0);
  EXPECT_TRUE(trials_.empty());
  EXPECT_TRUE(chooser_.choices().empty());
}

TEST_F(ProductChooserTest, WhatWasChosenBeforeIsTakenWithoutATrial) {
  chooser_.set_choices({{"a", 2}});
  chooser_.set_tries(true);
  EXPECT_EQ(CandidateOf("a"), 2);
  EXPECT_TRUE(trials_.empty());
}

TEST_F(ProductChooserTest, ALibraryWithoutAKernelLeavesNoChoice) {
  chooser_.set_tries(true);
  EXPECT_EQ(chooser_.CandidateOf("a", at::Device(at::kCPU), [](int64_t) { return false; }), 0);
  EXPECT_TRUE(chooser_.choices().empty());
}

}  // namespace
}  // namespace trainwright
