// What transformers and PyTorch compute for the fixtures of make_fixtures.py, and what we do.
#include <gtest/gtest.h>

#include "lib/model/hf_folder.h"
#include "tests/model/inputs.h"
#include "tests/model/tensor_file.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

const at::Device kCpu(at::kCPU);

class TransformersParityTest : public testing::TestWithParam<const char*> {
 protected:
  std::string folder_ = test::Fixture(std::string("model/fixtures/") + GetParam());
  test::TensorFile expected_{folder_ + "/expected.safetensors"};
  ModelInput input_ = test::OneDocument(expected_["ids"][0]);
};

TEST_P(TransformersParityTest, LogitsAgree) {
  const auto model = LoadHfModel(folder_, Precision::kFp32, kCpu);
  EXPECT_LT(test::MaxDifference(model->Logits(input_), expected_["logits"][0]), 1e-4);
}

TEST_P(TransformersParityTest, LossAndGradientsAgree) {
  const auto model = LoadHfModel(folder_, Precision::kFp32, kCpu);
  const LossSum loss = model->LossAndGradients(input_, 1.0);
  EXPECT_NEAR(loss.loss_nats, expected_["loss_sum"].item<double>(), 1e-5 * loss.loss_nats);
  EXPECT_EQ(loss.num_labels, 95);
  for (const Parameter& parameter : model->parameters().all()) {
    const at::Tensor gradient = parameter.transposed_in_files ? parameter.gradient.t() : parameter.gradient;
    EXPECT_LT(test::RelativeDifference(gradient, expected_["gradient." + parameter.name]), 1e-5)
        << parameter.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, TransformersParityTest,
                         testing::Values("untied", "tied", "gpt2_tanh", "gpt2_erf"));

}  // namespace
}  // namespace trainwright
