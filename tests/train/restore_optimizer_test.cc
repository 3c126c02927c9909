#include "lib/train/restore_optimizer.h"

#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/nn/parameters/flat_parameters.h"
#include "lib/optim/optimizer_registry.h"
#include "lib/spec/built_in_optimizers.h"
#include "lib/train/trainer.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// As a version kept it that gave Muon's matrices to AdamW.
TEST(RestoreOptimizerTest, AStateOfOtherParametersIsRefusedWithWhatToDo) {
  FlatParameters parameters;
  parameters.Add("model.embed_tokens.weight", {12, 8}, true);
  parameters.Add("model.layers.0.mlp.up_proj.weight", {16, 16}, true);
  parameters.Allocate({Precision::kFp32, at::kFloat}, at::Device(at::kCPU));
  const OptimizerRegistry optimizers = BuiltInOptimizers();
  const auto optimizer =
      MakeOptimizer(optimizers, &parameters, optimizers.Find("muon").description.defaults, /*seed=*/1);
  TrainerState state;
  state.optimizer = optimizer->States();
  EXPECT_EQ(test::MessageOf([&] { RestoreOptimizer(state, optimizer.get()); }), "");
  for (OptimizerState& own : state.optimizer) {
    if (!own.by_element) own.value = at::zeros({parameters.elements()});
  }
  EXPECT_THAT(test::MessageOf([&] { RestoreOptimizer(state, optimizer.get()); }),
              AllOf(HasSubstr("'exp_avg_sq'"), HasSubstr("--init")));
}

}  // namespace
}  // namespace trainwright
