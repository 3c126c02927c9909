#include "lib/train/start_facts.h"

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/checkpoint_metadata.h"
#include "tests/support/on_ranks.h"
#include "tests/support/support.h"
#include "tests/train/tiny_training.h"

namespace trainwright {
namespace {

using testing::HasSubstr;
using testing::Ne;

std::unique_ptr<LanguageModel> ModelAtStart(const FineTuning& tuning = {}) {
  const TrainPlan plan = test::TinyPlan();
  return MakeModel(test::Families(), test::TinyModel(), plan.precision, at::Device(at::kCPU), plan.seed,
                   AttentionBackend::kAuto, tuning);
}

FineTuning AdaptersBeside(WeightFormat frozen) {
  FineTuning tuning;
  tuning.lora = LoraOptions{.rank = 2, .alpha = 4};
  tuning.frozen_format = frozen;
  return tuning;
}

TEST(StartFactsTest, ChangeWithAWeightWhetherItIsTrainedOrNot) {
  for (const FineTuning& tuning : {FineTuning{}, AdaptersBeside(WeightFormat::kPlain)}) {
    const std::unique_ptr<LanguageModel> model = ModelAtStart(tuning);
    const Facts before = FactsOfWeights(model->parameters());
    EXPECT_EQ(FactsOfWeights(ModelAtStart(tuning)->parameters()), before);
    for (const Parameter& parameter : model->parameters().all()) {
      at::Tensor last = at::Tensor(parameter.value).view({-1})[parameter.size - 1];
      const at::Tensor kept = last.clone();
      last.add_(1);
      EXPECT_THAT(FactsOfWeights(model->parameters()), Ne(before)) << parameter.name;
      last.copy_(kept);
    }
    EXPECT_EQ(FactsOfWeights(model->parameters()), before);
  }
}

TEST(StartFactsTest, ChangeWithAWeightInFourBits) {
  const std::unique_ptr<LanguageModel> model = ModelAtStart(AdaptersBeside(WeightFormat::kNf4));
  FlatParameters& parameters = model->parameters();
  const Facts before = FactsOfWeights(parameters);
  EXPECT_EQ(FactsOfWeights(ModelAtStart(AdaptersBeside(WeightFormat::kNf4))->parameters()), before);
  for (size_t i = 0; i < parameters.all().size(); ++i) {
    if (!parameters.all()[i].quantized()) continue;
    parameters.Assign(i, at::ones(parameters.all()[i].shape));
    EXPECT_THAT(FactsOfWeights(parameters), Ne(before));
    return;
  }
  FAIL() << "no weight is in four bits";
}

TEST(StartFactsTest, ChangeWithEveryPartOfATrainingState) {
  const test::MemoryShardSet set = test::CountingDocuments();
  test::TrainingRun run(set, test::TinyPlan());
  run.trainer.Step();
  const Optimizer& optimizer = run.trainer.optimizer();
  const TrainerState state = run.trainer.state();
  const auto facts = [&](const TrainerState& of) { return FactsOfState(of, optimizer, "not read"); };
  const Facts before = facts(state);
  const auto expect_other = [&](const auto& change) {
    TrainerState changed = state;
    change(&changed);
    EXPECT_THAT(facts(changed), Ne(before));
  };
  expect_other([](TrainerState* changed) { ++changed->step; });
  expect_other([](TrainerState* changed) { ++changed->updates; });
  expect_other([](TrainerState* changed) { ++changed->tokens_seen; });
  expect_other([](TrainerState* changed) { changed->scaler.scale *= 2; });
  expect_other([](TrainerState* changed) { ++changed->data().cursor.sample; });
  expect_other([](TrainerState* changed) { changed->data().bad_chunks.push_back(3); });
  for (const OptimizerState& own : optimizer.States()) {
    at::Tensor last = at::Tensor(own.value).view({-1})[own.value.numel() - 1];
    last.add_(1);
    EXPECT_THAT(facts(state), Ne(before)) << own.name;
    last.sub_(1);
  }
}

TEST(StartFactsTest, OfAShardedStateChangeWithTheFileThatItComesFrom) {
  const test::TemporaryFolder folder;
  const auto write = [&](const std::string& sha256) {
    const nlohmann::json metadata = {{"schema", "trainwright.checkpoint/1"},
                                     {"files", {{kStateFileName, {{"sha256", sha256}}}}}};
    test::WriteFile(folder.path(kCheckpointMetadataFile), metadata.dump());
  };
  const TrainPlan plan = test::TinyPlan();
  const std::unique_ptr<LanguageModel> model = ModelAtStart();
  model->parameters().Shard(ShardLayout(model->parameters().elements(), 0, 2), false);
  const auto optimizer = MakeOptimizer(BuiltInOptimizers(), &model->parameters(), plan.optimizer, plan.seed);
  write("aa");
  const Facts before = FactsOfState({}, *optimizer, folder.path());
  EXPECT_EQ(FactsOfState({}, *optimizer, folder.path()), before);
  write("bb");
  EXPECT_THAT(FactsOfState({}, *optimizer, folder.path()), Ne(before));
}

TEST(StartFactsTest, TheRankThatBeginsWithOtherWeightsIsNamed) {
  const auto thrown = test::OnRanks(3, [](World* world) {
    const std::unique_ptr<LanguageModel> model = ModelAtStart();
    if (world->rank() == 2) model->parameters().values()[0].add_(1);
    std::optional<Error> error;
    try {
      RequireSameStart(world, FactsOfWeights(model->parameters()));
    } catch (const Error& caught) {
      error = caught;
    }
    return error;
  });
  for (const auto& error : thrown) {
    ASSERT_TRUE(error);
    EXPECT_THAT(error->what(), HasSubstr("rank 2"));
    EXPECT_THAT(error->what(), HasSubstr("weights at the start"));
  }
  EXPECT_EQ(thrown[2]->code(), ErrorCode::kUsage);
  for (const size_t other : {0, 1}) EXPECT_EQ(thrown[other]->code(), ErrorCode::kIo);
}

}  // namespace
}  // namespace trainwright
