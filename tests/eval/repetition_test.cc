#include "lib/eval/repetition.h"

#include <ATen/ops/gather.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <gtest/gtest.h>

#include <vector>

namespace trainwright {
namespace {

TEST(RepetitionTest, EqualsGatherAndScatterAsTransformersHasIt) {
  std::vector<float> logits;
  for (int i = 0; i < 300; ++i) logits.push_back(static_cast<float>((i * 7919) % 300) / 10 - 15);
  const std::vector<uint32_t> seen = {3, 299, 0, 3, 17, 120, 3};
  for (const double penalty : {1.3, 0.7, 1.0}) {
    const at::Tensor ids = at::tensor(std::vector<int64_t>(seen.begin(), seen.end()));
    const at::Tensor logits_v = at::tensor(logits);
    const at::Tensor score = at::gather(logits_v, 0, ids);
    const at::Tensor expected_v =
        logits_v.scatter(0, ids, at::where(score.lt(0), score.mul(penalty), score.div(penalty)));
    std::vector<float> penalized = logits;
    PenalizeRepetition(seen, penalty, penalized);
    for (int64_t i = 0; i < 300; ++i) {
      EXPECT_EQ(penalized[static_cast<size_t>(i)], expected_v[i].item<float>())
          << "id " << i << ", penalty " << penalty;
    }
  }
}

}  // namespace
}  // namespace trainwright
