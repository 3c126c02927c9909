// GEMMs by a chosen kernel, with epilogues and without, on every device and in every precision against their
// formulas in double, also where the device has no kernel for a shape and layers compute the parts. Without a
// GPU the cuda instances are skipped: NOT RUN.
#include "lib/nn/product_ops.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <optional>
#include <string>
#include <tuple>

#include "lib/device/cuda_backend.h"
#include "lib/nn/linear/chosen_matmul.h"
#include "lib/nn/linear/gelu_mlp.h"
#include "lib/nn/precision.h"
#include "tests/nn/reference.h"
#include "tests/support/print_precision.h"
#include "tests/support/tested_device.h"

namespace trainwright {
namespace {

using test::RandomTensor;
using test::RelativeDifference;

class ProductOpsTest : public testing::TestWithParam<std::tuple<at::DeviceType, Precision>> {
 protected:
  void SetUp() override {
    if (device_.is_cuda() && ProcessCudaBackend().plugin == nullptr) {
      GTEST_SKIP() << "NOT RUN: " << ProcessCudaBackend().problem;
    }
  }
  at::Tensor OnDevice(const at::Tensor& tensor) const { return tensor.to(device_); }
  /// Random numbers in the storage type.
  at::Tensor Stored(const std::vector<int64_t>& shape, uint64_t stream) const {
    return RandomTensor(shape, stream).to(PrecisionDtype(precision_)).to(device_);
  }
  at::Tensor Empty(const std::vector<int64_t>& shape, at::ScalarType dtype) const {
    return at::empty(shape, at::TensorOptions().dtype(dtype).device(device_));
  }
  at::Tensor EmptyStored(const std::vector<int64_t>& shape) const {
    return Empty(shape, PrecisionDtype(precision_));
  }
  static at::Tensor Double(const at::Tensor& tensor) { return tensor.cpu().to(at::kDouble); }
  /// The parts are rounded after each other on a CPU, and a bias before it is added on a GPU.
  double tolerance() const { return precision_ == Precision::kFp32 ? 2e-6 : 0x1.8p-8; }

  static at::Tensor Tanh(const at::Tensor& x) {
    return x.add(x.pow(3).mul(0.044715)).mul(std::sqrt(2 / std::numbers::pi)).tanh();
  }
  static at::Tensor GeluOf(const at::Tensor& x) { return Tanh(x).add(1).mul(x).div(2); }
  static at::Tensor GeluSlope(const at::Tensor& x) {
    const at::Tensor t = Tanh(x),
                     inner = x.pow(2).mul(3 * 0.044715).add(1).mul(std::sqrt(2 / std::numbers::pi));
    return t.add(1).div(2).add(x.mul(t.pow(2).neg().add(1)).mul(inner).div(2));
  }

  const at::Device device_ = at::Device(std::get<0>(GetParam()));
  const Precision precision_ = std::get<1>(GetParam());
  const int64_t code_ = static_cast<int64_t>(precision_);
};

constexpr int64_t kRows = 53, kIn = 40, kOut = 72;

TEST_P(ProductOpsTest, MultiplyIsTheProductOfRowsOrColumnsInTheInputsTypeOrFp32) {
  constexpr int64_t kEvenRows = 56;  // libraries take lines of a multiple of 16 bytes
  const at::Tensor a = Stored({kEvenRows, kIn}, 1), b = Stored({kIn, kOut}, 2);
  const at::Tensor exact = Double(a).mm(Double(b));
  for (const bool columns : {false, true}) {
    const auto laid = [&](const at::Tensor& matrix) {
      return columns ? matrix.t().contiguous().t() : matrix;
    };
    for (const at::ScalarType type : {PrecisionDtype(precision_), at::kFloat}) {
      at::Tensor out = Empty({kEvenRows, kOut}, type);
      ASSERT_TRUE(ops::Multiply(laid(a), laid(b), /*accumulate=*/false, 0, out));
      EXPECT_LT(RelativeDifference(Double(out), exact), tolerance());
    }
    at::Tensor wide = Empty({kEvenRows, kOut + 16}, at::kFloat), within = wide.narrow(1, 8, kOut);
    ASSERT_TRUE(ops::Multiply(laid(a), laid(b), /*accumulate=*/false, 0, within));
    EXPECT_LT(RelativeDifference(Double(within), exact), 2e-6);
    const at::Tensor before = RandomTensor({kEvenRows, kOut}, 3);
    at::Tensor sum = OnDevice(before.clone());
    ASSERT_TRUE(ops::Multiply(laid(a), laid(b), /*accumulate=*/true, 0, sum));
    EXPECT_LT(RelativeDifference(Double(sum), exact.add(before)), 2e-6);
  }
}

TEST_P(ProductOpsTest, AChosenMatmulIsTheProductWhicheverKernelIsChosen) {
  const at::Tensor x = Stored({kRows, kIn}, 1), weight = Stored({kOut, kIn}, 2);
  ProductChooser chooser;
  chooser.set_tries(true);
  at::Tensor y = EmptyStored({kRows, kOut});
  ChosenMatmul(x, weight.t(), y, /*accumulate=*/false, &chooser);
  const at::Tensor exact = Double(x).mm(Double(weight).t());
  EXPECT_LT(RelativeDifference(Double(y), exact), tolerance());
  EXPECT_EQ(chooser.choices().size(), device_.is_cpu() ? 0u : 1u);
  chooser.set_tries(false);
  for (const int64_t candidate : {0, 1, 2, 1000}) {  // the last of which no library has
    ProductChoices choices = chooser.choices();
    for (auto& [product, chosen] : choices) chosen = candidate;
    chooser.set_choices(choices);
    y.fill_(NAN);
    ChosenMatmul(x, weight.t(), y, /*accumulate=*/false, &chooser);
    EXPECT_LT(RelativeDifference(Double(y), exact), tolerance()) << candidate;
  }
}

TEST_P(ProductOpsTest, LinearWithBiasIsTheProductWithItsBiasInColumnsOfAWiderMatrix) {
  const at::Tensor x = Stored({kRows, kIn}, 1), weight = Stored({kOut, kIn}, 2),
                   bias = RandomTensor({kOut}, 3);
  const at::Tensor before = Stored({kRows, kOut + 16}, 4);
  at::Tensor wide = before.clone(), y = wide.narrow(1, 8, kOut);
  ASSERT_TRUE(ops::LinearWithBias(x, weight, OnDevice(bias), code_, 0, y));
  EXPECT_LT(RelativeDifference(Double(y), Double(x).mm(Double(weight).t()).add(bias)), tolerance());
  for (const int64_t begin : {int64_t{0}, kOut + 8}) {
    EXPECT_TRUE(Double(wide).narrow(1, begin, 8).equal(Double(before).narrow(1, begin, 8)));
  }
}

TEST_P(ProductOpsTest, LinearWithGeluKeepsItsInputAndWritesItsOutput) {
  const at::Tensor x = Stored({kRows, kIn}, 1), weight = Stored({kOut, kIn}, 2),
                   bias = RandomTensor({kOut}, 3);
  for (const bool biased : {true, false}) {
    at::Tensor pre = EmptyStored({kRows, kOut}), y = EmptyStored({kRows, kOut});
    const auto given = biased ? std::optional(OnDevice(bias)) : std::nullopt;
    ASSERT_TRUE(ops::LinearWithGelu(x, weight, given, code_, 0, pre, y));
    const at::Tensor product = Double(x).mm(Double(weight).t()), exact = biased ? product.add(bias) : product;
    EXPECT_LT(RelativeDifference(Double(pre), exact), tolerance());
    EXPECT_LT(RelativeDifference(Double(y), GeluOf(exact)), tolerance());
  }
}

TEST_P(ProductOpsTest, LinearBackwardIntoGeluIsTheInputsGradientTimesTheSlope) {
  const at::Tensor dy = Stored({kRows, kOut}, 1), weight = Stored({kOut, kIn}, 2),
                   pre = Stored({kRows, kIn}, 3);
  at::Tensor d_pre = EmptyStored({kRows, kIn});
  ASSERT_TRUE(ops::LinearBackwardIntoGelu(dy, weight, pre, code_, 0, d_pre));
  EXPECT_LT(RelativeDifference(Double(d_pre), Double(dy).mm(Double(weight)).mul(GeluSlope(Double(pre)))),
            tolerance());
}

TEST_P(ProductOpsTest, LinearGradientsAddToTheWeightsOrWriteThemAndAlwaysWriteTheBias) {
  const at::Tensor wide = Stored({kRows, kOut + 16}, 1), dy = wide.narrow(1, 8, kOut),
                   x = Stored({kRows, kIn}, 2), before = RandomTensor({kOut, kIn}, 3);
  for (const bool accumulate : {true, false}) {
    at::Tensor d_weight = OnDevice(before.clone()), d_bias = Empty({kOut}, at::kFloat);
    ASSERT_TRUE(ops::LinearGradients(dy, x, accumulate, code_, 0, d_weight, d_bias));
    const at::Tensor product = Double(dy).t().mm(Double(x));
    EXPECT_LT(RelativeDifference(Double(d_weight), accumulate ? product.add(before) : product),
              device_.is_cpu() ? tolerance() : 1e-5);
    EXPECT_LT(RelativeDifference(Double(d_bias), Double(dy).sum(0)), 1e-5);
  }
}

/// A layer, GELU and a layer, with sizes that a library of products takes, and with others.
class GeluMlpTest : public ProductOpsTest {
 protected:
  struct Sizes {
    int64_t width, wide;
  };
  void IsTheFormula(const Sizes& sizes, GeluKind kind, bool biased);
};

at::Tensor ErfGelu(const at::Tensor& x) {
  return x.div(std::numbers::sqrt2).erf().add(1).mul(x).div(2);
}
at::Tensor ErfSlope(const at::Tensor& x) {
  return x.div(std::numbers::sqrt2)
      .erf()
      .add(1)
      .div(2)
      .add(x.pow(2).div(-2).exp().mul(x).div(std::sqrt(2 * std::numbers::pi)));
}

void GeluMlpTest::IsTheFormula(const Sizes& sizes, GeluKind kind, bool biased) {
  const Numerics numerics{precision_, PrecisionDtype(precision_)};
  FlatParameters parameters;
  const size_t up_weight = parameters.Add("up", {sizes.wide, sizes.width}, true),
               down_weight = parameters.Add("down", {sizes.width, sizes.wide}, true),
               up_bias = parameters.Add("up_bias", {sizes.wide}, false),
               down_bias = parameters.Add("down_bias", {sizes.width}, false);
  parameters.Allocate(numerics, device_);
  for (const size_t index : {up_weight, down_weight, up_bias, down_bias}) {
    parameters.Assign(index, RandomTensor(parameters[index].shape, index).mul(0.3));
  }
  parameters.RefreshCompute();
  const auto biases = [&](size_t bias) { return biased ? std::vector<size_t>{bias} : std::vector<size_t>(); };
  const Linear up(&parameters, {up_weight}, biases(up_bias)),
      down(&parameters, {down_weight}, biases(down_bias));
  const GeluMlp mlp(numerics, kind, up, down);
  parameters.ZeroGradients();
  const at::Tensor x = Stored({kRows, sizes.width}, 1), dy = Stored({kRows, sizes.width}, 2);
  at::Tensor kept = EmptyStored({kRows, sizes.wide}), activation = EmptyStored({kRows, sizes.wide}),
             d_activation = EmptyStored({kRows, sizes.wide}), d_x = EmptyStored({kRows, sizes.width});
  mlp.Forward(x, kept, activation);
  at::Tensor kept_again = EmptyStored({kRows, sizes.wide}), again = EmptyStored({kRows, sizes.wide});
  mlp.KeptAgain(x, kept_again);
  mlp.ActivationAgain(kept_again, again);

  const auto weight = [&](size_t index) {
    return Double(parameters[index].value).to(PrecisionDtype(precision_)).to(at::kDouble);
  };
  at::Tensor pre = Double(x).mm(weight(up_weight).t());
  if (biased) pre = pre.add(Double(parameters[up_bias].value));
  const bool erf = kind == GeluKind::kErf;
  const at::Tensor exact = erf ? ErfGelu(pre) : GeluOf(pre);
  EXPECT_LT(RelativeDifference(Double(activation), exact), tolerance());
  EXPECT_LT(RelativeDifference(Double(again), exact), tolerance());

  const at::Tensor d_pre = mlp.BackwardDown(dy, activation, kept, d_activation, /*below=*/true);
  mlp.BackwardUp(d_pre, x, d_x);
  const at::Tensor exact_d_pre = Double(dy).mm(weight(down_weight)).mul(erf ? ErfSlope(pre) : GeluSlope(pre));
  const double loose = 2 * tolerance() + 1e-5;
  EXPECT_LT(RelativeDifference(Double(d_x), exact_d_pre.mm(weight(up_weight))), loose);
  EXPECT_LT(RelativeDifference(Double(parameters.Gradient(down_weight)), Double(dy).t().mm(exact)), loose);
  EXPECT_LT(RelativeDifference(Double(parameters.Gradient(up_weight)), exact_d_pre.t().mm(Double(x))), loose);
  if (!biased) return;
  EXPECT_LT(RelativeDifference(Double(parameters.Gradient(down_bias)), Double(dy).sum(0)), loose);
  EXPECT_LT(RelativeDifference(Double(parameters.Gradient(up_bias)), exact_d_pre.sum(0)), loose);
}

TEST_P(GeluMlpTest, ValuesAndGradientsAreTheFormulas) {
  for (const Sizes sizes : {Sizes{40, 72}, Sizes{37, 61}}) {
    for (const GeluKind kind : {GeluKind::kErf, GeluKind::kTanh}) {
      for (const bool biased : {true, false}) {
        SCOPED_TRACE(std::to_string(sizes.wide) + (biased ? " biased " : " ") + std::to_string(int(kind)));
        IsTheFormula(sizes, kind, biased);
      }
    }
  }
}

std::string NameOfCase(const testing::TestParamInfo<std::tuple<at::DeviceType, Precision>>& info) {
  return test::NameOfDevice(std::get<0>(info.param)) + "_" + PrecisionName(std::get<1>(info.param));
}
const auto kCases = testing::Combine(testing::Values(at::kCPU, test::kTestedDevice),
                                     testing::Values(Precision::kFp32, Precision::kBf16));
INSTANTIATE_TEST_SUITE_P(Devices, ProductOpsTest, kCases, NameOfCase);
INSTANTIATE_TEST_SUITE_P(Devices, GeluMlpTest, kCases, NameOfCase);

}  // namespace
}  // namespace trainwright
