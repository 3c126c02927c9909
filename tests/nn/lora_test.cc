// Low-rank adapters and dropout against their definitions in double precision.
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lib/base/error.h"
#include "lib/nn/activation/dropout.h"
#include "lib/nn/activation/dropout_factors.h"
#include "lib/nn/linear/dora_scales.h"
#include "lib/nn/linear/linear.h"
#include "lib/nn/linear/lora.h"
#include "tests/nn/reference.h"
#include "tests/nn/torch_dropout.h"

namespace trainwright {
namespace {

using test::RandomTensor;

const LoraBlocks kBlocks = {.attention = {"self_attn"}, .mlp = {"mlp"}};

at::Tensor Double(const at::Tensor& tensor) {
  return tensor.to(at::kDouble);
}

/// Three matrices that share an input, as attention's projections, and one of another name.
struct Adapted {
  FlatParameters parameters;
  LoraAdapters* adapters = nullptr;

  Adapted(const LoraOptions& options, int64_t in, int64_t rows, const Numerics& numerics = test::kFp32) {
    for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
      parameters.Add(std::string("model.layers.0.self_attn.") + name + ".weight", {rows, in}, true);
    }
    parameters.Add("model.layers.0.mlp.up_proj.weight", {rows, in}, true);
    parameters.set_adapters(std::make_shared<LoraAdapters>(options, kBlocks, &parameters));
    adapters = parameters.adapters();
    parameters.Allocate(numerics, at::Device(at::kCPU));
    for (size_t i = 0; i < parameters.all().size(); ++i) {
      parameters.Assign(i, RandomTensor(parameters[i].shape, 100 + i));
    }
    parameters.RefreshCompute();
  }
  at::Tensor A(size_t weight) { return parameters[Module(weight).a].compute; }
  at::Tensor B(size_t weight) { return parameters[Module(weight).b].compute; }
  at::Tensor Magnitude(size_t weight) { return parameters[Module(weight).magnitude].value; }
  const LoraModule& Module(size_t weight) { return adapters->modules()[*adapters->ModuleOf(weight)]; }
};

struct LoraCase {
  const char* targets;
  int64_t in, rows;
  double dropout;
  bool dora = false;
};

/// ||W_o + s (B A)_o|| of each output.
at::Tensor NormsOf(const at::Tensor& weight, const at::Tensor& a, const at::Tensor& b, double scaling) {
  return Double(weight).add(Double(b).matmul(Double(a)).mul(scaling)).square().sum(1).sqrt();
}

class LoraTest : public testing::TestWithParam<LoraCase> {};

/// The pattern of a module's dropout, element by element from its definition, times 1 / (1 - p).
at::Tensor MaskOf(const std::string& module, const DropoutPosition& position, double probability,
                  int64_t rows, int64_t width) {
  const Rng rng(position.seed, "lora/dropout/" + module, static_cast<uint64_t>(position.step));
  at::Tensor mask = at::empty({rows, width}, at::kDouble);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < width; ++column) {
      size_t sample = position.samples.size() - 1;
      while (position.samples[sample].row > row) --sample;
      const auto [index, first_row, token] = position.samples[sample];
      const uint64_t number =
          (static_cast<uint64_t>(index) << 26) + static_cast<uint64_t>(token + row - first_row);
      const uint64_t pairs = static_cast<uint64_t>(width + 1) / 2;
      const uint64_t bits = rng.Bits(number * pairs + static_cast<uint64_t>(column) / 2);
      const auto half = static_cast<uint32_t>(column % 2 == 0 ? bits : bits >> 32);
      mask.mutable_data_ptr<double>()[row * width + column] =
          half < probability * 4294967296.0 ? 0.0 : 1 / (1 - probability);
    }
  }
  return mask;
}

TEST_P(LoraTest, ForwardAndBackwardAreTheDefinitions) {
  const LoraCase c = GetParam();
  Adapted adapted({.rank = 3, .alpha = 5, .dropout = c.dropout, .targets = c.targets, .dora = c.dora}, c.in,
                  c.rows);
  const int64_t tokens = 9;
  const DropoutPosition position{.seed = 7, .step = 11, .samples = {{5, 0}, {3, 4}, {3000000000, 7}}};
  adapted.adapters->StartDropout(position, tokens, at::Device(at::kCPU));
  const Linear linear(&adapted.parameters, {0, 1, 2});
  const at::Tensor x = RandomTensor({tokens, c.in}, 1), dy = RandomTensor({tokens, 3 * c.rows}, 2);
  at::Tensor y = at::empty({tokens, 3 * c.rows}), d_x = at::full({tokens, c.in}, NAN);
  linear.Forward(x, y);
  linear.Backward(dy, x, d_x);
  at::Tensor expected_d_x = at::zeros({tokens, c.in}, at::kDouble);
  for (size_t i = 0; i < 3; ++i) {
    const at::Tensor columns = Double(y.narrow(1, static_cast<int64_t>(i) * c.rows, c.rows)),
                     d_y = Double(dy.narrow(1, static_cast<int64_t>(i) * c.rows, c.rows)),
                     weight = Double(adapted.parameters[i].compute);
    at::Tensor expected = Double(x).matmul(weight.t()), d_out = d_y, norms;
    if (c.dora && adapted.adapters->ModuleOf(i)) {
      norms = NormsOf(weight, adapted.A(i), adapted.B(i), 5.0 / 3);
      d_out = d_y.mul(Double(adapted.Magnitude(i)).div(norms));
    }
    expected_d_x.add_(d_out.matmul(weight));
    EXPECT_FALSE(adapted.parameters[i].gradient.defined());
    if (adapted.adapters->ModuleOf(i)) {
      const LoraModule& module = adapted.Module(i);
      const at::Tensor a = Double(adapted.A(i)), b = Double(adapted.B(i)),
                       mask = MaskOf(module.name, position, c.dropout, tokens, c.in),
                       input = Double(x).mul(mask);
      expected.add_(input.matmul(a.t()).matmul(b.t()).mul(5.0 / 3));
      const at::Tensor d_down = d_out.matmul(b).mul(5.0 / 3);
      expected_d_x.add_(d_down.matmul(a).mul(mask));
      EXPECT_LT(test::RelativeDifference(adapted.parameters[module.a].gradient, d_down.t().matmul(input)),
                1e-6);
      EXPECT_LT(test::RelativeDifference(adapted.parameters[module.b].gradient,
                                         d_out.t().matmul(input.matmul(a.t())).mul(5.0 / 3)),
                1e-6);
      if (c.dora) {
        EXPECT_LT(test::RelativeDifference(adapted.parameters[module.magnitude].gradient,
                                           d_y.mul(expected).sum(0).div(norms)),
                  1e-6);
        expected.mul_(Double(adapted.Magnitude(i)).div(norms));
      }
    }
    EXPECT_LT(test::RelativeDifference(columns, expected), 1e-6) << i;
  }
  EXPECT_LT(test::RelativeDifference(d_x, expected_d_x), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Cases, LoraTest,
                         testing::Values(LoraCase{"all-linear", 32, 16, 0.0},
                                         LoraCase{"q_proj,v_proj", 32, 16, 0.0},
                                         LoraCase{"k_proj", 9, 5, 0.0}, LoraCase{"attention", 9, 5, 0.3},
                                         LoraCase{"v_proj", 32, 16, 0.5},
                                         LoraCase{"all-linear", 32, 16, 0.0, /*dora=*/true},
                                         LoraCase{"k_proj", 9, 5, 0.0, /*dora=*/true},
                                         LoraCase{"attention", 9, 5, 0.3, /*dora=*/true}));

TEST(LoraLinearTest, GradientsAreThoseOfFiniteDifferences) {
  Adapted adapted({.rank = 2, .alpha = 3, .targets = "attention"}, 6, 4);
  const Linear linear(&adapted.parameters, {0, 1, 2});
  const at::Tensor x = RandomTensor({5, 6}, 1), dy = RandomTensor({5, 12}, 2);
  at::Tensor d_x = at::empty({5, 6});
  linear.Backward(dy, x, d_x);
  // The loss sum(y dy) in double, of one parameter or of x.
  const auto loss = [&](const at::Tensor& input, size_t changed, const at::Tensor& value) {
    double sum = 0;
    for (size_t i = 0; i < 3; ++i) {
      const LoraModule& module = adapted.Module(i);
      const at::Tensor a = module.a == changed ? value : Double(adapted.A(i)),
                       b = module.b == changed ? value : Double(adapted.B(i));
      const at::Tensor y = input.matmul(Double(adapted.parameters[i].compute).t())
                               .add(input.matmul(a.t()).matmul(b.t()).mul(1.5));
      sum += y.mul(Double(dy.narrow(1, 4 * static_cast<int64_t>(i), 4))).sum().item<double>();
    }
    return sum;
  };
  const auto none = static_cast<size_t>(-1);
  EXPECT_LT(test::RelativeDifference(
                d_x, test::NumericalGradient([&](const at::Tensor& t) { return loss(t, none, t); }, x)),
            1e-5);
  for (size_t i = 0; i < 3; ++i) {
    for (const size_t parameter : {adapted.Module(i).a, adapted.Module(i).b}) {
      const at::Tensor expected =
          test::NumericalGradient([&](const at::Tensor& t) { return loss(Double(x), parameter, t); },
                                  adapted.parameters[parameter].value);
      EXPECT_LT(test::RelativeDifference(adapted.parameters[parameter].gradient, expected), 1e-5);
    }
  }
}

// The norm is a constant, as in peft: it stays what it is at the point while the rest moves.
TEST(DoraLinearTest, GradientsAreThoseOfFiniteDifferencesWithTheNormHeldFast) {
  Adapted adapted({.rank = 2, .alpha = 3, .targets = "attention", .dora = true}, 6, 4);
  const Linear linear(&adapted.parameters, {0, 1, 2});
  const at::Tensor x = RandomTensor({5, 6}, 1), dy = RandomTensor({5, 12}, 2);
  at::Tensor d_x = at::empty({5, 6});
  linear.Backward(dy, x, d_x);
  std::vector<at::Tensor> norms;
  for (size_t i = 0; i < 3; ++i) {
    norms.push_back(NormsOf(adapted.parameters[i].compute, adapted.A(i), adapted.B(i), 1.5));
  }
  const auto loss = [&](const at::Tensor& input, size_t changed, const at::Tensor& value) {
    double sum = 0;
    for (size_t i = 0; i < 3; ++i) {
      const LoraModule& module = adapted.Module(i);
      const auto now = [&](size_t index) {
        return index == changed ? value : Double(adapted.parameters[index].value);
      };
      const at::Tensor y = input.matmul(Double(adapted.parameters[i].compute).t())
                               .add(input.matmul(now(module.a).t()).matmul(now(module.b).t()).mul(1.5))
                               .mul(now(module.magnitude).div(norms[i]));
      sum += y.mul(Double(dy.narrow(1, 4 * static_cast<int64_t>(i), 4))).sum().item<double>();
    }
    return sum;
  };
  const auto none = static_cast<size_t>(-1);
  EXPECT_LT(test::RelativeDifference(
                d_x, test::NumericalGradient([&](const at::Tensor& t) { return loss(t, none, t); }, x)),
            1e-5);
  for (size_t i = 0; i < 3; ++i) {
    const LoraModule& module = adapted.Module(i);
    for (const size_t parameter : {module.a, module.b, module.magnitude}) {
      const at::Tensor expected =
          test::NumericalGradient([&](const at::Tensor& t) { return loss(Double(x), parameter, t); },
                                  adapted.parameters[parameter].value);
      EXPECT_LT(test::RelativeDifference(adapted.parameters[parameter].gradient, expected), 1e-5);
    }
  }
}

TEST(DoraLinearTest, StartsAsTheBaseAndScalesFollowTheValues) {
  Adapted adapted({.rank = 4, .alpha = 8, .targets = "attention", .dora = true}, 64, 16);
  const at::Tensor x = RandomTensor({3, 64}, 1);
  const auto outputs = [&] {
    at::Tensor y = at::empty({3, 48});
    Linear(&adapted.parameters, {0, 1, 2}).Forward(x, y);
    return y;
  };
  adapted.adapters->Initialize(5, &adapted.parameters);
  at::Tensor base = at::empty({3, 48});
  for (int64_t i = 0; i < 3; ++i) {
    base.narrow(1, 16 * i, 16).copy_(x.matmul(adapted.parameters[static_cast<size_t>(i)].value.t()));
  }
  const at::Tensor started = outputs();
  EXPECT_LT(test::RelativeDifference(started, base), 1e-6);
  EXPECT_LT(test::RelativeDifference(adapted.Magnitude(1),
                                     Double(adapted.parameters[1].value).square().sum(1).sqrt()),
            1e-6);
  adapted.Magnitude(1).mul_(2);
  adapted.parameters.RefreshCompute();
  EXPECT_LT(test::RelativeDifference(outputs().narrow(1, 16, 16), started.narrow(1, 16, 16).mul(2)), 1e-6);
}

TEST(DoraLinearTest, ARowWithoutANormHasNoOutputAndNoGradientThatIsNotFinite) {
  Adapted adapted({.rank = 2, .alpha = 3, .targets = "q_proj", .dora = true}, 6, 4);
  adapted.parameters.Assign(0, at::zeros({4, 6}));
  adapted.adapters->Initialize(5, &adapted.parameters);
  const Linear linear(&adapted.parameters, {0});
  const at::Tensor x = RandomTensor({5, 6}, 1), dy = RandomTensor({5, 4}, 2);
  at::Tensor y = at::empty({5, 4}), d_x = at::empty({5, 6});
  linear.Forward(x, y);
  linear.Backward(dy, x, d_x);
  EXPECT_EQ(y.abs().max().item<double>(), 0);
  EXPECT_TRUE(d_x.isfinite().all().item<bool>());
  EXPECT_TRUE(adapted.parameters.gradients().isfinite().all().item<bool>());
}

/// The bits that earlier versions trained with: products rounded to fp32, rows added in blocks of 32.
TEST(DoraLinearTest, TheGradientOfMagnitudesIsAddedInBlocksOf32Rows) {
  constexpr int64_t kRows = 2121, kWidth = 19;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor dy = RandomTensor({kRows, 2 * kWidth}, 1).to(type).narrow(1, 7, kWidth),
                     outputs = RandomTensor({kRows, kWidth}, 2).to(type), scale = RandomTensor({kWidth}, 3),
                     norm = RandomTensor({kWidth}, 4).abs().add(0.5), before = RandomTensor({kWidth}, 5);
    at::Tensor y = outputs.clone(), d_magnitude = before.clone();
    ScaleColumnsBackward(scale, norm, dy, y, d_magnitude);
    for (int64_t i = 0; i < kWidth; ++i) {
      float sum = 0;
      for (int64_t first = 0; first < kRows; first += 32) {
        float of_block = 0;
        for (int64_t row = first; row < std::min(kRows, first + 32); ++row) {
          const volatile float product = outputs[row][i].item<float>() * dy[row][i].item<float>();
          of_block += product;
        }
        sum += of_block;
      }
      const volatile float quotient = sum / norm[i].item<float>();
      EXPECT_EQ(d_magnitude[i].item<float>(), before[i].item<float>() + quotient) << i;
    }
    EXPECT_TRUE(y.equal(dy.to(at::kFloat).mul(scale).to(type)));
  }
}

TEST(DoraLinearTest, ShortTypesStayNearFp32) {
  for (const at::ScalarType storage : {at::kBFloat16, at::kFloat}) {
    const LoraOptions options{.rank = 8, .alpha = 16, .targets = "attention", .dora = true};
    const Numerics numerics{Precision::kBf16, storage};
    Adapted exact(options, 64, 32), rounded(options, 64, 32, numerics);
    const at::Tensor x = RandomTensor({300, 64}, 1).to(at::kBFloat16),
                     dy = RandomTensor({300, 96}, 2).to(at::kBFloat16);
    at::Tensor y = at::empty({300, 96}), y_rounded = at::empty({300, 96}, storage),
               d_x = at::empty({300, 64}), d_x_rounded = at::empty({300, 64}, storage);
    const Linear linear(&exact.parameters, {0, 1, 2}), linear_rounded(&rounded.parameters, {0, 1, 2});
    linear.Forward(x.to(at::kFloat), y);
    linear.Backward(dy.to(at::kFloat), x.to(at::kFloat), d_x);
    linear_rounded.Forward(x.to(storage), y_rounded);
    linear_rounded.Backward(dy.to(storage), x.to(storage), d_x_rounded);
    EXPECT_LT(test::RelativeDifference(y_rounded, y), 1e-2);
    EXPECT_LT(test::RelativeDifference(d_x_rounded, d_x), 1e-2);
    for (size_t i = 0; i < 3; ++i) {
      const size_t magnitude = exact.Module(i).magnitude;
      EXPECT_LT(test::RelativeDifference(rounded.parameters[magnitude].gradient,
                                         exact.parameters[magnitude].gradient),
                1e-2);
    }
  }
}

TEST(LoraLinearTest, ColumnsOfAWiderInputAreDroppedAsAnInputOfTheirOwn) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const at::Tensor wide = RandomTensor({5, 14}, 1), x = wide.narrow(1, 6, 6), dy = RandomTensor({5, 4}, 2);
  const auto results = [&](const at::Tensor& input, at::Tensor d_input) {
    Adapted adapted({.rank = 2, .alpha = 3, .dropout = 0.4, .targets = "attention"}, 6, 4);
    adapted.adapters->StartDropout({.seed = 7, .step = 1, .samples = {{0, 0}}}, 5, at::Device(at::kCPU));
    const Linear linear(&adapted.parameters, {0});
    at::Tensor y = at::empty({5, 4});
    linear.Forward(input, y);
    linear.Backward(dy, input, d_input);
    return at::cat({y.flatten(), d_input.flatten(), adapted.parameters.gradients()});
  };
  const at::Tensor d_wide = at::zeros({5, 14});
  EXPECT_LT(test::RelativeDifference(results(x, d_wide.narrow(1, 6, 6)),
                                     results(x.contiguous(), at::empty({5, 6}))),
            1e-6);
  EXPECT_EQ(d_wide.narrow(1, 0, 6).abs().max().item<double>(), 0);
}

TEST(LoraLinearTest, ShortTypesStayNearFp32) {
  for (const at::ScalarType storage : {at::kBFloat16, at::kFloat}) {
    const Numerics numerics{Precision::kBf16, storage};
    Adapted exact({.rank = 8, .alpha = 16}, 64, 32), rounded({.rank = 8, .alpha = 16}, 64, 32, numerics);
    const at::Tensor x = RandomTensor({40, 64}, 1).to(at::kBFloat16),
                     dy = RandomTensor({40, 96}, 2).to(at::kBFloat16);
    at::Tensor y = at::empty({40, 96}), y_rounded = at::empty({40, 96}, storage), d_x = at::empty({40, 64}),
               d_x_rounded = at::empty({40, 64}, storage);
    const Linear linear(&exact.parameters, {0, 1, 2}), linear_rounded(&rounded.parameters, {0, 1, 2});
    linear.Forward(x.to(at::kFloat), y);
    linear.Backward(dy.to(at::kFloat), x.to(at::kFloat), d_x);
    linear_rounded.Forward(x.to(storage), y_rounded);
    linear_rounded.Backward(dy.to(storage), x.to(storage), d_x_rounded);
    EXPECT_LT(test::RelativeDifference(y_rounded, y), 1e-2);
    EXPECT_LT(test::RelativeDifference(d_x_rounded, d_x), 1e-2);
    for (const LoraModule& module : exact.adapters->modules()) {
      if (module.name.ends_with("up_proj")) continue;
      for (const size_t index : {module.a, module.b}) {
        EXPECT_LT(
            test::RelativeDifference(rounded.parameters[index].gradient, exact.parameters[index].gradient),
            1e-2);
      }
    }
  }
}

TEST(LoraAdaptersTest, StartAsPeftsAndChangeNothing) {
  Adapted adapted({.rank = 4, .alpha = 8}, 64, 16);
  const at::Tensor x = RandomTensor({3, 64}, 1);
  adapted.adapters->Initialize(5, &adapted.parameters);
  at::Tensor y = at::empty({3, 48});
  Linear(&adapted.parameters, {0, 1, 2}).Forward(x, y);
  at::Tensor bare = at::empty({3, 48});
  FlatParameters plain;
  for (size_t i = 0; i < 3; ++i) plain.Add("w" + std::to_string(i), {16, 64}, true);
  plain.Allocate(test::kFp32, at::Device(at::kCPU));
  for (size_t i = 0; i < 3; ++i) plain.Assign(i, adapted.parameters[i].value);
  Linear(&plain, {0, 1, 2}).Forward(x, bare);
  EXPECT_TRUE(at::equal(y, bare));
  // torch's kaiming_uniform_(a = sqrt 5): within +-1/sqrt(in), of deviation 1/sqrt(3 in).
  const at::Tensor a = adapted.A(0);
  EXPECT_LE(a.abs().max().item<double>(), 1.0 / 8);
  EXPECT_NEAR(a.std().item<double>(), 1 / std::sqrt(3 * 64.0), 0.01);
  EXPECT_FALSE(at::equal(a, adapted.A(1)));
}

TEST(LoraAdaptersTest, ScalingIsAlphaOverRankOrItsRoot) {
  EXPECT_EQ((LoraOptions{.rank = 16, .alpha = 32}).scaling(), 2.0);
  EXPECT_EQ((LoraOptions{.rank = 16, .alpha = 32, .rank_stabilized = true}).scaling(), 8.0);
}

TEST(LoraTargetsTest, GroupsAndNamesChooseMatricesOfLayersAlone) {
  FlatParameters parameters;
  parameters.Add("model.embed_tokens.weight", {8, 4}, true);
  for (const char* name : {"self_attn.q_proj", "self_attn.o_proj", "mlp.down_proj"}) {
    for (const char* layer : {"0", "1"}) {
      parameters.Add("model.layers." + std::string(layer) + "." + name + ".weight", {4, 4}, true);
    }
  }
  parameters.Add("model.layers.0.input_layernorm.weight", {4}, false);
  parameters.Add("lm_head.weight", {8, 4}, true);
  const auto chosen = [&](const std::string& targets) { return LoraTargets(targets, parameters, kBlocks); };
  EXPECT_EQ(chosen("all-linear"), (std::vector<size_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(chosen("attention"), (std::vector<size_t>{1, 2, 3, 4}));
  EXPECT_EQ(chosen("mlp"), (std::vector<size_t>{5, 6}));
  EXPECT_EQ(chosen("down_proj,self_attn.q_proj"), (std::vector<size_t>{1, 2, 5, 6}));
  EXPECT_EQ(chosen("layers.1.mlp.down_proj"), (std::vector<size_t>{6}));
  for (const char* unknown : {"", "lm_head", "proj", "q_proj,", "embed_tokens", "input_layernorm"}) {
    try {
      chosen(unknown);
      ADD_FAILURE() << "took '" << unknown << "'";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      EXPECT_NE(error.hint().find("q_proj, o_proj, down_proj"), std::string::npos) << error.hint();
    }
  }
}

TEST(DropoutTest, KeepsTheShareAndTheMean) {
  const at::Tensor x = at::full({200, 333}, 1.0f);
  at::Tensor out = at::empty({200, 333});
  Dropout(test::kFp32, 77, at::arange(200, at::kLong), 0.25, x, out);
  // 66600 draws: five deviations of the share are 0.0084.
  EXPECT_NEAR(out.eq(0).to(at::kDouble).mean().item<double>(), 0.25, 0.0084);
  EXPECT_TRUE(out.ne(0).logical_and(out.sub(1 / 0.75f).abs().gt(1e-6)).any().item<bool>() == false);
}

TEST(DropoutTest, ARowsPatternIsThatOfItsNumberWhereverABatchBegins) {
  for (const int64_t width : {7, 64, 1025, 2100}) {
    const at::Tensor x = RandomTensor({10, width}, 1);
    at::Tensor whole = at::empty({10, width}), part = at::empty({4, width});
    Dropout(test::kFp32, 77, at::arange(20, 30, at::kLong), 0.5, x, whole);
    Dropout(test::kFp32, 77, at::arange(26, 30, at::kLong), 0.5, x.narrow(0, 6, 4), part);
    EXPECT_TRUE(at::equal(whole.narrow(0, 6, 4), part)) << width;
    EXPECT_FALSE(at::equal(whole[0].ne(0), whole[1].ne(0))) << width;
  }
}

TEST(DropoutTest, TorchsOperatorsDropTheSame) {
  const at::Tensor rows_n = at::arange(5, at::kLong).mul(int64_t{1} << 60).add(7);  // counters wrap
  for (const int64_t width : {7, 64}) {
    for (const Numerics& numerics :
         {test::kFp32, Numerics{Precision::kBf16, at::kBFloat16}, Numerics{Precision::kBf16, at::kFloat}}) {
      const at::Tensor x = RandomTensor({5, width}, 1).to(at::kBFloat16).to(numerics.storage);
      at::Tensor own = at::empty_like(x), by_torch = at::empty_like(x);
      Dropout(numerics, 77, rows_n, 0.3, x, own);
      test::DropoutByTorch(numerics, 77, rows_n, 0.3, x, by_torch);
      EXPECT_TRUE(at::equal(own, by_torch)) << width;
    }
  }
}

TEST(DropoutPositionTest, ARowsNumberIsThatOfItsSampleInTheStepAndItsTokenInTheSample) {
  const auto numbers = [](std::vector<DropoutPosition::Sample> samples, int64_t tokens) {
    const at::Tensor rows_n = DropoutPosition{.samples = std::move(samples)}.RowNumbers(tokens);
    const auto* rows = rows_n.const_data_ptr<int64_t>();
    return std::vector<int64_t>(rows, rows + tokens);
  };
  const int64_t sample = int64_t{1} << 26;
  EXPECT_EQ(numbers({{0, 0}}, 3), (std::vector<int64_t>{0, 1, 2}));
  // An empty sample takes no row.
  EXPECT_EQ(numbers({{4, 0}, {2, 2}, {7, 2}}, 4),
            (std::vector<int64_t>{4 * sample, 4 * sample + 1, 7 * sample, 7 * sample + 1}));
}

}  // namespace
}  // namespace trainwright
