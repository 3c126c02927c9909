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
  stack->Push({Numbers(1000, at::kFloat)}, 0);
  stack->Clear();
  const std::vector<at::Tensor> tensors = {Numbers(7, at::kFloat), Numbers(5000, at::kBFloat16),
                                           Numbers(24, at::kHalf).view({4, 6}), Numbers(0, at::kFloat)};
  for (int turn = 0; turn < 2; ++turn) {
    for (const at::Tensor& tensor : tensors) {
      at::Tensor passing = tensor.clone();
      stack->Push({passing}, 0);
      stack->Await(0);
      passing.zero_();
    }
    for (size_t i = tensors.size(); i-- > 0;) {
      at::Tensor back = at::empty_like(tensors[i]);
      stack->Pop({back}, 0);
      stack->Await(0);
      EXPECT_TRUE(at::equal(back, tensors[i])) << i;
    }
  }
  EXPECT_EQ(stack->counts().out_bytes, 4000 + 2 * (28 + 10000 + 48));
  EXPECT_EQ(stack->counts().in_bytes, 2 * (28 + 10000 + 48));
}

TEST_P(OffloadStackTest, LanesTakeTurnsAndTensorsOfOneCallComeBackTogether) {
  const auto stack = MakeOffloadStack(device_, folder_.path());
  constexpr int64_t kTurns = 5;
  std::vector<std::vector<at::Tensor>> lanes;
  for (int64_t lane = 0; lane < stack->lanes(); ++lane) {
    lanes.push_back({Numbers(300, at::kFloat), Numbers(40, at::kBFloat16)});
  }
  const auto lane_of = [&](int64_t turn) { return turn % stack->lanes(); };
  for (int64_t turn = 0; turn < kTurns; ++turn) {
    const std::vector<at::Tensor>& own = lanes[static_cast<size_t>(lane_of(turn))];
    stack->Await(lane_of(turn));
    for (const at::Tensor& tensor : own) tensor.fill_(turn);
    stack->Push(own, lane_of(turn));
  }
  for (int64_t turn = kTurns; turn-- > 0;) {
    const std::vector<at::Tensor>& own = lanes[static_cast<size_t>(lane_of(turn))];
    stack->Pop(own, lane_of(turn));
    stack->Await(lane_of(turn));
    for (const at::Tensor& tensor : own) {
      EXPECT_TRUE(tensor.cpu().to(at::kFloat).eq(static_cast<float>(turn)).all().item<bool>()) << turn;
    }
  }
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
