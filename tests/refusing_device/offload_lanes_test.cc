// What is offloaded moves beside what the device computes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "lib/device/offload_stack.h"
#include "lib/nn/parameters/gradient_buffer.h"
#include "tests/model/families.h"
#include "tests/model/inputs.h"
#include "tests/model/small_models.h"
#include "tests/support/refusing_device/refusing_device.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CountsOfDevice;
using test::kRefusingDevice;

/// Another stack's, and the kernels that ran while copies of a lane were on their way.
class WatchedStack final : public OffloadStack {
 public:
  int64_t lanes() const override { return stack_->lanes(); }
  void Push(const std::vector<at::Tensor>& tensors, int64_t lane) override {
    stack_->Push(tensors, lane);
    if (--pushes_before_failure == 0) throw std::runtime_error("no room");
    Begin(lane);
  }
  void Pop(const std::vector<at::Tensor>& tensors, int64_t lane) override {
    ++pops;
    stack_->Pop(tensors, lane);
    Begin(lane);
  }
  void Await(int64_t lane) override {
    int64_t& began = began_.at(static_cast<size_t>(lane));
    if (began >= 0) kernels_beside.push_back(CountsOfDevice().kernels - began);
    began = -1;
    stack_->Await(lane);
  }
  void Clear() override { stack_->Clear(); }

  int64_t pops = 0, pushes_before_failure = 0;
  std::vector<int64_t> kernels_beside;

 private:
  void Begin(int64_t lane) { began_.at(static_cast<size_t>(lane)) = CountsOfDevice().kernels; }

  const std::unique_ptr<OffloadStack> stack_ = MakeOffloadStack(kRefusingDevice, "");
  std::vector<int64_t> began_ = std::vector<int64_t>(2, -1);
};

TEST(OffloadLanesTest, WhileCopiesOfALayerPassAnotherLayerIsComputed) {
  test::ResetDeviceCounts();
  ModelConfig config = test::SmallLlama();
  config.num_layers = 6;
  const auto model = std::make_unique<LanguageModel>(
      test::MakeBody(config, {Precision::kBf16, at::kBFloat16}, kRefusingDevice, 5));
  WatchedStack stack;
  model->set_offload(&stack);
  model->LossAndGradients(test::RandomInput(config, {20, 11}), 1.0);
  EXPECT_EQ(stack.pops, config.num_layers - stack.lanes());
  // Out before a lane's next turn, and in before the layer's backward pass.
  ASSERT_EQ(stack.kernels_beside.size(), 2u * 4);
  EXPECT_THAT(stack.kernels_beside, testing::Each(testing::Ge(10)));
  EXPECT_THAT(CountsOfDevice().violations, testing::IsEmpty());
}

TEST(OffloadLanesTest, APassThatEndedWhileCopiesWereOnTheirWayLeavesNothingForTheNext) {
  test::ResetDeviceCounts();
  ModelConfig config = test::SmallLlama();
  config.num_layers = 6;
  const ModelInput input = test::RandomInput(config, {20, 11});
  const auto gradients = [&](bool disturbed) {
    const auto model = std::make_unique<LanguageModel>(
        test::MakeBody(config, {Precision::kBf16, at::kBFloat16}, kRefusingDevice, 5));
    WatchedStack stack;
    model->set_offload(&stack);
    if (disturbed) {
      stack.pushes_before_failure = 3;
      EXPECT_THROW(model->LossAndGradients(test::RandomInput(config, {9, 22}, 1), 1.0), std::runtime_error);
      model->parameters().ZeroGradients();
    }
    model->LossAndGradients(input, 1.0);
    return model->parameters().gradients().cpu();
  };
  EXPECT_TRUE(gradients(true).equal(gradients(false)));
  EXPECT_THAT(CountsOfDevice().violations, testing::IsEmpty());
}

TEST(OffloadLanesTest, GradientsInTwoWindowsAreThoseOfAPlainArrayAfterRandomUse) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  test::ResetDeviceCounts();
  const std::vector<GradientBuffer::Segment> segments = {{0, 64}, {64, 80}, {80, 176}, {176, 192}};
  GradientBuffer buffer;
  buffer.SetLayout(segments, at::TensorOptions().device(kRefusingDevice));
  buffer.Offload(MakeOffloadStore(kRefusingDevice, "", buffer.size_bytes()));
  EXPECT_EQ(buffer.memory_bytes(), 2 * 96 * 4);
  const Rng rng(test::TestSeed(), "windows");
  std::vector<float> expected(192, 0.0f);
  uint64_t drawn = 0;
  const auto draw = [&](uint64_t below) { return rng.Bits(drawn++) % below; };
  const auto add = [&](size_t index) {
    const GradientBuffer::Segment& segment = segments[index];
    const auto added = static_cast<float>(draw(100));
    buffer.View(segment.begin, segment.end - segment.begin).add_(added);
    for (int64_t i = segment.begin; i < segment.end; ++i) expected[static_cast<size_t>(i)] += added;
  };
  for (int turn = 0; turn < 60; ++turn) {
    if (draw(3) == 0) {
      add(draw(segments.size()));
    } else {  // as a backward pass
      for (size_t i = segments.size(); i-- > 0;) add(i);
    }
    if (turn % 7 == 6) {
      std::vector<float> all;
      buffer.ForEachPart([&](int64_t, const at::Tensor& part) {
        const at::Tensor host = part.cpu();
        all.insert(all.end(), host.const_data_ptr<float>(), host.const_data_ptr<float>() + host.numel());
      });
      for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], expected[i]) << turn << " element " << i;
    }
    if (turn % 20 == 19) {
      buffer.Zero();
      expected.assign(192, 0.0f);
    }
  }
  EXPECT_THAT(CountsOfDevice().violations, testing::IsEmpty());
}

}  // namespace
}  // namespace trainwright
