// What each code of --attn lets a token see: texts that are embedded as it says, rows that are generated only
// what stands before.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/model/families.h"
#include "tests/model/inputs.h"
#include "tests/model/small_models.h"
#include "tests/objective/grit_texts.h"

namespace trainwright {
namespace {

using test::GritOf;
using test::GritStepOf;
using test::TakePasses;

/// The step with another token in place of the last one of a span.
StepBatches WithAnotherEnd(StepBatches step, size_t span) {
  PackedBatch& batch = step.micro_batches[0];
  auto& token = batch.tokens[static_cast<size_t>(batch.span_starts[span + 1]) - 1];
  token = (token + 1) % test::SmallLlama().vocab_size;
  return step;
}

class GritAttentionTest : public testing::TestWithParam<std::string> {
 protected:
  bool both_ways() const { return GetParam().front() == 'b'; }
  const std::unique_ptr<LanguageModel> model_ = test::LivelyModel(test::SmallLlama(), test::kFp32Numerics);
};

INSTANTIATE_TEST_SUITE_P(Codes, GritAttentionTest, testing::Values("bbcc", "cccc", "bb", "cc"),
                         [](const auto& info) { return info.param; });

TEST_P(GritAttentionTest, TheFirstTokenOfATextSeesItsLastOnlyWhereTheCodeSaysSo) {
  const auto objective =
      GritOf({{"mode", "embedding"}, {"pooling", "cls"}, {"attn", GetParam()}, {"temperature", 0.1}});
  const StepBatches step =
      GritStepOf(*objective, {.vocabulary = test::SmallLlama().vocab_size, .queries = 4}, 4);
  const double before = TakePasses(*objective, model_.get(), step).sums[0];
  const double after = TakePasses(*objective, model_.get(), WithAnotherEnd(step, 0)).sums[0];
  EXPECT_EQ(after != before, both_ways());
}

class GritGenerationTest : public GritAttentionTest {};

INSTANTIATE_TEST_SUITE_P(Codes, GritGenerationTest, testing::Values("bbcc", "cccc"),
                         [](const auto& info) { return info.param; });

TEST_P(GritGenerationTest, GenerationIsCausalBesideTextsOfAnyCode) {
  const auto objective = GritOf({{"mode", "unified"}, {"attn", GetParam()}, {"temperature", 0.1}});
  StepBatches step =
      GritStepOf(*objective, {.vocabulary = test::SmallLlama().vocab_size, .queries = 4, .every_row = 4}, 4);
  // The losses of the labels before the last token of the row, with two different last tokens.
  PackedBatch& batch = step.micro_batches[0];
  batch.labels.back() = batch.labels[batch.labels.size() - 2] = kIgnoreLabel;
  const auto before = TakePasses(*objective, model_.get(), step).sums;
  const auto after =
      TakePasses(*objective, model_.get(), WithAnotherEnd(step, batch.span_starts.size() - 2)).sums;
  EXPECT_GT(before[2], 0);
  EXPECT_EQ(after, before);
}

TEST(GritAttention, EveryBackendOfACpuMakesTheSameGradients) {
  for (const char* code : {"bb", "cc"}) {
    const auto objective = test::GritOf({{"mode", "embedding"}, {"attn", code}, {"temperature", 0.1}});
    const ModelConfig config = test::SmallLlama();
    const StepBatches step =
        test::GritStepOf(*objective, {.vocabulary = config.vocab_size, .queries = 12}, /*chunk=*/4);
    const auto gradients = [&](AttentionBackend backend) {
      LanguageModel model(test::MakeBody(config, {Precision::kFp32, at::kFloat, backend}, test::kCpu, 5));
      return test::TakePasses(*objective, &model, step).gradients;
    };
    EXPECT_LT(
        test::RelativeDifference(gradients(AttentionBackend::kMath), gradients(AttentionBackend::kAuto)),
        1e-5)
        << code;
  }
}

}  // namespace
}  // namespace trainwright
