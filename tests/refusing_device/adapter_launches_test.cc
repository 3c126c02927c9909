// How many kernels adapters and 4-bit weights cost on a device.
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "lib/nn/linear/lora.h"
#include "lib/nn/linear/nf4.h"
#include "lib/nn/parameters/flat_parameters.h"
#include "tests/nn/reference.h"
#include "tests/support/refusing_device/refusing_device.h"

namespace trainwright {
namespace {

using test::kRefusingDevice;
using test::RandomTensor;

/// Three matrices that share an input, each with an adapter, in bf16.
class AdapterLaunchesTest : public testing::Test {
 protected:
  static constexpr int64_t kTokens = 8, kIn = 16, kRows = 8;
  void SetUp() override { Make({.rank = 2, .alpha = 4, .targets = "attention"}); }
  void Make(const LoraOptions& options) {
    for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
      parameters_.Add(std::string("model.layers.0.self_attn.") + name + ".weight", {kRows, kIn}, true);
    }
    parameters_.set_adapters(
        std::make_shared<LoraAdapters>(options, LoraBlocks{.attention = {"self_attn"}}, &parameters_));
    parameters_.Allocate({Precision::kBf16, at::kBFloat16}, kRefusingDevice);
    parameters_.adapters()->Initialize(1, &parameters_);
    for (int64_t i = 0; i < 3; ++i) {
      columns_.push_back({.module = static_cast<size_t>(i), .begin = i * kRows, .size = kRows});
    }
  }
  static at::Tensor Stored(int64_t columns, uint64_t stream, int64_t rows = kTokens) {
    return RandomTensor({rows, columns}, stream).to(at::kBFloat16).to(kRefusingDevice);
  }
  /// Kernels of what it runs, once its buffers are there.
  template <typename Run>
  static int64_t KernelsOf(const Run& run) {
    run();
    test::ResetDeviceCounts();
    run();
    return test::CountsOfDevice().kernels;
  }

  FlatParameters parameters_;
  std::vector<LoraColumns> columns_;
};

TEST_F(AdapterLaunchesTest, ForwardIsAGemmForAllInputsAndOneForEachOutput) {
  const at::Tensor x = Stored(kIn, 1);
  at::Tensor y = Stored(3 * kRows, 2);
  EXPECT_EQ(KernelsOf([&] { parameters_.adapters()->Forward(parameters_, columns_, x, y); }), 1 + 3);
}

TEST_F(AdapterLaunchesTest, BackwardIsThreeGemmsForAllInputsAndTwoForEachOutput) {
  const at::Tensor x = Stored(kIn, 1), dy = Stored(3 * kRows, 2);
  at::Tensor d_x = Stored(kIn, 3);
  // A x again, the gradient of A, d_x; for each the gradient of B and that of A x.
  EXPECT_EQ(KernelsOf([&] { parameters_.adapters()->Backward(parameters_, columns_, dy, x, d_x); }),
            3 + 2 * 3);
}

/// With magnitudes.
class DoraLaunchesTest : public AdapterLaunchesTest {
 protected:
  void SetUp() override { Make({.rank = 2, .alpha = 4, .targets = "attention", .dora = true}); }
};

TEST_F(DoraLaunchesTest, TheScalesAreOneOperatorBackwardForEachOutputHoweverManyRowsThereAre) {
  for (const int64_t rows : {kTokens, int64_t{2500}}) {
    const at::Tensor dy = Stored(3 * kRows, 1, rows);
    at::Tensor outputs = Stored(3 * kRows, 2, rows);
    parameters_.ZeroGradients();
    EXPECT_EQ(KernelsOf([&] { parameters_.adapters()->ScaleBackward(parameters_, columns_, dy, outputs); }),
              3)
        << rows << " rows";
  }
}

TEST(Nf4LaunchesTest, AMatrixIsReadByOneKernel) {
  Nf4Tensor matrix(1000, kRefusingDevice);
  matrix.Quantize(RandomTensor({1000}, 1));
  at::Tensor out = at::empty({1000}, at::TensorOptions().dtype(at::kBFloat16).device(kRefusingDevice));
  test::ResetDeviceCounts();
  const test::WaitsRefused refused;
  matrix.Dequantize({Precision::kBf16, at::kBFloat16}, out);
  EXPECT_EQ(test::CountsOfDevice().kernels, 1);
}

}  // namespace
}  // namespace trainwright
