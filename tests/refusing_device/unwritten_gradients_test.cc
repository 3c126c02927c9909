// Gradients on a device: nobody zeroes what a product writes, and nobody sees what was there before.
#include <ATen/ops/cat.h>
#include <gtest/gtest.h>

#include <vector>

#include "lib/loading/packed_batch.h"
#include "lib/nn/linear/linear.h"
#include "lib/nn/parameters/flat_parameters.h"
#include "lib/objective/model_input.h"
#include "tests/nn/reference.h"
#include "tests/refusing_device/device_run.h"
#include "tests/support/refusing_device/refusing_device.h"

namespace trainwright {
namespace {

/// Two documents that count upwards.
ModelInput CountingInput(int64_t vocabulary) {
  PackedBatch batch;
  for (const int64_t length : {15, 4}) {
    std::vector<uint32_t> ids;
    for (int64_t i = 0; i < length; ++i) ids.push_back(static_cast<uint32_t>((length + i) % vocabulary));
    batch.AppendSpan(ids, kNoId);
  }
  return ToModelInput(batch);
}

using test::CountsOfDevice;
using test::kRefusingDevice;
using test::RandomTensor;

class UnwrittenGradientsTest : public testing::Test {
 protected:
  UnwrittenGradientsTest() {
    parameters_.Add("first", {8, 6}, true);
    parameters_.Add("second", {8, 6}, true);
    parameters_.Add("norm", {6}, false);
    parameters_.Add("table", {5, 6}, true);
    parameters_.Allocate(test::kFp32, kRefusingDevice);
    parameters_.gradients().fill_(NAN);  // of the step before
    parameters_.ZeroGradients();
  }
  at::Tensor Gradient(size_t index) { return parameters_.Gradient(index).cpu(); }

  FlatParameters parameters_;
};

TEST_F(UnwrittenGradientsTest, AreZeroForWhoeverAsks) {
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(Gradient(i).eq(0).all().item<bool>()) << i;
  parameters_.gradients().fill_(NAN);
  parameters_.ZeroGradients();
  EXPECT_TRUE(parameters_.gradients().cpu().eq(0).all().item<bool>());
  parameters_.gradients().fill_(NAN);
  parameters_.ZeroGradients();
  parameters_.ForEachGradientPart(
      [](int64_t, const at::Tensor& part) { EXPECT_TRUE(part.cpu().eq(0).all().item<bool>()); });
}

TEST_F(UnwrittenGradientsTest, AreWrittenByTheFirstProductAndAddedToByTheNext) {
  const at::Tensor dy = RandomTensor({10, 16}, 1), x = RandomTensor({10, 6}, 2);
  const at::Tensor product = dy.t().matmul(x);
  const Linear linear(&parameters_, {0, 1});
  at::Tensor none;
  for (int pass = 1; pass <= 3; ++pass) {
    linear.Backward(dy.to(kRefusingDevice), x.to(kRefusingDevice), none);
    const at::Tensor both = at::cat({Gradient(0), Gradient(1)});
    EXPECT_LT(test::RelativeDifference(both, product.mul(pass)), 1e-6) << pass;
  }
  EXPECT_TRUE(Gradient(3).eq(0).all().item<bool>());
}

TEST_F(UnwrittenGradientsTest, OfWhichSomeAreWrittenAreAddedTo) {
  parameters_.Gradient(1).fill_(1);
  const GradientTarget both = parameters_.NextGradient(0, 16, 6);
  EXPECT_TRUE(both.accumulate);
  EXPECT_TRUE(both.gradient.cpu().narrow(0, 0, 8).eq(0).all().item<bool>());
  EXPECT_TRUE(both.gradient.cpu().narrow(0, 8, 8).eq(1).all().item<bool>());
}

TEST_F(UnwrittenGradientsTest, OfMatricesAreNotZeroedBefore) {
  test::ResetDeviceCounts();
  parameters_.ZeroGradients();
  EXPECT_FALSE(parameters_.NextGradient(0, 16, 6).accumulate);
  EXPECT_FALSE(parameters_.NextGradient(3, 5, 6).accumulate);
  EXPECT_TRUE(parameters_.NextGradient(3, 5, 6).accumulate);
  EXPECT_EQ(CountsOfDevice().kernels, 2);  // of the norm and of padding, which no product writes
}

TEST_F(UnwrittenGradientsTest, OfAStepAreWhateverTheStepBeforeLeft) {
  const ModelConfig config = test::DeviceModels()[0].config;
  const auto model = MakeModel(test::Families(), config, Precision::kFp32, kRefusingDevice, 11);
  const auto gradients = [&](float before) {
    model->parameters().gradients().fill_(before);
    model->parameters().ZeroGradients();
    model->LossAndGradients(CountingInput(config.vocab_size), 1.0);
    return model->parameters().gradients().cpu();
  };
  const at::Tensor expected = gradients(0);
  EXPECT_GT(expected.abs().max().item<double>(), 0);
  EXPECT_TRUE(gradients(NAN).equal(expected));
}

}  // namespace
}  // namespace trainwright
