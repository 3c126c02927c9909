// The generative loss against loops over the logits, in double.
#include "lib/objective/grit_generative.h"

#include <ATen/ops/log_softmax.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/model/inputs.h"
#include "tests/model/small_models.h"
#include "tests/objective/grit_texts.h"

namespace trainwright {
namespace {

using test::GritOf;
using test::GritStepOf;
using test::GritStepShape;
using test::StepMade;
using test::TakePasses;

constexpr int64_t kRows = 12;
constexpr double kFactor = 0.5;

GritStepShape Rows() {
  return {.vocabulary = test::SmallLlama().vocab_size, .queries = kRows, .records = false};
}

/// The losses of a row's labels, in nats.
std::vector<double> LossesOfRow(LanguageModel* model, const PackedBatch& row) {
  const ModelInput input = ToModelInput(row);
  const at::Tensor log_p = at::log_softmax(model->Logits(input).to(at::kDouble), 1);
  std::vector<double> losses;
  for (int64_t i = 0; i < input.labels_n.numel(); ++i) {
    const auto label = input.labels_n[i].item<int64_t>();
    if (label >= 0) losses.push_back(-log_p[i][label].item<double>());
  }
  return losses;
}

double SumOf(const std::vector<double>& losses) {
  double sum = 0;
  for (const double loss : losses) sum += loss;
  return sum;
}

struct LossCase {
  std::string loss, mean;
};

void PrintTo(const LossCase& one, std::ostream* out) {
  *out << one.loss << " " << one.mean;
}

class GenerativeLossTest : public testing::TestWithParam<LossCase> {
 protected:
  OwnOptions own(const std::string& mode = "generative") const {
    return {{"mode", mode},
            {"gen_loss", GetParam().loss},
            {"gen_mean", GetParam().mean},
            {"gen_loss_factor", kFactor}};
  }
  /// The loss of the step by its definition.
  double DenseLoss(LanguageModel* model, int64_t chunk) const {
    double sum = 0, sum_of_means = 0, sum_of_chunk_means = 0, labels = 0, chunks = 0;
    for (int64_t begin = 0; begin < kRows; begin += chunk) {
      double chunk_sum = 0, chunk_labels = 0;
      for (int64_t row = begin; row < std::min(begin + chunk, kRows); ++row) {
        const std::vector<double> losses = LossesOfRow(model, test::GritBatchOf(Rows(), row, 1));
        const auto count = static_cast<double>(losses.size());
        chunk_sum += SumOf(losses);
        chunk_labels += count;
        sum_of_means += SumOf(losses) / count;
      }
      sum += chunk_sum;
      labels += chunk_labels;
      sum_of_chunk_means += chunk_sum / chunk_labels;
      ++chunks;
    }
    if (GetParam().loss == "token") return kFactor * sum / static_cast<double>(kRows);
    if (GetParam().loss == "sample") return kFactor * sum_of_means / static_cast<double>(kRows);
    return kFactor * (GetParam().mean == "step" ? sum / labels : sum_of_chunk_means / chunks);
  }
  std::unique_ptr<LanguageModel> Model() const {
    return test::LivelyModel(test::SmallLlama(), test::kFp32Numerics);
  }
};

INSTANTIATE_TEST_SUITE_P(All, GenerativeLossTest,
                         testing::Values(LossCase{"mixed", "step"}, LossCase{"mixed", "micro-batch"},
                                         LossCase{"token", "step"}, LossCase{"sample", "step"}));

TEST_P(GenerativeLossTest, TheLossEqualsTheFormula) {
  const auto objective = GritOf(own());
  const auto model = Model();
  for (const int64_t chunk : {kRows, int64_t{5}}) {
    const StepBatches step = GritStepOf(*objective, Rows(), chunk);
    const StepMade made = TakePasses(*objective, model.get(), step);
    const double expected = DenseLoss(model.get(), chunk);
    EXPECT_NEAR(made.sums[0] / static_cast<double>(step.denominators[0]), expected, 1e-5 * expected) << chunk;
  }
}

TEST_P(GenerativeLossTest, TheGradientIsTheSlopeOfTheLoss) {
  const auto objective = GritOf(own());
  const auto model =
      std::make_unique<LanguageModel>(test::MakeBody(test::SmallLlama(), test::kFp32Numerics, test::kCpu, 5));
  const at::Tensor gradients =
      TakePasses(*objective, model.get(), GritStepOf(*objective, Rows(), 5)).gradients;
  const double expected = gradients.norm().item<double>();
  const at::Tensor direction = gradients.div(expected), before = model->parameters().values().clone();
  constexpr double kStep = 1e-2;
  const auto loss_at = [&](double distance) {
    model->parameters().values().copy_(before).add_(direction, distance);
    model->parameters().RefreshCompute();
    return DenseLoss(model.get(), 5);
  };
  const double slope = (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep);
  EXPECT_NEAR(slope, expected, 1e-2 * expected);
}

TEST_P(GenerativeLossTest, UnifiedTrainingAddsIt) {
  const GritStepShape both = {.vocabulary = test::SmallLlama().vocab_size, .queries = kRows, .every_row = 2};
  const auto unified = GritOf(own("unified")), embedding = GritOf(own("embedding"));
  const auto model = Model();
  const StepBatches step = GritStepOf(*unified, both, 4);
  StepBatches texts = step;
  texts.denominators.pop_back();
  const StepMade of_both = TakePasses(*unified, model.get(), step),
                 of_texts = TakePasses(*embedding, model.get(), texts);
  EXPECT_EQ(of_both.sums[0], of_texts.sums[0]);
  EXPECT_EQ(of_both.sums[1], of_texts.sums[1]);
  const double contrastive = of_both.sums[0] / static_cast<double>(step.denominators[0]),
               generative = of_both.sums[2] / static_cast<double>(step.denominators[2]);
  EXPECT_EQ(unified->Loss({contrastive, 0.5, generative}), contrastive + generative);
  EXPECT_GT(generative, 0);
}

TEST(GritGenerative, TheSumOfBothGradientsIsThatOfUnifiedTraining) {
  const GritStepShape both = {.vocabulary = test::SmallLlama().vocab_size, .queries = kRows, .every_row = 2};
  const auto gradients_of = [&](const char* mode, LanguageModel* model) {
    const auto objective = GritOf({{"mode", mode}});
    return TakePasses(*objective, model, GritStepOf(*objective, both, 4)).gradients;
  };
  const auto model = test::LivelyModel(test::SmallLlama(), test::kFp32Numerics);
  const at::Tensor sum = gradients_of("embedding", model.get()).add(gradients_of("generative", model.get()));
  EXPECT_LT(test::RelativeDifference(gradients_of("unified", model.get()), sum), 1e-5);
}

TEST(GritGenerative, ATokenToPredictNeverSeesWhatFollows) {
  const auto objective = GritOf({{"mode", "generative"}});
  const auto model = test::LivelyModel(test::SmallLlama(), test::kFp32Numerics);
  StepBatches step = GritStepOf(
      *objective, {.vocabulary = test::SmallLlama().vocab_size, .queries = 1, .records = false}, 1);
  PackedBatch& row = step.micro_batches[0];
  // The loss of the labels before the last token, with two different last tokens.
  row.labels.back() = row.labels[row.labels.size() - 2] = kIgnoreLabel;
  const StepMade before = TakePasses(*objective, model.get(), step);
  row.tokens.back() = (row.tokens.back() + 1) % test::SmallLlama().vocab_size;
  EXPECT_EQ(TakePasses(*objective, model.get(), step).sums, before.sums);
}

}  // namespace
}  // namespace trainwright
