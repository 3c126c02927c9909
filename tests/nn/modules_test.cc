// Rotary positions, embedding, linear, flat parameters, rounding, sums.
#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>

#include "lib/nn/activation/elementwise.h"
#include "lib/nn/cpu/kernels.h"
#include "lib/nn/embedding/embedding.h"
#include "lib/nn/linear/bias.h"
#include "lib/nn/linear/linear.h"
#include "lib/nn/parameters/flat_parameters.h"
#include "lib/nn/position/rope.h"
#include "lib/nn/reduce.h"
#include "tests/nn/reference.h"

namespace trainwright {
namespace {

using test::RandomTensor;

TEST(RopeTest, TurnsPairsAsComplexNumbers) {
  const AttentionShape shape{7, 3, 1, 6};
  const at::Tensor before = RandomTensor({7, shape.row()}, 1);
  const at::Tensor positions = at::arange(7, at::kLong).mul(100);
  const RopeRows table = RopeTable({}, 6).RowsOf(positions, positions, {0, 7});
  at::Tensor after = before.clone();
  ApplyRope(test::kFp32, table, shape, false, after);
  for (int64_t n = 0; n < 7; ++n) {
    for (int64_t head = 0; head < 4; ++head) {
      for (int64_t i = 0; i < 3; ++i) {
        const double angle =
            100.0 * static_cast<double>(n) * std::pow(10000.0, -static_cast<double>(2 * i) / 6.0);
        const auto pair = [&](const at::Tensor& x) {
          return std::complex<double>(x[n][head * 6 + i].item<double>(),
                                      x[n][head * 6 + 3 + i].item<double>());
        };
        EXPECT_LT(std::abs(pair(after) - pair(before) * std::polar(1.0, angle)), 2e-4);
      }
    }
  }
  EXPECT_TRUE(at::equal(after.narrow(1, 24, 6), before.narrow(1, 24, 6)));  // values are not turned
}

TEST(RopeTest, TurnsThePartOfAHeadThatTheTableHasAndRoundsTheRest) {
  const AttentionShape whole{5, 3, 1, 4}, partial{5, 3, 1, 10};
  const at::Tensor positions = at::arange(5, at::kLong);
  const at::Tensor before = RandomTensor({5, partial.row()}, 1);
  const RopeRows table = RopeTable({.partial_rotary_factor = 0.4}, 10).RowsOf(positions, positions, {0, 5});
  const Numerics numerics{Precision::kBf16, at::kFloat};
  at::Tensor after = before.clone();
  ApplyRope(numerics, table, partial, false, after);
  const auto cut = [](const at::Tensor& qkv, int64_t begin, int64_t count) {
    return qkv.view({5, 5, 10}).narrow(2, begin, count).contiguous();
  };
  at::Tensor turned = cut(before, 0, 4).view({5, whole.row()}).contiguous();
  ApplyRope(numerics, RopeTable({}, 4).RowsOf(positions, positions, {0, 5}), whole, false, turned);
  EXPECT_TRUE(at::equal(cut(after, 0, 4).view({5, whole.row()}), turned));
  EXPECT_TRUE(at::equal(cut(after, 4, 6), cut(before, 4, 6).to(at::kBFloat16).to(at::kFloat)));
}

TEST(RopeTest, BackwardIsTheTransposedRotation) {
  const AttentionShape shape{5, 2, 2, 4};
  const at::Tensor positions = at::arange(5, at::kLong);
  const RopeRows table = RopeTable({.theta = 100.0}, 4).RowsOf(positions, positions, {0, 5});
  const at::Tensor x = RandomTensor({5, shape.row()}, 1), y = RandomTensor({5, shape.row()}, 2);
  at::Tensor turned = x.clone(), turned_back = y.clone();
  ApplyRope(test::kFp32, table, shape, false, turned);
  ApplyRope(test::kFp32, table, shape, true, turned_back);
  // <R x, y> = <x, R^T y>
  EXPECT_NEAR(turned.mul(y).sum().item<double>(), x.mul(turned_back).sum().item<double>(), 1e-4);
}

TEST(RopeTest, AGrowingTableKeepsItsValues) {
  RopeTable small({}, 8), large({}, 8);
  const at::Tensor few = at::arange(10, at::kLong), many = at::arange(1000, at::kLong);
  const at::Tensor before = small.RowsOf(few, few, {0, 10}).cosines_pk.clone();
  const RopeRows grown = small.RowsOf(many, many, {0, 1000});
  EXPECT_TRUE(at::equal(grown.cosines_pk.narrow(0, 0, 10), before));
  EXPECT_TRUE(at::equal(grown.sines_pk, large.RowsOf(many, many, {0, 1000}).sines_pk));
}

TEST(EmbeddingTest, BackwardSumsEqualTokensWhateverTheThreadCount) {
  const int threads = at::get_num_threads();
  const at::Tensor d_out = RandomTensor({50, 37}, 1);
  const at::Tensor tokens = at::arange(50, at::kLong).remainder(7);
  at::Tensor expected = at::zeros({9, 37}, at::kDouble);
  for (int64_t i = 0; i < 50; ++i) expected[i % 7].add_(d_out[i].to(at::kDouble));
  at::Tensor first;
  for (const int count : {1, 2, 3}) {
    at::set_num_threads(count);
    at::Tensor gradient = at::zeros({9, 37});
    EmbedBackward(d_out, tokens, gradient);
    EXPECT_LT(test::RelativeDifference(gradient, expected), 1e-6);
    if (!first.defined()) first = gradient;
    EXPECT_TRUE(at::equal(gradient, first)) << count << " threads";
  }
  at::set_num_threads(threads);
}

TEST(EmbeddingTest, AddedRowsAreThoseOfTheIndices) {
  const at::Tensor table = RandomTensor({9, 37}, 1), before = RandomTensor({50, 37}, 2);
  const at::Tensor positions = at::arange(50, at::kLong).remainder(7);
  at::Tensor out = before.clone();
  AddEmbedding(table, positions, out);
  for (int64_t i = 0; i < 50; ++i) EXPECT_TRUE(at::equal(out[i], before[i].add(table[i % 7]))) << i;
}

TEST(BiasTest, IsAddedAndRoundedOnce) {
  const at::Tensor y = RandomTensor({9, 37}, 1), bias = RandomTensor({37}, 2);
  at::Tensor sum = y.clone();
  AddBias(test::kFp32, bias, sum);
  EXPECT_TRUE(at::equal(sum, y.add(bias)));
  const at::Tensor brains = y.to(at::kBFloat16);
  at::Tensor native = brains.clone();
  AddBias({Precision::kBf16, at::kBFloat16}, bias, native);
  EXPECT_TRUE(at::equal(native, brains.to(at::kFloat).add(bias).to(at::kBFloat16)));
  at::Tensor emulated = y.clone();
  AddBias({Precision::kBf16, at::kFloat}, {}, emulated);
  EXPECT_TRUE(at::equal(emulated, brains.to(at::kFloat)));
}

TEST(BiasTest, GradientIsTheColumnSumWhateverTheThreadCount) {
  const int threads = at::get_num_threads();
  const at::Tensor wide = RandomTensor({700, 50}, 1), dy = wide.narrow(1, 5, 37);
  const at::Tensor expected = dy.to(at::kDouble).sum(0).mul(2);
  at::Tensor first;
  for (const int count : {1, 2, 3}) {
    at::set_num_threads(count);
    at::Tensor gradient = at::zeros({37});
    AccumulateBiasGradient(test::kFp32, dy, gradient);
    AccumulateBiasGradient(test::kFp32, dy, gradient);
    EXPECT_LT(test::RelativeDifference(gradient, expected), 1e-6);
    if (!first.defined()) first = gradient;
    EXPECT_TRUE(at::equal(gradient, first)) << count << " threads";
  }
  at::set_num_threads(threads);
}

class LinearTest : public testing::TestWithParam<int64_t> {};  // rows of the first parameter

TEST_P(LinearTest, SeveralParametersMultiplyAsOneMatrix) {
  FlatParameters parameters;
  const std::vector<size_t> indices = {parameters.Add("a", {GetParam(), 8}, true),
                                       parameters.Add("b", {6, 8}, true), parameters.Add("c", {5, 8}, true)};
  parameters.Allocate(test::kFp32, at::Device(at::kCPU));
  uint64_t stream = 1;
  std::vector<at::Tensor> weights;
  for (const Parameter& parameter : parameters.all()) {
    at::Tensor value = parameter.value;
    value.copy_(RandomTensor(parameter.shape, stream++));
    weights.push_back(value.to(at::kDouble));
  }
  const at::Tensor weight = at::cat(weights);
  const Linear linear(&parameters, indices);
  ASSERT_EQ(linear.out_features(), GetParam() + 11);
  const at::Tensor x = RandomTensor({3, 8}, 10), dy = RandomTensor({3, linear.out_features()}, 11);
  at::Tensor y = at::empty({3, linear.out_features()}), d_x = at::full({3, 8}, NAN);
  linear.Forward(x, y);
  EXPECT_LT(test::RelativeDifference(y, x.to(at::kDouble).matmul(weight.t())), 1e-6);
  linear.Backward(dy, x, d_x);
  linear.Backward(dy, x, d_x);  // weight gradients accumulate, d_x does not
  EXPECT_LT(test::RelativeDifference(d_x, dy.to(at::kDouble).matmul(weight)), 1e-6);
  std::vector<at::Tensor> gradients;
  for (const Parameter& parameter : parameters.all()) gradients.push_back(parameter.gradient);
  EXPECT_LT(
      test::RelativeDifference(at::cat(gradients), dy.to(at::kDouble).t().matmul(x.to(at::kDouble)).mul(2)),
      1e-6);
}

// 4 x 8 fills 64-byte lines, so the parameters are one matrix; 3 x 8 leaves padding between them.
INSTANTIATE_TEST_SUITE_P(Rows, LinearTest, testing::Values(4, 3));

TEST(FlatParametersTest, EveryParameterStartsOn64Bytes) {
  FlatParameters parameters;
  for (const int64_t size : {1, 16, 17, 100}) parameters.Add("p" + std::to_string(size), {size}, false);
  parameters.Allocate(test::kFp32, at::Device(at::kCPU));
  for (const Parameter& parameter : parameters.all()) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(parameter.value.const_data_ptr()) % 64, 0u) << parameter.name;
  }
  EXPECT_EQ(parameters.count(), 134);
}

/// A frozen matrix and vector between trained ones.
FlatParameters PartlyFrozen(const Numerics& numerics) {
  FlatParameters parameters;
  parameters.Add("first", {16, 10}, true);
  parameters.Freeze(parameters.Add("frozen", {32, 20}, true));
  parameters.Freeze(parameters.Add("norm", {20}, false));
  parameters.Add("last", {8, 4}, true);
  parameters.Allocate(numerics, at::Device(at::kCPU));
  return parameters;
}

TEST(FlatParametersTest, FrozenOnesHaveTheStorageTypeAloneAndNoGradient) {
  FlatParameters parameters = PartlyFrozen({Precision::kBf16, at::kBFloat16});
  EXPECT_EQ(parameters.values().nbytes(), (160 + 32) * 4);
  EXPECT_EQ(parameters.gradients().nbytes(), (160 + 32) * 4);
  EXPECT_EQ(parameters.compute().nbytes(), (160 + 32) * 2);
  EXPECT_EQ(parameters.frozen_bytes(), 640 * 2 + 32 * 4);
  EXPECT_EQ(parameters.count(), 160 + 640 + 20 + 32);
  EXPECT_EQ(parameters.trainable_count(), 160 + 32);
  for (const Parameter& parameter : parameters.all()) {
    EXPECT_EQ(parameter.gradient.defined(), parameter.trainable) << parameter.name;
  }
}

TEST(FlatParametersTest, FrozenMatricesAreRoundedAndFrozenVectorsAreNot) {
  for (const at::ScalarType storage : {at::kFloat, at::kBFloat16}) {
    FlatParameters parameters = PartlyFrozen({Precision::kBf16, storage});
    const at::Tensor matrix = RandomTensor({32, 20}, 3), vector = RandomTensor({20}, 4);
    parameters.Assign(1, matrix);
    parameters.Assign(2, vector);
    EXPECT_TRUE(at::equal(parameters[1].compute.to(at::kFloat), matrix.to(at::kBFloat16).to(at::kFloat)));
    EXPECT_TRUE(at::equal(parameters[2].compute, vector));
    EXPECT_TRUE(at::equal(parameters.ComputeMatrix(1, 32, 20), parameters[1].compute));
  }
}

TEST(LinearTest, FrozenWeightPassesTheGradientOn) {
  FlatParameters parameters;
  parameters.Freeze(parameters.Add("a", {4, 8}, true));
  parameters.Add("b", {4, 8}, true);
  parameters.Allocate(test::kFp32, at::Device(at::kCPU));
  parameters.gradients();
  const at::Tensor a = RandomTensor({4, 8}, 1), b = RandomTensor({4, 8}, 2), x = RandomTensor({3, 8}, 3),
                   dy = RandomTensor({3, 8}, 4);
  parameters.Assign(0, a);
  parameters.Assign(1, b);
  at::Tensor d_x = at::full({3, 8}, NAN);
  Linear(&parameters, {0, 1}).Backward(dy, x, d_x);
  EXPECT_LT(test::RelativeDifference(d_x, dy.to(at::kDouble).matmul(at::cat({a, b}).to(at::kDouble))), 1e-6);
  EXPECT_LT(test::RelativeDifference(parameters[1].gradient,
                                     dy.narrow(1, 4, 4).to(at::kDouble).t().matmul(x.to(at::kDouble))),
            1e-6);
}

TEST(FlatParametersTest, ComputeCopyIsRoundedAndMasterIsNot) {
  FlatParameters parameters;
  parameters.Add("p", {33}, true);
  parameters.Allocate({Precision::kBf16, at::kFloat}, at::Device(at::kCPU));
  const at::Tensor value = RandomTensor({33}, 1);
  at::Tensor master = parameters.all()[0].value;
  master.copy_(value);
  parameters.RefreshCompute();
  EXPECT_TRUE(at::equal(parameters.all()[0].value, value));
  EXPECT_TRUE(at::equal(parameters.all()[0].compute, value.to(at::kBFloat16).to(at::kFloat)));
}

/// fp32 numbers of every exponent and sign with mantissas near the rounding points, and the special ones.
at::Tensor AwkwardNumbers() {
  std::vector<float> numbers;
  for (uint32_t exponent = 0; exponent < 256; ++exponent) {
    for (const uint32_t mantissa :
         {0x0u, 0x1u, 0xFFFu, 0x1000u, 0x1001u, 0x2FFFu, 0x3000u, 0x7FFFu, 0x8000u, 0x8001u, 0x17FFFu,
          0x18000u, 0x7FEFFFu, 0x7FF000u, 0x7F8000u, 0x7FFFFFu, 0x155555u}) {
      for (const uint32_t sign : {0u, 1u}) {
        const uint32_t bits = sign << 31 | exponent << 23 | mantissa;
        float number;
        std::memcpy(&number, &bits, sizeof(number));
        numbers.push_back(number);
      }
    }
  }
  at::Tensor tensor = at::empty({static_cast<int64_t>(numbers.size())}, at::kFloat);
  std::memcpy(tensor.mutable_data_ptr(), numbers.data(), numbers.size() * sizeof(float));
  return tensor;
}

TEST(RoundingTest, EqualsTorchsConversionForEveryExponent) {
  const at::Tensor numbers = AwkwardNumbers();
  for (const Precision precision : {Precision::kBf16, Precision::kFp16}) {
    at::Tensor rounded = at::empty_like(numbers);
    RoundInto({precision, at::kFloat}, numbers, rounded);
    const at::Tensor expected = numbers.to(PrecisionDtype(precision)).to(at::kFloat);
    EXPECT_TRUE(at::equal(rounded.nan_to_num(1.25, 1e38, -1e38), expected.nan_to_num(1.25, 1e38, -1e38)))
        << PrecisionName(precision);
    EXPECT_TRUE(at::equal(rounded.isnan(), expected.isnan()));
  }
  at::Tensor native = at::empty(numbers.sizes(), at::kBFloat16);
  RoundInto({Precision::kBf16, at::kBFloat16}, numbers, native);
  EXPECT_TRUE(at::equal(native.to(at::kFloat).nan_to_num(1.25, 1e38, -1e38),
                        numbers.to(at::kBFloat16).to(at::kFloat).nan_to_num(1.25, 1e38, -1e38)));
}

TEST(SumOfSquaresTest, IsTheSameForEveryThreadCount) {
  const int threads = at::get_num_threads();
  const at::Tensor values = RandomTensor({300001}, 1);
  const double expected = values.to(at::kDouble).pow(2).sum().item<double>();
  at::set_num_threads(1);
  const double first = SumOfSquares(values);
  EXPECT_NEAR(first, expected, 1e-10 * expected);
  for (const int count : {2, 3, 5}) {
    at::set_num_threads(count);
    EXPECT_EQ(SumOfSquares(values), first) << count << " threads";
  }
  at::set_num_threads(threads);
}

TEST(SumOfSquaresTest, ShowsNonFiniteElements) {
  at::Tensor values = at::zeros({70000});
  values[69999].fill_(INFINITY);
  EXPECT_TRUE(std::isinf(SumOfSquares(values)));
  values[3].fill_(NAN);
  EXPECT_TRUE(std::isnan(SumOfSquares(values)));
}

TEST(KernelsTest, EveryInstructionSetComputesTheSameUpToRounding) {
  const int64_t rows = 4, width = 45;
  const at::Tensor x = RandomTensor({rows, 2 * width}, 1);
  const auto run = [&](const cpu::Kernels& kernels) {
    at::Tensor out = at::empty({rows, width});
    kernels.swiglu(cpu::Codec::kFp32, x.const_data_ptr(), width, out.mutable_data_ptr(), 0, rows);
    at::Tensor gelu = at::empty({rows, 2 * width}), gelu_tanh = at::empty({rows, 2 * width}),
               normed = at::empty({rows, 2 * width}), statistics = at::empty({2, rows});
    const auto* in = x.const_data_ptr<float>();
    kernels.gelu(cpu::Codec::kFp32, GeluKind::kErf, in, nullptr, 2 * width, gelu.mutable_data_ptr(), 0, rows);
    kernels.gelu(cpu::Codec::kFp32, GeluKind::kTanh, in, nullptr, 2 * width, gelu_tanh.mutable_data_ptr(), 0,
                 rows);
    kernels.add_layer_norm(cpu::Codec::kFp32, cpu::Codec::kFp32, in, nullptr, nullptr, in, nullptr, 1e-5,
                           2 * width, nullptr, normed.mutable_data_ptr(),
                           statistics.mutable_data_ptr<float>(), statistics.mutable_data_ptr<float>() + rows,
                           0, rows);
    return at::cat({out, gelu, gelu_tanh, normed}, 1);
  };
  const at::Tensor baseline = run(cpu::kBaselineKernels);
  EXPECT_LT(test::RelativeDifference(run(cpu::BestKernels()), baseline), 1e-6) << cpu::BestKernels().name;
}

}  // namespace
}  // namespace trainwright
