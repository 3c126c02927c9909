#include "lib/device/offload_stack.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <vector>

#include "lib/base/error.h"
#include "lib/device/cuda_backend.h"
#include "tests/support/support.h"
#include "tests/support/tested_device.h"

namespace trainwright {
namespace {

class OffloadStackTest : public testing::TestWithParam<at::DeviceType> {
 protected:
  void SetUp() override {
    if (device_.is_cuda() && ProcessCudaBackend().plugin == nullptr) {
      GTEST_SKIP() << "NOT RUN: " << ProcessCudaBackend().problem;
    }
  }
  at::Tensor Numbers(int64_t size, at::ScalarType type) const {
    return at::arange(size, at::kFloat).to(type).to(device_);
  }
  const at::Device device_ = at::Device(GetParam());
  test::TemporaryFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Devices, OffloadStackTest, testing::Values(at::kCPU, test::kTestedDevice),
                         [](const auto& info) { return test::NameOfDevice(info.param); });

TEST_P(OffloadStackTest, TensorsComeBackInReverseOrderAlsoAfterOthersWereForgotten) {
  const auto stack = MakeOffloadStack(device_, folder_.path());
  stack->Push(Numbers(1000, at::kFloat));
  stack->Clear();
  const std::vector<at::Tensor> tensors = {Numbers(7, at::kFloat), Numbers(5000, at::kBFloat16),
                                           Numbers(24, at::kHalf).view({4, 6}), Numbers(0, at::kFloat)};
  for (int turn = 0; turn < 2; ++turn) {
    for (const at::Tensor& tensor : tensors) {
      at::Tensor passing = tensor.clone();
      stack->Push(passing);
      passing.zero_();
    }
    for (size_t i = tensors.size(); i-- > 0;) {
      at::Tensor back = at::empty_like(tensors[i]);
      stack->Pop(back);
      EXPECT_TRUE(at::equal(back, tensors[i])) << i;
    }
  }
  EXPECT_EQ(stack->counts().out_bytes, 4000 + 2 * (28 + 10000 + 48));
  EXPECT_EQ(stack->counts().in_bytes, 2 * (28 + 10000 + 48));
}

TEST(OffloadFolderTest, AFolderThatCannotHaveAFileIsNamed) {
  const test::TemporaryFolder folder;
  try {
    MakeOffloadStack(at::Device(at::kCPU), folder.path("none"));
    ADD_FAILURE() << "took it";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_EQ(error.object(), folder.path("none"));
  }
}

}  // namespace
}  // namespace trainwright
