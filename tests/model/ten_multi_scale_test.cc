// The multi-scale block of a TEN layer, beside its formulas in double.
#include "lib/model/ten_multi_scale.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "lib/spec/ten_family.h"
#include "tests/model/inputs.h"
#include "tests/model/small_models.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::kCpu;
using test::kFp32Numerics;
using test::RelativeDifference;

constexpr int64_t kWidth = 12, kEigenstates = 8;
constexpr char kPrefix[] = "ten.layers.0.";

ModelConfig ConfigOf(TenInit init) {
  ModelConfig config;
  config.family = &TenFamily();
  config.vocab_size = 10;
  config.hidden_size = kWidth;
  config.intermediate_size = 8;
  config.num_layers = 1;
  config.own = FamilyFields::Of(
      TenFields{.eigenstates = kEigenstates, .init = init, .windows = {1, 2, 4, 8}, .scan_chunk = 3});
  return config;
}

at::Tensor Normal(const std::string& name, const std::vector<int64_t>& shape) {
  at::Tensor tensor = at::empty(shape);
  Rng(test::TestSeed(), "multi-scale/" + name)
      .FillNormal(0, static_cast<uint64_t>(tensor.numel()), 1.0, tensor.mutable_data_ptr<float>());
  return tensor;
}

/// Of each parameter by its name without the prefix.
using Doubles = std::map<std::string, at::Tensor>;

/// The states [M, 2 k] of one window's cell, from the means of what is projected for it.
at::Tensor States(TenInit init, const at::Tensor& a_k, const at::Tensor& w_k, const at::Tensor& means_mz) {
  const int64_t k = a_k.numel();
  const bool lru = init == TenInit::kLru;
  const at::Tensor modulus = lru ? a_k.exp().neg().exp() : a_k.sigmoid(), angle = lru ? w_k.exp() : w_k;
  const at::Tensor re = modulus.mul(angle.cos()), im = modulus.mul(angle.sin());
  const at::Tensor inputs_mz =
      lru ? means_mz.mul(at::cat({modulus, modulus}).square().neg().add(1).sqrt()) : means_mz;
  at::Tensor c_re = at::zeros_like(a_k), c_im = at::zeros_like(a_k);
  std::vector<at::Tensor> states;
  for (int64_t m = 0; m < inputs_mz.size(0); ++m) {
    const at::Tensor next_re = re.mul(c_re).sub(im.mul(c_im)).add(inputs_mz[m].narrow(0, 0, k));
    c_im = re.mul(c_im).add(im.mul(c_re)).add(inputs_mz[m].narrow(0, k, k));
    c_re = next_re;
    states.push_back(at::cat({c_re, c_im}).unsqueeze(0));
  }
  return at::cat(states);
}

/// What the block adds to the rows of one span.
at::Tensor UpdateOfSpan(const ModelConfig& config, const Doubles& p, const at::Tensor& x_nd) {
  const TenFields& fields = TenFieldsOf(config);
  const at::Tensor centred = x_nd.sub(x_nd.mean(1, /*keepdim=*/true));
  const at::Tensor variance = centred.square().mean(1, /*keepdim=*/true);
  const at::Tensor xm = centred.div(variance.add(config.rms_norm_eps).sqrt())
                            .mul(p.at("multi_scale_norm.weight"))
                            .add(p.at("multi_scale_norm.bias"));
  at::Tensor o = at::zeros_like(x_nd);
  for (size_t i = 0; i < fields.windows.size(); ++i) {
    const int64_t size = fields.windows[i], count = x_nd.size(0) / size;
    if (count == 0) continue;
    const std::string cell = "multi_scale." + std::to_string(i) + ".";
    const at::Tensor means = xm.narrow(0, 0, count * size)
                                 .reshape({count, size, kWidth})
                                 .mean(1)
                                 .matmul(p.at(cell + "in_proj.weight").t());
    const at::Tensor seen = States(fields.init, p.at(cell + "log_decay"), p.at(cell + "frequency"), means)
                                .matmul(p.at(cell + "out_proj.weight").t());
    for (int64_t t = 0; t < x_nd.size(0); ++t) {
      const int64_t last = (t + 1) / size - 1;
      if (last >= 0) o[t].add_(seen[last]);
    }
  }
  const at::Tensor gate =
      xm.matmul(p.at("multi_scale.gate_proj.weight").t()).add(p.at("multi_scale.gate_proj.bias"));
  return gate.sigmoid().mul(o);
}

at::Tensor ExpectedUpdate(const ModelConfig& config, const Doubles& p, const at::Tensor& x_nd,
                          const SpanTable& spans) {
  std::vector<at::Tensor> updates;
  for (size_t span = 0; span + 1 < spans.starts.size(); ++span) {
    const int64_t begin = spans.starts[span], rows = spans.starts[span + 1] - begin;
    updates.push_back(UpdateOfSpan(config, p, x_nd.narrow(0, begin, rows)));
  }
  return at::cat(updates);
}

/// A block of one layer with random parameters, and what a pass of it needs.
class Block {
 public:
  explicit Block(TenInit init)
      : config_(ConfigOf(init)), block_(config_, ScanKind::kFused, kFp32Numerics, kCpu, &parameters_) {
    block_.AddLayer(kPrefix);
    parameters_.Allocate(kFp32Numerics, kCpu);
    block_.Bind();
    for (const Parameter& parameter : parameters_.all()) {
      at::Tensor value = parameter.value;
      value.copy_(Normal(parameter.name, parameter.shape).mul(0.4));
      if (parameter.name.ends_with("norm.weight")) value.add_(1);
      if (parameter.name.ends_with("log_decay")) value.add_(init == TenInit::kLru ? -1 : 1);
    }
    parameters_.RefreshCompute();
  }

  const ModelConfig& config() const { return config_; }
  FlatParameters& parameters() { return parameters_; }
  Doubles InDouble() const {
    Doubles doubles;
    for (const Parameter& parameter : parameters_.all()) {
      doubles[parameter.name.substr(sizeof(kPrefix) - 1)] = parameter.value.to(at::kDouble);
    }
    return doubles;
  }

  /// \returns what is added to x
  at::Tensor Forward(const at::Tensor& x_nd, const SpanTable& spans,
                     const std::vector<int64_t>& rows_before = {}, const TenMultiScale::Ends& from = {},
                     TenMultiScale::Ends* to = nullptr) {
    rows_ = std::make_unique<TenMultiScale::Rows>(block_.RowsOf(DeviceInput{.spans = spans}, rows_before));
    views_.clear();
    for (const KeptTensor& kept : TenMultiScale::KeptTensors(config_, kFp32Numerics)) {
      const int64_t rows = kept.chunk > 0 ? CountScanChunks(spans, kept.chunk) : x_nd.size(0);
      views_.push_back(kept.tokens_last ? at::empty({kept.width, rows}) : at::empty({rows, kept.width}));
    }
    Residual residual{.stream_nd = x_nd, .update_nd = at::zeros_like(x_nd)};
    block_.Forward(0, *rows_, views_, from, to, ScratchFor(x_nd), residual);
    EXPECT_TRUE(at::equal(residual.stream_nd, x_nd));
    return residual.update_nd;
  }
  /// After Forward.
  /// \returns the gradient of x, of which d_out is that of what the block leaves
  at::Tensor Backward(const at::Tensor& d_out_nd) {
    parameters_.ZeroGradients();
    at::Tensor d_stream_nd = d_out_nd.clone();
    block_.Backward(0, *rows_, views_, {}, ScratchFor(d_out_nd), d_out_nd, /*below=*/true, d_stream_nd);
    return d_stream_nd;
  }

 private:
  static TenMultiScale::Scratch ScratchFor(const at::Tensor& like) {
    return {at::zeros_like(like), at::zeros_like(like), at::zeros_like(like)};
  }

  ModelConfig config_;
  FlatParameters parameters_;
  TenMultiScale block_;
  std::unique_ptr<TenMultiScale::Rows> rows_;
  std::vector<at::Tensor> views_;
};

class TenMultiScaleTest : public testing::TestWithParam<TenInit> {};
INSTANTIATE_TEST_SUITE_P(Inits, TenMultiScaleTest, testing::Values(TenInit::kLru, TenInit::kCompat),
                         [](const auto& info) { return TenInitName(info.param); });

/// Spans of 1, 13, 8 and 20 rows.
SpanTable FourSpans() {
  return SpanTable({0, 1, 14, 22, 42});
}

TEST_P(TenMultiScaleTest, TheUpdateIsThatOfTheFormulas) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  Block block(GetParam());
  const at::Tensor x_nd = Normal("x", {42, kWidth});
  const at::Tensor expected =
      ExpectedUpdate(block.config(), block.InDouble(), x_nd.to(at::kDouble), FourSpans());
  EXPECT_LT(RelativeDifference(block.Forward(x_nd, FourSpans()).to(at::kDouble), expected), 1e-5);
}

TEST_P(TenMultiScaleTest, GradientsAreThoseOfTheFormulas) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  Block block(GetParam());
  const at::Tensor x_nd = Normal("x", {42, kWidth}), d_out_nd = Normal("d_out", {42, kWidth});
  block.Forward(x_nd, FourSpans());
  const at::Tensor d_x_nd = block.Backward(d_out_nd), weights = d_out_nd.to(at::kDouble);
  const auto loss = [&](const Doubles& p, const at::Tensor& x) {
    return ExpectedUpdate(block.config(), p, x, FourSpans()).add(x).mul(weights).sum().item<double>();
  };
  const Doubles exact = block.InDouble();
  const at::Tensor x = x_nd.to(at::kDouble);
  // Along a random direction of each tensor.
  const auto expect = [&](const std::string& name, const at::Tensor& gradient,
                          const std::function<double(const at::Tensor& step)>& loss_at) {
    constexpr double kStep = 1e-5;
    const at::Tensor direction = Normal("direction/" + name, gradient.sizes().vec()).to(at::kDouble);
    const double slope = (loss_at(direction.mul(kStep)) - loss_at(direction.mul(-kStep))) / (2 * kStep);
    const double found = gradient.to(at::kDouble).mul(direction).sum().item<double>();
    EXPECT_NEAR(found, slope, 1e-4 * gradient.norm().item<double>() * direction.norm().item<double>())
        << name;
  };
  expect("x", d_x_nd, [&](const at::Tensor& step) { return loss(exact, x.add(step)); });
  for (const Parameter& parameter : block.parameters().all()) {
    const std::string name = parameter.name.substr(sizeof(kPrefix) - 1);
    EXPECT_GT(parameter.gradient.abs().max().item<double>(), 0) << name;
    expect(name, parameter.gradient, [&](const at::Tensor& step) {
      Doubles moved = exact;
      moved[name] = exact.at(name).add(step);
      return loss(moved, x);
    });
  }
}

TEST_P(TenMultiScaleTest, ASpanGoesOnFromItsStateAndOpenSums) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  Block block(GetParam());
  const at::Tensor x_nd = Normal("x", {29, kWidth});
  const at::Tensor whole = block.Forward(x_nd, SpanTable({0, 29})).clone();
  for (const int64_t first : {1, 5, 8, 16, 28}) {
    TenMultiScale::Ends ends, after;
    const at::Tensor begin =
        block.Forward(x_nd.narrow(0, 0, first), SpanTable({0, static_cast<int32_t>(first)}), {}, {}, &ends)
            .clone();
    // Beside it a span that begins here.
    const at::Tensor rest = at::cat({x_nd.narrow(0, first, 29 - first), x_nd});
    const TenMultiScale::Ends from = {at::cat({ends.scan_sz, at::zeros_like(ends.scan_sz)}),
                                      at::cat({ends.sum_sz, at::zeros_like(ends.sum_sz)})};
    const SpanTable spans({0, static_cast<int32_t>(29 - first), static_cast<int32_t>(58 - first)});
    const at::Tensor end = block.Forward(rest, spans, {first, 0}, from, &after);
    EXPECT_LT(RelativeDifference(at::cat({begin, end}), at::cat({whole, whole})), 1e-5) << first;
    // Both have had the same 29 rows.
    EXPECT_LT(RelativeDifference(after.scan_sz[0], after.scan_sz[1]), 1e-5) << first;
    EXPECT_LT(test::MaxDifference(after.sum_sz[0], after.sum_sz[1]), 1e-5) << first;
  }
}

TEST_P(TenMultiScaleTest, NoRowSeesALaterOne) {
  Block block(GetParam());
  const at::Tensor x_nd = Normal("x", {29, kWidth});
  const at::Tensor before = block.Forward(x_nd, SpanTable({0, 29})).clone();
  for (const int64_t row : {3, 15, 28}) {
    at::Tensor changed = x_nd.clone();
    changed[row].add_(Normal("changed", {kWidth}));
    const at::Tensor after = block.Forward(changed, SpanTable({0, 29}));
    EXPECT_TRUE(at::equal(after.narrow(0, 0, row), before.narrow(0, 0, row))) << row;
    EXPECT_FALSE(at::equal(after[row], before[row])) << row;
  }
}

}  // namespace
}  // namespace trainwright
