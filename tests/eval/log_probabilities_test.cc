#include "lib/eval/log_probabilities.h"

#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <vector>

namespace trainwright {
namespace {

TEST(LogProbabilitiesTest, AreTorchsLogSoftmaxInDouble) {
  std::vector<float> logits;
  for (int i = 0; i < 1000; ++i) logits.push_back(static_cast<float>((i * 7919) % 1000) / 60 - 8);
  const at::Tensor expected_v = at::log_softmax(at::tensor(logits, at::kDouble), 0);
  const ChosenLogProbabilities result = LogProbabilitiesOf(logits.data(), 1000, 17, 5);
  EXPECT_NEAR(result.chosen, expected_v[17].item<double>(), 1e-12);
  const auto [values, ids] = expected_v.topk(5);
  ASSERT_EQ(result.most.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(result.most[i].id, ids[static_cast<int64_t>(i)].item<int64_t>());
    EXPECT_NEAR(result.most[i].log_probability, values[static_cast<int64_t>(i)].item<double>(), 1e-12);
  }
}

TEST(LogProbabilitiesTest, OfEqualLogitsTheSmallerIdComesFirst) {
  const std::vector<float> logits = {0, 1, 1, 0, 1};
  const ChosenLogProbabilities result = LogProbabilitiesOf(logits.data(), 5, 0, 9);
  ASSERT_EQ(result.most.size(), 5u);
  const uint32_t order[] = {1, 2, 4, 0, 3};
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(result.most[i].id, order[i]);
}

}  // namespace
}  // namespace trainwright
