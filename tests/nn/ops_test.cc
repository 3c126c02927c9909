// Every operator of ops.h on every device and in every precision against its formula in double. The CPU holds
// fp16 as rounded fp32, a GPU as fp16. Without a GPU that can be used the cuda instances are skipped: NOT
// RUN.
#include "lib/nn/ops.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "lib/base/rng.h"
#include "lib/device/cuda_backend.h"
#include "lib/nn/activation/gelu_kind.h"
#include "lib/nn/linear/nf4_books.h"
#include "lib/nn/reduce.h"
#include "lib/nn/scan/scan_pieces.h"
#include "lib/nn/scan/torch_scan.h"
#include "lib/nn/update/adamw_8bit.h"
#include "lib/nn/update/bf16_moments_cpu.h"
#include "lib/nn/update/step_decision.h"
#include "tests/nn/reference.h"
#include "tests/nn/scan_reference.h"
#include "tests/support/print_precision.h"
#include "tests/support/tested_device.h"

namespace trainwright {
namespace {

using test::RandomTensor;
using test::RelativeDifference;

class OpsTest : public testing::TestWithParam<std::tuple<at::DeviceType, Precision>> {
 protected:
  void SetUp() override {
    if (device_.is_cuda() && ProcessCudaBackend().plugin == nullptr) {
      GTEST_SKIP() << "NOT RUN: " << ProcessCudaBackend().problem;
    }
  }
  at::Tensor OnDevice(const at::Tensor& tensor) const { return tensor.to(device_); }
  /// Random numbers in the storage type.
  at::Tensor Stored(const std::vector<int64_t>& shape, uint64_t stream) const {
    return RandomTensor(shape, stream).to(PrecisionDtype(precision_)).to(storage_).to(device_);
  }
  at::Tensor Empty(const std::vector<int64_t>& shape, at::ScalarType dtype) const {
    return at::empty(shape, at::TensorOptions().dtype(dtype).device(device_));
  }
  static at::Tensor Double(const at::Tensor& tensor) { return tensor.cpu().to(at::kDouble); }
  /// fp32 numbers as they are stored, in double.
  at::Tensor Rounded(const at::Tensor& values) const {
    return values.cpu().to(PrecisionDtype(precision_)).to(at::kDouble);
  }
  /// A unit in the last place of the precision, doubled: results are rounded once.
  double tolerance() const {
    return precision_ == Precision::kFp32 ? 2e-6 : precision_ == Precision::kBf16 ? 0x1p-8 : 0x1p-11;
  }

  const at::Device device_ = at::Device(std::get<0>(GetParam()));
  const Precision precision_ = std::get<1>(GetParam());
  const int64_t code_ = static_cast<int64_t>(precision_);
  const at::ScalarType storage_ =
      device_.is_cpu() && precision_ == Precision::kFp16 ? at::kFloat : PrecisionDtype(precision_);
};

// Widths: 64 takes 16-byte accesses on a GPU, 37 does not; 3000 is more than one turn of a block.
constexpr int64_t kWidths[] = {37, 64, 3000};

TEST_P(OpsTest, RoundIntoRoundsToNearest) {
  for (const int64_t width : kWidths) {
    const at::Tensor x = RandomTensor({width}, 1);
    at::Tensor out = Empty({width}, storage_);
    ops::RoundInto(OnDevice(x), code_, out);
    EXPECT_EQ(Double(out).sub(x.to(PrecisionDtype(precision_)).to(at::kDouble)).abs().max().item<double>(),
              0);
  }
}

TEST_P(OpsTest, AddRmsNormAndItsBackwardEqualTheFormula) {
  constexpr double kEpsilon = 1e-5;
  for (const int64_t width : kWidths) {
    const at::Tensor residual = RandomTensor({70, width}, 1), weight = RandomTensor({width}, 2);
    const at::Tensor update = Stored({70, width}, 3), d_normed = Stored({70, width}, 4);
    at::Tensor sum = Empty({70, width}, at::kFloat), normed = Empty({70, width}, storage_),
               again = Empty({70, width}, storage_), rstd = Empty({70}, at::kFloat);
    ops::AddRmsNorm(OnDevice(residual), update, OnDevice(weight), kEpsilon, code_, sum, normed, rstd);
    ops::RmsNormAgain(sum, rstd, OnDevice(weight), code_, again);
    const at::Tensor x = residual.to(at::kDouble).add(Double(update)), w = weight.to(at::kDouble);
    const at::Tensor scale = x.pow(2).mean(1, true).add(kEpsilon).rsqrt(), unit = x.mul(scale);
    EXPECT_LT(RelativeDifference(Double(sum), x), 1e-6);
    EXPECT_LT(RelativeDifference(Double(normed), unit.mul(w)), tolerance());
    EXPECT_TRUE(Double(again).equal(Double(normed)));

    const at::Tensor before = RandomTensor({70, width}, 5), before_weight = RandomTensor({width}, 6);
    at::Tensor d_x = OnDevice(before.clone()), d_weight = OnDevice(before_weight.clone()),
               d_short = Empty({70, width}, storage_);
    ops::RmsNormBackward(d_normed, sum, rstd, OnDevice(weight), code_, d_x, d_weight, d_short);
    const at::Tensor dy = Double(d_normed), wdy = dy.mul(w);
    const at::Tensor expected = wdy.sub(unit.mul(wdy.mul(unit).mean(1, true))).mul(scale);
    EXPECT_LT(RelativeDifference(Double(d_x).sub(before.to(at::kDouble)), expected), 1e-5);
    EXPECT_LT(RelativeDifference(Double(d_weight).sub(before_weight.to(at::kDouble)), dy.mul(unit).sum(0)),
              1e-5);
    EXPECT_TRUE(Double(d_short).equal(Rounded(d_x)));
  }
}

TEST_P(OpsTest, AddLayerNormAndItsBackwardEqualTheFormula) {
  constexpr double kEpsilon = 1e-5;
  // 1100 and 4100: two packs of a thread, and more than it holds.
  for (const int64_t width : {37, 64, 1100, 3000, 4100}) {
    SCOPED_TRACE("width " + std::to_string(width));
    const at::Tensor residual = RandomTensor({70, width}, 1).add(3), weight = RandomTensor({width}, 2),
                     bias = RandomTensor({width}, 3), update_bias = RandomTensor({width}, 4);
    const at::Tensor update = Stored({70, width}, 5), d_normed = Stored({70, width}, 6);
    at::Tensor sum = Empty({70, width}, at::kFloat), normed = Empty({70, width}, storage_),
               again = Empty({70, width}, storage_), mean = Empty({70}, at::kFloat),
               rstd = Empty({70}, at::kFloat);
    ops::AddLayerNorm(OnDevice(residual), update, OnDevice(update_bias), OnDevice(weight), OnDevice(bias),
                      kEpsilon, code_, sum, normed, mean, rstd);
    ops::LayerNormAgain(sum, mean, rstd, OnDevice(weight), OnDevice(bias), code_, again);
    const at::Tensor x = residual.to(at::kDouble).add(Double(update)).add(update_bias),
                     w = weight.to(at::kDouble), centered = x.sub(x.mean(1, true)),
                     scale = centered.pow(2).mean(1, true).add(kEpsilon).rsqrt(), unit = centered.mul(scale);
    EXPECT_LT(RelativeDifference(Double(sum), x), 1e-6);
    EXPECT_LT(RelativeDifference(Double(normed), unit.mul(w).add(bias)), tolerance());
    EXPECT_LT(RelativeDifference(Double(mean), x.mean(1)), 1e-6);
    EXPECT_LT(RelativeDifference(Double(rstd), scale.squeeze(1)), 1e-5);
    EXPECT_TRUE(Double(again).equal(Double(normed)));

    const at::Tensor before = RandomTensor({70, width}, 7), before_weight = RandomTensor({width}, 8),
                     before_bias = RandomTensor({width}, 9);
    at::Tensor d_x = OnDevice(before.clone()), d_weight = OnDevice(before_weight.clone()),
               d_bias = OnDevice(before_bias.clone()), d_short = Empty({70, width}, storage_);
    ops::LayerNormBackward(d_normed, sum, mean, rstd, OnDevice(weight), code_, d_x, d_weight, d_bias,
                           d_short);
    const at::Tensor dy = Double(d_normed), wdy = dy.mul(w);
    const at::Tensor expected =
        wdy.sub(wdy.mean(1, true)).sub(unit.mul(wdy.mul(unit).mean(1, true))).mul(scale);
    EXPECT_LT(RelativeDifference(Double(d_x).sub(before.to(at::kDouble)), expected), 1e-5);
    EXPECT_LT(RelativeDifference(Double(d_weight).sub(before_weight.to(at::kDouble)), dy.mul(unit).sum(0)),
              1e-5);
    EXPECT_LT(RelativeDifference(Double(d_bias).sub(before_bias.to(at::kDouble)), dy.sum(0)), 1e-5);
    EXPECT_TRUE(Double(d_short).equal(Rounded(d_x)));
  }
}

TEST_P(OpsTest, ALayerNormTakesNoMoreThanItIsGiven) {
  const at::Tensor x = OnDevice(RandomTensor({9, 64}, 1)), weight = OnDevice(RandomTensor({64}, 2)),
                   d_normed = Stored({9, 64}, 3);
  at::Tensor normed = Empty({9, 64}, storage_), mean = Empty({9}, at::kFloat), rstd = Empty({9}, at::kFloat);
  ops::AddLayerNorm(x, {}, {}, weight, {}, 1e-5, code_, {}, normed, mean, rstd);
  const at::Tensor exact = Double(x), centered = exact.sub(exact.mean(1, true)),
                   unit = centered.mul(centered.pow(2).mean(1, true).add(1e-5).rsqrt());
  EXPECT_LT(RelativeDifference(Double(normed), unit.mul(Double(weight))), tolerance());
  at::Tensor d_x = OnDevice(at::zeros({9, 64})), d_x_alone = d_x.clone(),
             d_weight = OnDevice(at::zeros({64})), d_bias = d_weight.clone(), d_bias_alone = d_weight.clone();
  ops::LayerNormBackward(d_normed, x, mean, rstd, weight, code_, d_x, d_weight, d_bias, {});
  ops::LayerNormBackward(d_normed, x, mean, rstd, weight, code_, d_x_alone, {}, {}, {});
  EXPECT_TRUE(d_x_alone.cpu().equal(d_x.cpu()));
  ops::LayerNormBackward(d_normed, x, mean, rstd, weight, code_, d_x_alone, {}, d_bias_alone, {});
  EXPECT_TRUE(d_bias_alone.cpu().equal(d_bias.cpu()));
}

TEST_P(OpsTest, GeluAndItsBackwardEqualTheFormula) {
  constexpr int64_t kRows = 70;
  const double root = std::sqrt(2 / std::numbers::pi);
  for (const GeluKind kind : {GeluKind::kErf, GeluKind::kTanh}) {
    const auto code_of_kind = static_cast<int64_t>(kind);
    for (const int64_t width : kWidths) {
      const at::Tensor in = Stored({kRows, width}, 1), d_out = Stored({kRows, width}, 2),
                       bias = RandomTensor({width}, 3), before = RandomTensor({width}, 4);
      at::Tensor out = Empty({kRows, width}, storage_), gradient = in.clone(), alone = in.clone(),
                 d_bias = OnDevice(before.clone()), summed = d_bias.clone();
      ops::Gelu(in, code_of_kind, OnDevice(bias), code_, out);
      ops::GeluBackward(d_out, code_of_kind, OnDevice(bias), code_, gradient, d_bias);
      ops::GeluBackward(d_out, code_of_kind, OnDevice(bias), code_, alone, {});
      ops::BiasBackward(alone, code_, summed);
      const at::Tensor x = Double(in).add(bias), inner = x.add(x.pow(3).mul(0.044715)),
                       slope = x.pow(2).mul(3 * 0.044715).add(1), t = inner.mul(root).tanh(),
                       share = kind == GeluKind::kErf ? x.div(std::sqrt(2.0)).erf().add(1).div(2)
                                                      : t.add(1).div(2),
                       d_share = kind == GeluKind::kErf
                                     ? x.pow(2).div(-2).exp().div(std::sqrt(2 * std::numbers::pi))
                                     : t.pow(2).neg().add(1).mul(slope).mul(root).div(2);
      EXPECT_LT(RelativeDifference(Double(out), x.mul(share)), tolerance());
      EXPECT_LT(RelativeDifference(Double(gradient), Double(d_out).mul(share.add(x.mul(d_share)))),
                tolerance());
      EXPECT_TRUE(gradient.cpu().equal(alone.cpu()));
      EXPECT_TRUE(d_bias.cpu().equal(summed.cpu())) << "the bits of the bias's own gradient";
      EXPECT_LT(RelativeDifference(Double(d_bias).sub(before.to(at::kDouble)), Double(gradient).sum(0)),
                1e-5);
    }
  }
}

TEST_P(OpsTest, ABiasIsAddedToColumnsOfAWiderMatrixAndItsGradientIsTheirSum) {
  for (const int64_t width : kWidths) {
    for (const int64_t begin : {0, 5, 8}) {
      const at::Tensor wide = Stored({300, width + 16}, 1), bias = RandomTensor({width}, 2),
                       before = RandomTensor({width}, 3);
      at::Tensor all = wide.clone(), columns = all.narrow(1, begin, width), d_bias = OnDevice(before.clone());
      ops::AddBias(OnDevice(bias), code_, columns);
      at::Tensor expected = Double(wide);
      expected.narrow(1, begin, width).add_(bias);
      EXPECT_LT(RelativeDifference(Double(columns), expected.narrow(1, begin, width)), tolerance());
      EXPECT_TRUE(Double(all).narrow(1, 0, begin).equal(expected.narrow(1, 0, begin)));
      const int64_t end = begin + width, rest = width + 16 - end;
      EXPECT_TRUE(Double(all).narrow(1, end, rest).equal(expected.narrow(1, end, rest)));
      ops::BiasBackward(wide.narrow(1, begin, width), code_, d_bias);
      EXPECT_LT(RelativeDifference(Double(d_bias).sub(before.to(at::kDouble)),
                                   Double(wide).narrow(1, begin, width).sum(0)),
                1e-5);
    }
  }
}

/// More rows than a block of sums has on any device.
TEST_P(OpsTest, TheGradientOfScaledColumnsAndOfTheirMagnitudesEqualsAPlainLoop) {
  constexpr int64_t kRows = 1100;
  for (const int64_t width : {5, 37, 64}) {
    for (const int64_t begin : {0, 5, 8}) {
      const at::Tensor wide_y = Stored({kRows, width + 16}, 1), wide_dy = Stored({kRows, width + 24}, 2),
                       scale = RandomTensor({width}, 3), norm = RandomTensor({width}, 4).abs().add(0.5),
                       before = RandomTensor({width}, 5);
      at::Tensor all = wide_y.clone(), y = all.narrow(1, begin, width),
                 d_magnitude = OnDevice(before.clone());
      const at::Tensor dy = wide_dy.narrow(1, 8 - begin, width);
      ops::ScaleColumnsBackward(OnDevice(scale), OnDevice(norm), dy, y, d_magnitude);
      const at::Tensor of_y = Double(wide_y).narrow(1, begin, width), of_dy = Double(dy);
      at::Tensor sums = at::zeros({width}, at::kDouble);
      const auto y_of = of_y.accessor<double, 2>(), dy_of = of_dy.accessor<double, 2>();
      auto sum_of = sums.accessor<double, 1>();
      for (int64_t row = 0; row < kRows; ++row) {
        for (int64_t i = 0; i < width; ++i) sum_of[i] += y_of[row][i] * dy_of[row][i];
      }
      sums.div_(norm);
      EXPECT_LT(RelativeDifference(Double(d_magnitude).sub(before.to(at::kDouble)), sums), 1e-5);
      at::Tensor expected = Double(wide_y);
      expected.narrow(1, begin, width).copy_(of_dy.mul(scale));
      EXPECT_LT(RelativeDifference(Double(y), expected.narrow(1, begin, width)), tolerance());
      EXPECT_TRUE(Double(all).narrow(1, 0, begin).equal(expected.narrow(1, 0, begin)));
      const int64_t end = begin + width, rest = width + 16 - end;
      EXPECT_TRUE(Double(all).narrow(1, end, rest).equal(expected.narrow(1, end, rest)));
    }
  }
}

TEST_P(OpsTest, AddEmbeddingAddsTheRowsOfTheIndices) {
  for (const int64_t width : kWidths) {
    const at::Tensor table = RandomTensor({9, width}, 1), before = RandomTensor({7, width}, 2),
                     indices = at::tensor({8, 0, 3, 3, 1, 8, 2}, at::kLong);
    at::Tensor out = OnDevice(before.clone());
    ops::AddEmbedding(OnDevice(table), OnDevice(indices), out);
    EXPECT_TRUE(out.cpu().equal(before.add(table.index_select(0, indices))));
  }
}

TEST_P(OpsTest, RopeTurnsQueriesAndKeysAndBackAgain) {
  for (const int64_t size : {6, 16, 64}) {
    const int64_t rows = 9, half = size / 2;
    const at::Tensor qkv = Stored({rows, (3 + 2 * 1) * size}, 1);
    const at::Tensor angles = RandomTensor({50, half}, 2), cosines = angles.cos(), sines = angles.sin();
    const at::Tensor positions = at::tensor({0, 1, 2, 3, 0, 1, 49, 7, 5}, at::kLong);
    for (const bool backward : {false, true}) {
      at::Tensor turned = qkv.clone();
      ops::Rope(turned, OnDevice(positions), OnDevice(cosines), OnDevice(sines), 3, 1, code_, backward);
      at::Tensor expected = Double(qkv).view({rows, 5, size}).clone();
      const at::Tensor a = expected.narrow(1, 0, 4).narrow(2, 0, half).clone(),
                       b = expected.narrow(1, 0, 4).narrow(2, half, half).clone();
      const at::Tensor c = cosines.index_select(0, positions).to(at::kDouble).unsqueeze(1);
      const at::Tensor s =
          sines.index_select(0, positions).to(at::kDouble).unsqueeze(1).mul(backward ? -1 : 1);
      expected.narrow(1, 0, 4).narrow(2, 0, half).copy_(a.mul(c).sub(b.mul(s)));
      expected.narrow(1, 0, 4).narrow(2, half, half).copy_(b.mul(c).add(a.mul(s)));
      EXPECT_LT(RelativeDifference(Double(turned), expected.view({rows, -1})), tolerance());
    }
  }
}

TEST_P(OpsTest, JoinedHeadsAreTheRowsOfAllThreeTurnedBack) {
  for (const int64_t size : {6, 16, 64}) {
    const int64_t rows = 9;
    // As kernels leave them: heads before rows, and apart.
    const at::Tensor q = Stored({3, rows, size}, 1).transpose(0, 1),
                     k = Stored({rows, 4, size}, 2).slice(1, 1, 3), v = Stored({rows, 2, size}, 3);
    const at::Tensor positions = at::tensor({0, 1, 2, 3, 0, 1, 49, 7, 5}, at::kLong);
    for (const int64_t turning : {int64_t{0}, size - 2, size}) {
      const at::Tensor angles = RandomTensor({50, turning / 2}, 4), cosines = OnDevice(angles.cos()),
                       sines = OnDevice(angles.sin());
      at::Tensor joined = Stored({rows, 7 * size}, 5),
                 expected = at::cat({q, k, v}, 1).reshape({rows, 7 * size});
      if (turning > 0)
        ops::Rope(expected, OnDevice(positions), cosines, sines, 3, 2, code_, /*backward=*/true);
      const auto given = [&](const at::Tensor& x) { return turning > 0 ? std::optional(x) : std::nullopt; };
      ops::JoinHeads(q, k, v, given(OnDevice(positions)), given(cosines), given(sines), code_, joined);
      EXPECT_TRUE(joined.cpu().equal(expected.cpu())) << size << ' ' << turning;
    }
  }
}

TEST_P(OpsTest, SwigluAndItsBackwardEqualTheFormula) {
  for (const int64_t width : kWidths) {
    const at::Tensor gate_up = Stored({5, 2 * width}, 1), d_out = Stored({5, width}, 2);
    at::Tensor out = Empty({5, width}, storage_), gradient = gate_up.clone();
    ops::Swiglu(gate_up, code_, out);
    ops::SwigluBackward(d_out, code_, gradient);
    const at::Tensor g = Double(gate_up).narrow(1, 0, width), u = Double(gate_up).narrow(1, width, width);
    const at::Tensor s = at::sigmoid(g), silu = g.mul(s), d = Double(d_out);
    EXPECT_LT(RelativeDifference(Double(out), silu.mul(u)), tolerance());
    const at::Tensor d_gate = d.mul(u).mul(s.add(silu.mul(s.neg().add(1))));
    EXPECT_LT(RelativeDifference(Double(gradient).narrow(1, 0, width), d_gate), tolerance());
    EXPECT_LT(RelativeDifference(Double(gradient).narrow(1, width, width), d.mul(silu)), tolerance());
  }
}

TEST_P(OpsTest, SoftmaxCrossEntropyAndItsGradientEqualTheFormula) {
  constexpr double kZLoss = 0.01, kSmoothing = 0.1, kScale = 0.25, kLossScale = 4;
  for (const int64_t vocabulary : kWidths) {
    const at::Tensor logits = Stored({6, vocabulary}, 1);
    const at::Tensor targets =
        at::tensor({int64_t{0}, vocabulary - 1, int64_t{3}, int64_t{7}, int64_t{7}, int64_t{30}});
    at::Tensor gradient = logits.clone(), losses = Empty({6, 3}, at::kDouble);
    const at::Tensor loss_scale = OnDevice(at::tensor({kLossScale}, at::kDouble));
    ops::SoftmaxCrossEntropy(gradient, OnDevice(targets), vocabulary, kZLoss, kSmoothing, kScale, loss_scale,
                             code_, true, losses);
    for (const int64_t pads : {int64_t{1}, 16 - vocabulary % 8}) {
      at::Tensor padded = Empty({6, vocabulary + pads}, storage_), of_padded = Empty({6, 3}, at::kDouble);
      padded.fill_(NAN);
      padded.narrow(1, 0, vocabulary).copy_(logits);
      ops::SoftmaxCrossEntropy(padded, OnDevice(targets), vocabulary, kZLoss, kSmoothing, kScale, loss_scale,
                               code_, true, of_padded);
      EXPECT_LT(RelativeDifference(Double(of_padded), Double(losses)), 1e-6);
      EXPECT_LT(RelativeDifference(Double(padded).narrow(1, 0, vocabulary), Double(gradient)),
                tolerance() + 1e-5);
      EXPECT_TRUE(Double(padded).narrow(1, vocabulary, pads).eq(0).all().item<bool>());
    }
    const at::Tensor x = Double(logits), log_p = at::log_softmax(x, 1), log_z = x.logsumexp({1}, true);
    at::Tensor one_hot = at::zeros({6, vocabulary}, at::kDouble);
    one_hot.scatter_(1, targets.unsqueeze(1), 1.0);
    const at::Tensor cross_entropy = log_p.mul(one_hot).sum(1).neg();
    EXPECT_LT(RelativeDifference(Double(losses).select(1, 0), cross_entropy), 1e-6);
    EXPECT_LT(RelativeDifference(Double(losses).select(1, 1),
                                 log_p.mean(1).neg().sub(cross_entropy).mul(kSmoothing)),
              1e-5);
    EXPECT_LT(RelativeDifference(Double(losses).select(1, 2), log_z.squeeze(1).pow(2).mul(kZLoss)), 1e-5);
    const at::Tensor p = log_p.exp();
    const at::Tensor expected = p.mul(log_z.mul(2 * kZLoss).add(1))
                                    .sub(one_hot.mul(1 - kSmoothing))
                                    .sub(kSmoothing / static_cast<double>(vocabulary))
                                    .mul(kScale * kLossScale);
    EXPECT_LT(RelativeDifference(Double(gradient), expected), tolerance() + 1e-5);
  }
}

TEST_P(OpsTest, EmbeddingBackwardAddsEqualTokensInRowOrder) {
  for (const int64_t width : kWidths) {
    const at::Tensor tokens = at::tensor({3, 1, 3, 3, 0, 8, 1, 3}, at::kLong),
                     d_out = RandomTensor({8, width}, 1);
    const at::Tensor table = RandomTensor({9, width}, 2);
    at::Tensor out = Empty({8, width}, at::kFloat), gradient = OnDevice(at::zeros({9, width}));
    ops::Embed(OnDevice(table), OnDevice(tokens), out);
    EXPECT_TRUE(out.cpu().equal(table.index_select(0, tokens)));
    ops::EmbedBackward(OnDevice(d_out), OnDevice(tokens), gradient);
    at::Tensor expected = at::zeros({9, width});
    for (int64_t i = 0; i < 8; ++i) expected[tokens[i].item<int64_t>()].add_(d_out[i]);
    EXPECT_TRUE(gradient.cpu().equal(expected));  // one order of fp32 sums: the same bits on every device
  }
}

TEST_P(OpsTest, EmbeddingBackwardSumsATokenThatFillsManyRows) {
  // Token 2 begins within a stretch of a GPU's first stage and fills several; 7 ends within another.
  constexpr int64_t kRows = 1000, kWidth = 64;
  at::Tensor tokens = at::zeros({kRows}, at::kLong);
  for (int64_t i = 0; i < kRows; ++i) tokens[i] = i % 10 == 0 ? i % 7 : i % 3 == 0 ? 7 : 2;
  const at::Tensor d_out = RandomTensor({kRows, kWidth}, 1), before = RandomTensor({9, kWidth}, 2);
  at::Tensor gradient = OnDevice(before.clone()), again = gradient.clone(),
             expected = before.to(at::kDouble).clone();
  ops::EmbedBackward(OnDevice(d_out), OnDevice(tokens), gradient);
  ops::EmbedBackward(OnDevice(d_out), OnDevice(tokens), again);
  expected.index_add_(0, tokens, d_out.to(at::kDouble));
  EXPECT_LT(RelativeDifference(Double(gradient), expected), 1e-6);
  EXPECT_TRUE(gradient.cpu().equal(again.cpu()));
}

TEST_P(OpsTest, HeadRowsAreThoseWithLabelsAndTheFirstOthersInOrder) {
  for (const int64_t rows : {5, 1000, 3001}) {
    const at::Tensor chosen = RandomTensor({rows}, static_cast<uint64_t>(rows)),
                     labels = at::where(chosen.gt(0.5), at::arange(rows), -1).to(at::kInt);
    const int64_t labelled = labels.ge(0).sum().item<int64_t>();
    for (const int64_t selected : {labelled, labelled + 1, (labelled + rows) / 2, rows - 1}) {
      const at::Tensor with = labels.ge(0).nonzero().view(-1),
                       without = labels.lt(0).nonzero().view(-1).narrow(0, 0, selected - labelled);
      const at::Tensor expected = std::get<0>(at::cat({with, without}).sort());
      at::Tensor row_numbers = Empty({selected}, at::kLong), row_labels = Empty({selected}, at::kLong);
      ops::HeadRows(OnDevice(labels), row_numbers, row_labels);
      EXPECT_TRUE(row_numbers.cpu().equal(expected)) << rows << ' ' << selected;
      EXPECT_TRUE(row_labels.cpu().equal(labels.to(at::kLong).index_select(0, expected)));
    }
  }
}

TEST_P(OpsTest, SumOfSquaresIsExactToDoubleAndShowsNonFiniteElements) {
  const at::Tensor values = RandomTensor({200001}, 1);
  at::Tensor out = Empty({1}, at::kDouble);
  ops::SumOfSquares(OnDevice(values), out);
  const double expected = values.to(at::kDouble).pow(2).sum().item<double>();
  EXPECT_NEAR(out.item<double>(), expected, 1e-12 * expected);
  values[200000].fill_(INFINITY);
  ops::SumOfSquares(OnDevice(values), out);
  EXPECT_FALSE(std::isfinite(out.item<double>()));
}

TEST(SquareSumTest, HowTheValuesAreCutIntoPartsChangesNoBit) {
  const at::Tensor values = RandomTensor({200003}, 8);
  const double whole = SumOfSquares(values);
  EXPECT_NEAR(whole, values.to(at::kDouble).pow(2).sum().item<double>(), 1e-9 * whole);
  for (const std::vector<int64_t>& cuts : std::vector<std::vector<int64_t>>{
           {1}, {65536}, {65535, 65537}, {7, 40000, 40001, 131072}, {131071, 196608}, {200002}}) {
    SquareSum sum;
    int64_t begin = 0;
    for (const int64_t cut : cuts) {
      sum.Add(values.narrow(0, begin, cut - begin));
      begin = cut;
    }
    sum.Add(values.narrow(0, begin, values.numel() - begin));
    EXPECT_EQ(sum.total(), whole) << cuts.front();
  }
}

TEST_P(OpsTest, AdamWBf16MomentsEqualsTheCpusKernelAndObeysFoundInf) {
  constexpr int64_t kSize = 10007, kBegin = 5;
  const AdamWHyperparameters hyperparameters = {1e-2, 0.9, 0.999, 0.1, 1e-8, 77};
  const at::Tensor gradients = RandomTensor({kSize}, 2);
  at::Tensor values = RandomTensor({kSize}, 1), first = RandomTensor({kSize}, 3).to(at::kBFloat16),
             second = RandomTensor({kSize}, 4).abs().to(at::kBFloat16);
  at::Tensor own_values = OnDevice(values.clone()), own_first = OnDevice(first.clone()),
             own_second = OnDevice(second.clone());
  const auto scalar = [&](double number) { return OnDevice(at::tensor(number, at::kFloat)); };
  const auto update = [&](double found_inf) {
    const auto part = [](const at::Tensor& tensor) { return tensor.narrow(0, kBegin, kSize - kBegin); };
    at::Tensor values_part = part(own_values), first_part = part(own_first), second_part = part(own_second);
    ops::AdamWBf16Moments(values_part, part(OnDevice(gradients)), first_part, second_part, kBegin, 1e-2, 0.9,
                          0.999, 0.1, 1e-8, 77, scalar(7), scalar(3), scalar(found_inf));
  };
  update(/*found_inf=*/1);
  EXPECT_TRUE(own_values.cpu().equal(values) && own_first.cpu().equal(first) &&
              own_second.cpu().equal(second));
  update(/*found_inf=*/0);
  const auto bits = [](at::Tensor& moments) {
    return reinterpret_cast<uint16_t*>(moments.mutable_data_ptr<at::BFloat16>());
  };
  cpu::UpdateBf16MomentsBaseline(CoefficientsOf(hyperparameters, 7, 3),
                                 gradients.const_data_ptr<float>() + kBegin,
                                 values.mutable_data_ptr<float>() + kBegin, bits(first) + kBegin,
                                 bits(second) + kBegin, kBegin, kSize - kBegin);
  // A GPU contracts products with sums: now and then another neighbour is chosen.
  EXPECT_LE(RelativeDifference(own_values.cpu(), values), 1e-6);
  EXPECT_LE(own_first.cpu().ne(first).sum().item<int64_t>(), kSize / 100);
  EXPECT_LE(own_second.cpu().ne(second).sum().item<int64_t>(), kSize / 100);
}

TEST_P(OpsTest, LionEqualsTheFormulaAndObeysFoundInf) {
  constexpr int64_t kSize = 10007, kBegin = 5;
  const at::Tensor values = RandomTensor({kSize}, 1), gradients = RandomTensor({kSize}, 2),
                   momentum = RandomTensor({kSize}, 3);
  at::Tensor own_values = OnDevice(values.clone()), own_momentum = OnDevice(momentum.clone());
  const auto scalar = [&](double number) { return OnDevice(at::tensor(number, at::kFloat)); };
  const auto part = [](const at::Tensor& tensor) { return tensor.narrow(0, kBegin, kSize - kBegin); };
  const auto update = [&](double found_inf) {
    at::Tensor values_part = part(own_values), momentum_part = part(own_momentum);
    ops::Lion(values_part, part(OnDevice(gradients)), momentum_part, /*learning_rate=*/0.5, 0.9, 0.99, 0.1,
              scalar(3), scalar(found_inf), OnDevice(at::tensor(1e-2, at::kDouble)));
  };
  update(/*found_inf=*/1);
  EXPECT_TRUE(own_values.cpu().equal(values) && own_momentum.cpu().equal(momentum));
  update(/*found_inf=*/0);
  const at::Tensor g = part(gradients).to(at::kDouble).div(3), m = part(momentum).to(at::kDouble);
  const at::Tensor moved =
      part(values).to(at::kDouble).mul(1 - 5e-3 * 0.1).sub(m.mul(0.9).add(g, 0.1).sign().mul(5e-3));
  EXPECT_LE(RelativeDifference(part(own_values).cpu(), moved), 1e-6);
  EXPECT_LE(RelativeDifference(part(own_momentum).cpu(), m.mul(0.99).add(g, 0.01)), 1e-6);
  EXPECT_TRUE(own_values.cpu().narrow(0, 0, kBegin).equal(values.narrow(0, 0, kBegin)));
}

TEST_P(OpsTest, AdamW8BitEqualsTheFormulaWithinACodeAndObeysFoundInf) {
  constexpr int64_t kSize = 1000, kBlocks = 4;
  const at::Tensor values = RandomTensor({kSize}, 1), gradients = RandomTensor({kSize}, 2);
  const at::Tensor signed_map = at::linspace(-1, 1, kMapSize, at::kFloat),
                   unsigned_map = at::linspace(0, 1, kMapSize, at::kFloat);
  const at::Tensor codes = at::arange(kBlocks * kMomentBlock, at::kLong).mul(37).remainder(256).to(at::kByte);
  at::Tensor own_values = OnDevice(values.clone()), first = OnDevice(codes.clone()),
             second = OnDevice(codes.flip(0).contiguous()),
             first_largest = OnDevice(at::full({kBlocks}, 0.5)),
             second_largest = OnDevice(at::full({kBlocks}, 2.0));
  const auto scalar = [&](double number) { return OnDevice(at::tensor(number, at::kFloat)); };
  const auto moment = [&](const at::Tensor& of, const at::Tensor& largest, const at::Tensor& map) {
    return map.index_select(0, of.cpu().to(at::kLong))
        .mul(largest.cpu().repeat_interleave(kMomentBlock))
        .narrow(0, 0, kSize)
        .to(at::kDouble);
  };
  const at::Tensor m = moment(first, first_largest, signed_map),
                   v = moment(second, second_largest, unsigned_map);
  const auto update = [&](double found_inf) {
    ops::AdamW8Bit(own_values, OnDevice(gradients), first, first_largest, second, second_largest,
                   OnDevice(signed_map), OnDevice(unsigned_map), 1e-2, 0.9, 0.99, 0.1, 1e-8, scalar(7),
                   scalar(3), scalar(found_inf));
  };
  update(/*found_inf=*/1);
  EXPECT_TRUE(own_values.cpu().equal(values) && first.cpu().equal(codes));
  update(/*found_inf=*/0);
  const at::Tensor g = gradients.to(at::kDouble).div(3), new_m = m.mul(0.9).add(g, 0.1),
                   new_v = v.mul(0.99).add(g.square(), 0.01);
  const at::Tensor root = new_v.div(1 - std::pow(0.99, 7)).sqrt_().add_(1e-8);
  EXPECT_LE(
      RelativeDifference(
          own_values.cpu(),
          values.to(at::kDouble).mul(1 - 1e-3).sub(new_m.div(1 - std::pow(0.9, 7)).div(root).mul(1e-2))),
      1e-6);
  // A code stands for what is at most half a step of its map away.
  const at::Tensor m_error = moment(first, first_largest, signed_map).sub(new_m).abs(),
                   v_error = moment(second, second_largest, unsigned_map).sub(new_v).abs();
  EXPECT_LE(m_error.max().item<double>(), 1.0001 / 255 * first_largest.cpu().max().item<double>());
  EXPECT_LE(v_error.max().item<double>(), 0.5001 / 255 * second_largest.cpu().max().item<double>());
  EXPECT_TRUE(first.cpu().narrow(0, kSize, 24).equal(codes.narrow(0, kSize, 24)));
}

TEST_P(OpsTest, FinishStepClipsAndStopsAtTheFirstBadStep) {
  at::Tensor state = at::zeros({kStepStateFields}, at::kDouble), outputs = at::zeros({kStepOutputFields});
  auto* numbers = reinterpret_cast<StepState*>(state.mutable_data_ptr<double>());
  numbers->loss_scale = 1;
  at::Tensor term_rows = OnDevice(at::tensor({20.0, 3.0, 0.0, 0.0, 0.0, 0.0}, at::kDouble).view({3, 2}));
  state = OnDevice(state);
  outputs = OnDevice(outputs);
  const auto finish = [&](double sum_of_squares, double step) {
    const at::Tensor inputs = OnDevice(at::tensor({step, 0.25, 10.0, 4.0}, at::kDouble));
    const at::Tensor squares = OnDevice(at::tensor({sum_of_squares}, at::kDouble));
    ops::FinishStep(squares, inputs, /*max_norm=*/2, /*scaled=*/false, state, term_rows, outputs);
    const at::Tensor host = outputs.cpu();
    return *reinterpret_cast<const StepOutputs*>(host.const_data_ptr<float>());
  };
  const StepOutputs good = finish(16, 1);  // norm 4 is clipped to 2
  EXPECT_NEAR(good.gradient_divisor, 2, 1e-5);
  EXPECT_EQ(good.found_inf, 0);
  EXPECT_EQ(good.update, 1);
  EXPECT_TRUE(term_rows.cpu().equal(at::tensor({0.0, 0.0, 20.0, 3.0, 10.0, 4.0}, at::kDouble).view({3, 2})));
  EXPECT_EQ(finish(INFINITY, 2).found_inf, 1);
  EXPECT_EQ(finish(16, 3).found_inf, 1) << "after a bad step nothing may change";
  const at::Tensor host = state.cpu();
  const auto* after = reinterpret_cast<const StepState*>(host.const_data_ptr<double>());
  EXPECT_EQ(after->bad_step, 2);
  EXPECT_EQ(after->updates, 1);
}

TEST_P(OpsTest, FinishStepStopsAtATermThatIsNotFinite) {
  at::Tensor state = at::zeros({kStepStateFields}, at::kDouble);
  reinterpret_cast<StepState*>(state.mutable_data_ptr<double>())->loss_scale = 1;
  state = OnDevice(state);
  at::Tensor outputs = OnDevice(at::zeros({kStepOutputFields}));
  at::Tensor term_rows = OnDevice(at::zeros({3, 2}, at::kDouble));
  term_rows[0][1].fill_(INFINITY);
  const at::Tensor squares = OnDevice(at::ones({1}, at::kDouble));
  const auto bad_step = [&](double step, double second_denominator) {
    const at::Tensor inputs = OnDevice(at::tensor({step, 0.0, 1.0, second_denominator}, at::kDouble));
    ops::FinishStep(squares, inputs, /*max_norm=*/0, /*scaled=*/false, state, term_rows, outputs);
    const at::Tensor host = state.cpu();
    return reinterpret_cast<const StepState*>(host.const_data_ptr<double>())->bad_step;
  };
  EXPECT_EQ(bad_step(1, 0), 0) << "a term that the step says nothing of";
  term_rows[0][1].fill_(INFINITY);
  EXPECT_EQ(bad_step(2, 1), 2);
}

TEST_P(OpsTest, FinishStepSkipsAStepThatStandsOut) {
  at::Tensor state = at::zeros({kStepStateFields}, at::kDouble);
  auto* numbers = reinterpret_cast<StepState*>(state.mutable_data_ptr<double>());
  numbers->loss_scale = 1;
  numbers->term_weights[1] = 1;
  numbers->outliers.limits = {.loss_z = 3, .grad_norm_z = 0};
  state = OnDevice(state);
  at::Tensor outputs = OnDevice(at::zeros({kStepOutputFields}));
  at::Tensor term_rows = OnDevice(at::zeros({3, 2}, at::kDouble));
  const at::Tensor squares = OnDevice(at::ones({1}, at::kDouble));
  const auto skipped = [&](int step, double second_mean) {
    term_rows[0].copy_(at::tensor({1000.0 * step, 4 * second_mean}, at::kDouble));
    const at::Tensor inputs = OnDevice(at::tensor({double(step), 0.25, 1.0, 4.0}, at::kDouble));
    ops::FinishStep(squares, inputs, /*max_norm=*/0, /*scaled=*/false, state, term_rows, outputs);
    const at::Tensor host = outputs.cpu();
    return reinterpret_cast<const StepOutputs*>(host.const_data_ptr<float>())->found_inf == 1;
  };
  for (int step = 1; step <= 150; ++step) EXPECT_FALSE(skipped(step, 2 + 0.1 * (step % 2)));
  EXPECT_TRUE(skipped(151, 3));
  EXPECT_FALSE(skipped(152, 2));
  const at::Tensor host = state.cpu();
  const auto* after = reinterpret_cast<const StepState*>(host.const_data_ptr<double>());
  EXPECT_EQ(after->updates, 151);
  EXPECT_EQ(after->outliers.skipped_steps, 1);
}

/// The scan of an operator's test: its tensors on the device, the storage's rounded values in double.
class ScanOperators {
 public:
  ScanOperators(test::RandomScan scan, int64_t chunk, int64_t code, at::Device device, at::ScalarType storage)
      : exact_(std::move(scan)), chunk_(chunk), code_(code) {
    for (at::Tensor* of_rows : {&exact_.b_nz, &exact_.d_c_nz}) {
      *of_rows = of_rows->to(PrecisionDtype(static_cast<Precision>(code))).to(at::kDouble);
    }
    b_nz = exact_.b_nz.to(storage).to(device);
    d_c_nz = exact_.d_c_nz.to(storage).to(device);
    pieces_c5_ = ScanPieceTable(exact_.spans, chunk).to(device);
    const auto on_device = [&](const at::Tensor& tensor, at::ScalarType dtype) {
      return tensor.defined() ? std::optional<at::Tensor>(tensor.to(dtype).to(device)) : std::nullopt;
    };
    log_modulus_k_ = on_device(exact_.decay.log_modulus_k, at::kDouble);
    angle_k_ = on_device(exact_.decay.angle_k, at::kDouble);
    lambda_nz_ = on_device(exact_.decay.lambda_nz, at::kFloat);
    initial_sz_ = exact_.initial_sz.to(at::kFloat).to(device);
    d_last_sz_ = exact_.d_last_sz.to(at::kFloat).to(device);
    c_nz = at::empty_like(b_nz);
    d_b_nz = at::empty_like(b_nz);
    states_cz = at::empty({pieces_c5_.size(0), b_nz.size(1)}, initial_sz_.options());
    last_sz = at::empty_like(initial_sz_);
    d_initial_sz = at::empty_like(initial_sz_);
    if (lambda_nz_) {
      d_lambda_nz = at::empty_like(*lambda_nz_);
    } else {
      d_lambda_z = at::empty({b_nz.size(1)}, log_modulus_k_->options());
    }
  }
  void Run() {
    ops::DiagonalScan(b_nz, log_modulus_k_, angle_k_, lambda_nz_, pieces_c5_, initial_sz_, chunk_, code_,
                      c_nz, states_cz, last_sz);
    ops::DiagonalScanBackward(b_nz, log_modulus_k_, angle_k_, lambda_nz_, pieces_c5_, states_cz, d_c_nz,
                              d_last_sz_, chunk_, code_, d_b_nz, d_lambda_z, d_lambda_nz, d_initial_sz);
  }
  /// c in double, row by row.
  at::Tensor ExactC() const {
    return test::ReferenceScan(exact_.spans, exact_.Lambdas(), exact_.b_nz, exact_.initial_sz);
  }
  /// The gradients in double.
  ScanGradients ExactGradients() const {
    ScanGradients gradients{.b_nz = at::empty_like(exact_.b_nz),
                            .initial_sz = at::empty_like(exact_.initial_sz)};
    if (lambda_nz_) {
      gradients.lambda_nz = at::empty_like(exact_.b_nz);
    } else {
      gradients.lambda_z = at::empty({b_nz.size(1)}, at::kDouble);
    }
    TorchScanBackward({ScanKind::kSequential}, exact_.decay, exact_.b_nz, exact_.spans,
                      {.initial_sz = exact_.initial_sz}, exact_.d_c_nz, exact_.d_last_sz, gradients);
    return gradients;
  }

  at::Tensor b_nz, d_c_nz, c_nz, states_cz, d_b_nz, last_sz, d_initial_sz;
  std::optional<at::Tensor> d_lambda_z, d_lambda_nz;

 private:
  test::RandomScan exact_;
  int64_t chunk_, code_;
  at::Tensor pieces_c5_, initial_sz_, d_last_sz_;
  std::optional<at::Tensor> log_modulus_k_, angle_k_, lambda_nz_;
};

TEST_P(OpsTest, DropoutDropsWhatItsDefinitionSays) {
  constexpr double kProbability = 0.3;
  const Rng rng(test::TestSeed(), "dropout of operators");
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  // Odd widths share no bits between rows; 5 x 3 elements are less than a block.
  for (const auto& [rows, width] : {std::pair<int64_t, int64_t>{5, 3}, {9, 64}, {7, 601}}) {
    const at::Tensor x = Stored({rows, width}, 1);
    at::Tensor numbers = at::empty({rows}, at::kLong), out = Empty({rows, width}, storage_);
    at::Tensor expected = at::zeros({rows, width}, at::kDouble);
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t number = 1 + (int64_t{3} << (9 * row % 40));
      numbers[row] = number;
      for (int64_t column = 0; column < width; ++column) {
        const int64_t pairs = (width + 1) / 2;
        const uint64_t bits = rng.Bits(static_cast<uint64_t>(number * pairs + column / 2));
        const auto half = static_cast<uint32_t>(column % 2 == 0 ? bits : bits >> 32);
        if (half >= kProbability * 0x1p32) {
          expected.mutable_data_ptr<double>()[row * width + column] = 1 / (1 - kProbability);
        }
      }
    }
    expected.mul_(Double(x));
    ops::Dropout(x, OnDevice(numbers), static_cast<int64_t>(rng.key()), kProbability, code_, out);
    EXPECT_LT(RelativeDifference(Double(out), expected), tolerance());
    EXPECT_TRUE(Double(out).eq(0).equal(expected.eq(0)));
    at::Tensor in_place = x.clone();
    ops::Dropout(in_place, OnDevice(numbers), static_cast<int64_t>(rng.key()), kProbability, code_, in_place);
    EXPECT_TRUE(Double(in_place).equal(Double(out)));
  }
}

TEST_P(OpsTest, Nf4IsReadWithTheBitsOfItsDefinition) {
  // The last pack, block and block of scales are full or not; odd sizes end within a byte.
  for (const int64_t size : {1, 64, 999, 64 * 256 + 72}) {
    SCOPED_TRACE("size " + std::to_string(size));
    const at::Tensor codes = at::randint(256, {(size + 1) / 2}, at::kByte),
                     scales = at::randint(256, {(size + 63) / 64}, at::kByte),
                     magnitudes = RandomTensor({(scales.numel() + 255) / 256}, 1),
                     mean = RandomTensor({1}, 2);
    at::Tensor out = Empty({size}, storage_), expected = at::empty({size});
    for (int64_t i = 0; i < size; ++i) {
      const uint8_t byte = codes.const_data_ptr<uint8_t>()[i / 2];
      const int64_t block = i / 64;
      // Volatile: nothing is contracted, so each step is rounded.
      volatile float magnitude = DynamicMap()[scales.const_data_ptr<uint8_t>()[block]] *
                                 magnitudes.const_data_ptr<float>()[block / 256];
      magnitude = magnitude + mean.const_data_ptr<float>()[0];
      expected.mutable_data_ptr<float>()[i] = Nf4CodeBook()[i % 2 == 0 ? byte >> 4 : byte & 15] * magnitude;
    }
    ops::DequantizeNf4(OnDevice(codes), OnDevice(scales), OnDevice(magnitudes), OnDevice(mean), code_, out);
    EXPECT_TRUE(Double(out).equal(Rounded(expected)));
  }
}

TEST_P(OpsTest, DiagonalScanAndItsBackwardEqualTheRecurrence) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  for (const bool selective : {false, true}) {
    // 70 channels are more than a block of a GPU has; 1, 7 and 300 rows a chunk: many, ragged, one.
    const test::RandomScan scan = test::MakeRandomScan({0, 1, 64, 65, 301, 600}, 70, selective);
    for (const int64_t chunk : {1, 7, 64, 300}) {
      SCOPED_TRACE("chunk " + std::to_string(chunk) + (selective ? ", selective" : ""));
      ScanOperators operators(scan, chunk, code_, device_, storage_);
      operators.Run();
      const at::Tensor exact_c_nz = operators.ExactC();
      const ScanGradients exact = operators.ExactGradients();
      EXPECT_LT(RelativeDifference(Double(operators.c_nz), exact_c_nz), tolerance() + 1e-5);
      EXPECT_LT(RelativeDifference(Double(operators.d_b_nz), exact.b_nz), tolerance() + 1e-5);
      EXPECT_LT(RelativeDifference(Double(operators.last_sz[4]), exact_c_nz[599]), 1e-5);
      EXPECT_LT(RelativeDifference(Double(operators.d_initial_sz), exact.initial_sz), 1e-5);
      EXPECT_LT(RelativeDifference(Double(selective ? *operators.d_lambda_nz : *operators.d_lambda_z),
                                   selective ? exact.lambda_nz : exact.lambda_z),
                1e-5);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, OpsTest,
                         testing::Combine(testing::Values(at::kCPU, test::kTestedDevice),
                                          testing::Values(Precision::kFp32, Precision::kBf16,
                                                          Precision::kFp16)),
                         [](const auto& info) {
                           return test::NameOfDevice(std::get<0>(info.param)) + "_" +
                                  PrecisionName(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace trainwright
