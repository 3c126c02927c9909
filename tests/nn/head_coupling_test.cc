#include "lib/nn/linear/head_coupling.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <string>

#include "lib/nn/linear/thin_product.h"
#include "tests/nn/reference.h"
#include "tests/nn/storage_types.h"

namespace trainwright {
namespace {

using test::kFp32;
using test::NumericalGradient;
using test::RandomTensor;
using test::RelativeDifference;

constexpr int64_t kHeads = 3, kBlock = 5, kWidth = 2 * kHeads * kBlock;

/// By the formula, in double, number by number.
at::Tensor CoupleInDouble(const at::Tensor& weights_hbb, const at::Tensor& x_nz) {
  const at::Tensor weights = weights_hbb.to(at::kDouble).contiguous(), x = x_nz.to(at::kDouble).contiguous();
  at::Tensor y_nz = at::zeros_like(x);
  const auto* r = weights.const_data_ptr<double>();
  for (int64_t row = 0; row < x.size(0); ++row) {
    const double* in = x.const_data_ptr<double>() + row * kWidth;
    double* out = y_nz.mutable_data_ptr<double>() + row * kWidth;
    for (int64_t part = 0; part < 2; ++part) {
      for (int64_t head = 0; head < kHeads; ++head) {
        const int64_t first = (part * kHeads + head) * kBlock;
        for (int64_t i = 0; i < kBlock; ++i) {
          for (int64_t j = 0; j < kBlock; ++j) {
            out[first + i] += r[(head * kBlock + i) * kBlock + j] * in[first + j];
          }
        }
      }
    }
  }
  return y_nz;
}

/// Parameters with one coupling, behind a matrix of odd size.
struct CouplingModel {
  explicit CouplingModel(const Numerics& numerics, bool frozen = false) {
    parameters.Add("before", {3, 7}, true);
    index = parameters.Add("coupling", {kHeads, kBlock, kBlock}, true);
    if (frozen) parameters.Freeze(index);
    parameters.Allocate(numerics, at::Device(at::kCPU));
    weights_hbb = RandomTensor({kHeads, kBlock, kBlock}, 1);
    parameters.Assign(index, weights_hbb);
    parameters.RefreshCompute();
  }
  HeadCoupling coupling() { return {&parameters, index}; }

  FlatParameters parameters;
  size_t index = 0;
  at::Tensor weights_hbb;
};

TEST(HeadCouplingTest, BothPartsPassThroughTheMatrixOfTheirHead) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  CouplingModel model(kFp32);
  for (const int64_t rows : {1, 7, 300}) {
    SCOPED_TRACE(std::to_string(rows) + " rows");
    const at::Tensor x_nz = RandomTensor({rows, kWidth}, 2);
    at::Tensor y_nz = at::empty_like(x_nz);
    model.coupling().Forward(x_nz, y_nz);
    EXPECT_LT(RelativeDifference(y_nz, CoupleInDouble(model.weights_hbb, x_nz)), 1e-6);
  }
}

TEST(HeadCouplingTest, GradientsEqualFiniteDifferences) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  CouplingModel model(kFp32);
  const at::Tensor x_nz = RandomTensor({7, kWidth}, 2), d_y_nz = RandomTensor({7, kWidth}, 3);
  at::Tensor d_x_nz = at::empty_like(x_nz), d_y = d_y_nz.clone(), unwanted;
  model.parameters.ZeroGradients();
  model.coupling().Backward(d_y, x_nz, d_x_nz);
  model.coupling().Backward(d_y, x_nz, unwanted);  // adds
  const auto loss = [&](const at::Tensor& weights, const at::Tensor& x) {
    return CoupleInDouble(weights, x).mul(d_y_nz).sum().item<double>();
  };
  const at::Tensor of_x =
      NumericalGradient([&](const at::Tensor& x) { return loss(model.weights_hbb, x); }, x_nz);
  const at::Tensor of_weights =
      NumericalGradient([&](const at::Tensor& weights) { return loss(weights, x_nz); }, model.weights_hbb);
  EXPECT_LT(RelativeDifference(d_x_nz, of_x), 1e-6);
  EXPECT_LT(RelativeDifference(model.parameters.Gradient(model.index), of_weights.mul(2)), 1e-6);
}

TEST(HeadCouplingTest, FrozenItPassesTheGradientOn) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  CouplingModel model(kFp32, /*frozen=*/true);
  const at::Tensor x_nz = RandomTensor({7, kWidth}, 2), d_y_nz = RandomTensor({7, kWidth}, 3);
  at::Tensor d_x_nz = at::empty_like(x_nz), d_y = d_y_nz.clone();
  model.coupling().Backward(d_y, x_nz, d_x_nz);
  const at::Tensor expected = NumericalGradient(
      [&](const at::Tensor& x) {
        return CoupleInDouble(model.weights_hbb, x).mul(d_y_nz).sum().item<double>();
      },
      x_nz);
  EXPECT_FALSE(model.coupling().trains());
  EXPECT_LT(RelativeDifference(d_x_nz, expected), 1e-6);
}

/// A frozen one is kept in the storage type, as the products read it.
TEST(HeadCouplingTest, ShortTypesAreMultipliedRounded) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const at::Tensor x = RandomTensor({7, kWidth}, 2), d_y = RandomTensor({7, kWidth}, 3);
  for (const bool frozen : {false, true}) {
    for (const Numerics& numerics : test::ShortNumerics()) {
      SCOPED_TRACE(test::NameOf(numerics) + (frozen ? ", frozen" : ""));
      CouplingModel model(numerics, frozen);
      const at::Tensor x_nz = test::Stored(numerics, test::AsRead(numerics, x));
      at::Tensor y_nz = at::empty_like(x_nz), d_x_nz = at::empty_like(x_nz),
                 d_y_nz = test::Stored(numerics, d_y);
      model.coupling().Forward(x_nz, y_nz);
      model.coupling().Backward(d_y_nz, x_nz, d_x_nz);
      const at::Tensor weights = test::AsRead(numerics, model.weights_hbb);
      test::ExpectRounded(numerics, y_nz, CoupleInDouble(weights, x_nz));
      EXPECT_TRUE(at::equal(d_y_nz.to(at::kFloat), test::AsRead(numerics, d_y)));
      test::ExpectRounded(numerics, d_x_nz.to(PrecisionDtype(numerics.precision)),
                          CoupleInDouble(weights.transpose(1, 2), test::AsRead(numerics, d_y)));
    }
  }
}

/// One row a sequence, as generation has them.
TEST(HeadCouplingTest, AFewRowsHaveTheBitsThatTheyHaveAlone) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  CouplingModel model(kFp32);
  for (const int64_t rows : {int64_t{8}, cpu::kMostThinRows}) {
    const at::Tensor x_nz = RandomTensor({rows, kWidth}, 2);
    at::Tensor together_nz = at::empty_like(x_nz), alone_nz = at::empty({1, kWidth});
    model.coupling().Forward(x_nz, together_nz);
    for (int64_t row = 0; row < rows; ++row) {
      model.coupling().Forward(x_nz.narrow(0, row, 1), alone_nz);
      EXPECT_TRUE(at::equal(alone_nz[0], together_nz[row])) << row << " of " << rows;
    }
  }
}

TEST(HeadCouplingTest, OfShapesAloneNothingIsComputed) {
  FlatParameters parameters;
  const size_t index = parameters.Add("coupling", {kHeads, kBlock, kBlock}, true);
  parameters.Allocate(kFp32, at::Device(at::kMeta));
  const at::Tensor x_nz = at::empty({9, kWidth}, at::TensorOptions().dtype(at::kFloat).device(at::kMeta));
  at::Tensor y_nz = at::empty_like(x_nz), d_x_nz = at::empty_like(x_nz);
  const HeadCoupling coupling(&parameters, index);
  coupling.Forward(x_nz, y_nz);
  coupling.Backward(y_nz, x_nz, d_x_nz);
  EXPECT_EQ(d_x_nz.sizes(), x_nz.sizes());
}

}  // namespace
}  // namespace trainwright
