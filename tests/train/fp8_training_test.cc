// Training with GEMMs in fp8 on a CPU, which rounds as a GPU would.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "lib/train/trainer.h"
#include "tests/model/families.h"
#include "tests/support/memory_shard_set.h"
#include "tests/train/tiny_training.h"

namespace trainwright {
namespace {

/// The loss of each step, and the last weights.
struct Curve {
  std::vector<double> losses;
  at::Tensor weights;
};

Curve Train(Fp8Parts parts, int steps, bool adapters = false) {
  const test::MemoryShardSet set = test::CountingDocuments();
  TrainPlan plan = test::TinyPlan(Precision::kBf16);
  plan.fp8 = parts;
  if (adapters) plan.tuning.lora = LoraOptions{.rank = 2, .alpha = 4};
  ComputeKinds kinds;
  kinds.fp8 = parts;
  const auto model = MakeModel(test::Families(), test::TinyModel(), plan.precision, at::Device(at::kCPU),
                               plan.seed, kinds, plan.tuning);
  SampleStream stream(&set, plan.stream_options());
  Trainer trainer(test::PartsOf(model.get(), &stream, plan), plan, at::Device(at::kCPU));
  Curve curve;
  for (int step = 0; step < steps; ++step) curve.losses.push_back(trainer.Step().loss_nats);
  curve.weights = model->parameters().values().clone();
  return curve;
}

TEST(Fp8TrainingTest, LearnsWhatBf16LearnsWithinATenthOfANat) {
  constexpr int kSteps = 60;
  const Curve bf16 = Train({}, kSteps);
  ASSERT_LT(bf16.losses.back(), 0.5 * bf16.losses.front()) << "learns nothing that could be compared";
  for (const Fp8Parts parts :
       {Fp8Parts{.mlp = true}, Fp8Parts{.head = true}, Fp8Parts{.mlp = true, .head = true}}) {
    SCOPED_TRACE(Fp8PartsName(parts));
    const Curve fp8 = Train(parts, kSteps);
    for (int step = 0; step < kSteps; ++step) {
      EXPECT_NEAR(fp8.losses[step], bf16.losses[step], 0.1) << "step " << step;
    }
    EXPECT_NE(fp8.losses, bf16.losses);
    EXPECT_FALSE(fp8.weights.equal(bf16.weights));
  }
}

TEST(Fp8TrainingTest, EachPartChangesTheBitsByItselfAndTheSameStepsAgainAreTheSameBits) {
  constexpr int kSteps = 3;
  const Curve mlp = Train({.mlp = true}, kSteps), head = Train({.head = true}, kSteps),
              both = Train({.mlp = true, .head = true}, kSteps),
              again = Train({.mlp = true, .head = true}, kSteps);
  EXPECT_FALSE(both.weights.equal(mlp.weights));
  EXPECT_FALSE(both.weights.equal(head.weights));
  EXPECT_FALSE(mlp.weights.equal(head.weights));
  EXPECT_TRUE(both.weights.equal(again.weights));
  EXPECT_EQ(both.losses, again.losses);
}

TEST(Fp8TrainingTest, AdaptersAreTrainedOverABaseInFp8) {
  const Curve bf16 = Train({}, 5, /*adapters=*/true), fp8 = Train({.mlp = true}, 5, /*adapters=*/true);
  for (size_t step = 0; step < 5; ++step) EXPECT_NEAR(fp8.losses[step], bf16.losses[step], 0.05) << step;
  EXPECT_FALSE(fp8.weights.equal(bf16.weights));
}

}  // namespace
}  // namespace trainwright
