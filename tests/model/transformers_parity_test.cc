// What transformers and PyTorch compute for the fixtures of make_fixtures.py, and what we do.
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "lib/model/hf_folder.h"
#include "lib/model/weights_io.h"
#include "tests/model/families.h"
#include "tests/model/inputs.h"
#include "tests/model/tensor_file.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::kCpu;

class TransformersParityTest : public testing::TestWithParam<const char*> {
 protected:
  std::string folder_ = test::Fixture(std::string("model/fixtures/") + GetParam());
  test::TensorFile expected_{folder_ + "/expected.safetensors"};
  ModelInput input_ = test::OneDocument(expected_["ids"][0]);
};

TEST_P(TransformersParityTest, LogitsAgree) {
  const auto model = LoadHfModel(test::Families(), folder_, Precision::kFp32, kCpu);
  EXPECT_LT(test::MaxDifference(model->Logits(input_), expected_["logits"][0]), 1e-4);
}

TEST_P(TransformersParityTest, LossAndGradientsAgree) {
  const auto model = LoadHfModel(test::Families(), folder_, Precision::kFp32, kCpu);
  const LossSum loss = model->LossAndGradients(input_, 1.0);
  EXPECT_NEAR(loss.loss_nats, expected_["loss_sum"].item<double>(), 1e-5 * loss.loss_nats);
  EXPECT_EQ(loss.num_labels, 95);
  for (const Parameter& parameter : model->parameters().all()) {
    const at::Tensor gradient = AsInFiles(parameter, parameter.gradient);
    EXPECT_LT(test::RelativeDifference(gradient, expected_["gradient." + parameter.name]), 1e-5)
        << parameter.name;
  }
}

// A rounding of bf16 is off by at most 2^-9, of fp16 by 2^-12 of a value; the logits pass some twenty of
// them.
TEST_P(TransformersParityTest, ShortPrecisionsStayCloseToTransformersFp32) {
  for (const auto& [precision, tolerance] :
       {std::pair{Precision::kBf16, 3e-2}, std::pair{Precision::kFp16, 4e-3}}) {
    const auto model = LoadHfModel(test::Families(), folder_, precision, kCpu);
    EXPECT_LT(test::RelativeDifference(model->Logits(input_), expected_["logits"][0]), tolerance)
        << PrecisionName(precision);
  }
}

TEST_P(TransformersParityTest, WrittenAndReadAgainItIsTheSameModel) {
  const auto model = LoadHfModel(test::Families(), folder_, Precision::kFp32, kCpu);
  const test::TemporaryFolder folder;
  TokenizerIdentity tokenizer;
  tokenizer.kind = "bytes";
  WriteHfFolder(folder.path(), *model, tokenizer);
  const auto again = LoadHfModel(test::Families(), folder.path(), Precision::kFp32, kCpu);
  EXPECT_EQ(again->config(), model->config());
  EXPECT_TRUE(at::equal(again->Logits(input_), model->Logits(input_)));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, TransformersParityTest,
                         testing::Values("untied", "tied", "biased", "rope_linear", "rope_dynamic",
                                         "rope_yarn", "rope_yarn_mscale", "rope_llama3", "rope_longrope",
                                         "rope_longrope_short", "mistral", "mistral_trained", "qwen2",
                                         "qwen2_window", "gpt2_tanh", "gpt2_erf", "neox", "neox_sequential",
                                         "neox_yarn", "neox_trained"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace trainwright
