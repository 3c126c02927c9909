#include "lib/nn/scan/causal_convolution.h"

#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "lib/nn/cpu/kernels.h"
#include "tests/nn/scan_reference.h"

namespace trainwright {
namespace {

using test::kFp32;
using test::LargestDifference;
using test::NumericalGradient;
using test::RandomTensor;

/// The arguments of both passes, fp32.
struct RandomConvolution {
  SpanTable spans;
  at::Tensor x_nz, kernel_zt, scale_k, before_spz, d_out_nz;

  int64_t before_rows() const { return kernel_zt.size(1) - 1; }
};

RandomConvolution MakeRandomConvolution(std::vector<int32_t> starts, int64_t channels, int64_t taps) {
  const int64_t rows = starts.back(), spans = std::ssize(starts) - 1, width = 2 * channels;
  return {.spans = SpanTable(std::move(starts)),
          .x_nz = RandomTensor({rows, width}, 1),
          .kernel_zt = RandomTensor({width, taps}, 2),
          .scale_k = RandomTensor({channels}, 3),
          .before_spz = RandomTensor({spans, taps - 1, width}, 4),
          .d_out_nz = RandomTensor({rows, width}, 5)};
}

/// What both passes write.
struct ConvolutionResult {
  at::Tensor out_nz, last_spz;
  ConvolutionGradients gradients;
};

struct ConvolutionPasses {
  decltype(&CausalConvolution) forward = &CausalConvolution;
  decltype(&CausalConvolutionBackward) backward = &CausalConvolutionBackward;
};

/// The kernel's gradients are added to zeros.
ConvolutionResult RunConvolution(const Numerics& numerics, const RandomConvolution& of,
                                 const ConvolutionPasses& passes = {}) {
  const at::Tensor ends_spz =
      of.before_spz.defined()
          ? of.before_spz
          : at::empty({std::ssize(of.spans.starts) - 1, of.before_rows(), of.x_nz.size(1)});
  ConvolutionResult result{.out_nz = at::empty_like(of.x_nz), .last_spz = at::full_like(ends_spz, 99)};
  passes.forward(numerics, of.x_nz, of.kernel_zt, of.scale_k, of.spans, of.before_spz, result.out_nz,
                 result.last_spz);
  result.gradients = {.x_nz = at::empty_like(of.x_nz),
                      .kernel_zt = at::zeros(of.kernel_zt.sizes()),
                      .scale_k = at::full({of.x_nz.size(1) / 2}, 99.0, at::kDouble),
                      .before_spz = at::full_like(ends_spz, 99)};
  passes.backward(numerics, of.x_nz, of.kernel_zt, of.scale_k, of.spans, of.before_spz, of.d_out_nz,
                  result.gradients);
  return result;
}

/// Output [N, Z] by the formula, row by row.
/// \param x_nz, kernel_zt, scale_k, before_spz fp64
at::Tensor ConvolutionInDouble(const SpanTable& spans, const at::Tensor& x_nz, const at::Tensor& kernel_zt,
                               const at::Tensor& scale_k, const at::Tensor& before_spz) {
  const int64_t width = x_nz.size(1), taps = kernel_zt.size(1);
  at::Tensor out_nz = at::empty_like(x_nz);
  const auto x = x_nz.accessor<double, 2>(), kernel = kernel_zt.accessor<double, 2>();
  const auto scale = scale_k.accessor<double, 1>();
  const auto before = before_spz.accessor<double, 3>();
  auto out = out_nz.accessor<double, 2>();
  for (int64_t span = 0; span + 1 < std::ssize(spans.starts); ++span) {
    const int64_t begin = spans.starts[static_cast<size_t>(span)],
                  end = spans.starts[static_cast<size_t>(span) + 1];
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t i = 0; i < width; ++i) {
        double p = 0;
        for (int64_t tap = 0; tap < taps; ++tap) {
          const int64_t from = row - tap;
          p += kernel[i][tap] * (from >= begin ? x[from][i] : before[span][from - begin + taps - 1][i]);
        }
        out[row][i] = scale[i % (width / 2)] * p / (1 + std::exp(-p));
      }
    }
  }
  return out_nz;
}
at::Tensor ConvolutionInDouble(const RandomConvolution& of) {
  return ConvolutionInDouble(of.spans, of.x_nz.to(at::kDouble), of.kernel_zt.to(at::kDouble),
                             of.scale_k.to(at::kDouble), of.before_spz.to(at::kDouble));
}

struct ConvolutionCase {
  std::string name;
  int64_t taps;
  std::vector<int32_t> starts;
};
class CausalConvolutionTest : public ::testing::TestWithParam<ConvolutionCase> {};
INSTANTIATE_TEST_SUITE_P(Cases, CausalConvolutionTest,
                         ::testing::Values(ConvolutionCase{"FourTaps", 4, {0, 150}},
                                           ConvolutionCase{"FourTapsPacked", 4, {0, 1, 3, 7, 71, 72, 150}},
                                           ConvolutionCase{"OneTap", 1, {0, 1, 150}},
                                           ConvolutionCase{"SevenTapsPacked", 7, {0, 6, 13, 14, 150}}),
                         [](const auto& info) { return info.param.name; });

TEST_P(CausalConvolutionTest, IsTheFormula) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const RandomConvolution of = MakeRandomConvolution(GetParam().starts, 150, GetParam().taps);
  EXPECT_LT(LargestDifference(RunConvolution(kFp32, of).out_nz, ConvolutionInDouble(of)), 2e-6);
}

TEST_P(CausalConvolutionTest, GradientsEqualFiniteDifferences) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  std::vector<int32_t> starts = GetParam().starts;
  starts.back() = starts[starts.size() - 2] + 35;
  const RandomConvolution of = MakeRandomConvolution(starts, 3, GetParam().taps);
  const at::Tensor x = of.x_nz.to(at::kDouble), kernel = of.kernel_zt.to(at::kDouble),
                   scale = of.scale_k.to(at::kDouble), before = of.before_spz.to(at::kDouble),
                   d_out = of.d_out_nz.to(at::kDouble);
  const auto loss = [&](const at::Tensor& x_nz, const at::Tensor& kernel_zt, const at::Tensor& scale_k,
                        const at::Tensor& before_spz) {
    return ConvolutionInDouble(of.spans, x_nz, kernel_zt, scale_k, before_spz)
        .mul(d_out)
        .sum()
        .item<double>();
  };
  const ConvolutionGradients gradients = RunConvolution(kFp32, of).gradients;
  const auto expect_near = [](const at::Tensor& gradient, const at::Tensor& expected) {
    EXPECT_LT(LargestDifference(gradient, expected), 1e-5);
  };
  expect_near(gradients.x_nz,
              NumericalGradient([&](const at::Tensor& t) { return loss(t, kernel, scale, before); }, x));
  expect_near(gradients.kernel_zt,
              NumericalGradient([&](const at::Tensor& t) { return loss(x, t, scale, before); }, kernel));
  expect_near(gradients.scale_k,
              NumericalGradient([&](const at::Tensor& t) { return loss(x, kernel, t, before); }, scale));
  if (of.before_rows() == 0) return;
  expect_near(gradients.before_spz,
              NumericalGradient([&](const at::Tensor& t) { return loss(x, kernel, scale, t); }, before));
}

TEST_P(CausalConvolutionTest, LastInputsAreThoseThatASpanEndsWith) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const RandomConvolution of = MakeRandomConvolution(GetParam().starts, 5, GetParam().taps);
  const ConvolutionResult result = RunConvolution(kFp32, of);
  for (int64_t span = 0; span + 1 < std::ssize(GetParam().starts); ++span) {
    const int64_t begin = GetParam().starts[static_cast<size_t>(span)],
                  end = GetParam().starts[static_cast<size_t>(span) + 1];
    const at::Tensor all = at::cat({of.before_spz[span], of.x_nz.narrow(0, begin, end - begin)});
    EXPECT_TRUE(at::equal(result.last_spz[span], all.narrow(0, end - begin, of.before_rows())));
  }
  at::Tensor in_place = of.before_spz.clone(), out_nz = at::empty_like(of.x_nz);
  CausalConvolution(kFp32, of.x_nz, of.kernel_zt, of.scale_k, of.spans, in_place, out_nz, in_place);
  EXPECT_TRUE(at::equal(in_place, result.last_spz));
  EXPECT_TRUE(at::equal(out_nz, result.out_nz));
}

TEST_P(CausalConvolutionTest, NothingBeforeIsZerosAndNoScaleIsOne) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  RandomConvolution of = MakeRandomConvolution(GetParam().starts, 5, GetParam().taps);
  of.before_spz.zero_();
  of.scale_k.fill_(1);
  const ConvolutionResult expected = RunConvolution(kFp32, of);
  of.before_spz = of.scale_k = at::Tensor();
  const ConvolutionResult result = RunConvolution(kFp32, of);
  EXPECT_TRUE(at::equal(result.out_nz, expected.out_nz));
  EXPECT_TRUE(at::equal(result.last_spz, expected.last_spz));
  EXPECT_TRUE(at::equal(result.gradients.x_nz, expected.gradients.x_nz));
}

TEST_P(CausalConvolutionTest, OnlyTheKernelsGradientIsAddedTo) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const RandomConvolution of = MakeRandomConvolution(GetParam().starts, 5, GetParam().taps);
  const ConvolutionGradients expected = RunConvolution(kFp32, of).gradients;
  ConvolutionGradients gradients{.x_nz = at::empty_like(of.x_nz),
                                 .kernel_zt = at::ones(of.kernel_zt.sizes())};
  CausalConvolutionBackward(kFp32, of.x_nz, of.kernel_zt, of.scale_k, of.spans, of.before_spz, of.d_out_nz,
                            gradients);
  EXPECT_TRUE(at::equal(gradients.x_nz, expected.x_nz));
  EXPECT_LT(LargestDifference(gradients.kernel_zt.sub(1), expected.kernel_zt), 1e-6);
}

TEST_P(CausalConvolutionTest, BitsDoNotDependOnThreads) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const RandomConvolution of = MakeRandomConvolution(GetParam().starts, 75, GetParam().taps);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const ConvolutionResult one = RunConvolution(kFp32, of);
  at::set_num_threads(3);
  const ConvolutionResult three = RunConvolution(kFp32, of);
  at::set_num_threads(threads);
  EXPECT_TRUE(at::equal(three.out_nz, one.out_nz));
  EXPECT_TRUE(at::equal(three.last_spz, one.last_spz));
  EXPECT_TRUE(at::equal(three.gradients.x_nz, one.gradients.x_nz));
  EXPECT_TRUE(at::equal(three.gradients.kernel_zt, one.gradients.kernel_zt));
  EXPECT_TRUE(at::equal(three.gradients.scale_k, one.gradients.scale_k));
  EXPECT_TRUE(at::equal(three.gradients.before_spz, one.gradients.before_spz));
}

TEST_P(CausalConvolutionTest, ASpanHasTheBitsThatItHasAlone) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const RandomConvolution packed = MakeRandomConvolution(GetParam().starts, 23, GetParam().taps);
  const ConvolutionResult together = RunConvolution(kFp32, packed);
  for (int64_t span = 0; span + 1 < std::ssize(GetParam().starts); ++span) {
    const int32_t begin = GetParam().starts[static_cast<size_t>(span)],
                  rows = GetParam().starts[static_cast<size_t>(span) + 1] - begin;
    RandomConvolution alone = packed;
    alone.spans = SpanTable(std::vector<int32_t>{0, rows});
    for (at::Tensor* of_rows : {&alone.x_nz, &alone.d_out_nz}) *of_rows = of_rows->narrow(0, begin, rows);
    alone.before_spz = packed.before_spz.narrow(0, span, 1);
    const ConvolutionResult result = RunConvolution(kFp32, alone);
    EXPECT_TRUE(at::equal(result.out_nz, together.out_nz.narrow(0, begin, rows)));
    EXPECT_TRUE(at::equal(result.gradients.x_nz, together.gradients.x_nz.narrow(0, begin, rows)));
    EXPECT_TRUE(at::equal(result.last_spz[0], together.last_spz[span]));
    EXPECT_TRUE(at::equal(result.gradients.before_spz[0], together.gradients.before_spz[span]));
  }
}

/// The gradient of the second half's rows before it belongs to the last rows of the first.
TEST_P(CausalConvolutionTest, TwoHalvesAreTheWhole) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const int64_t rows = 90, before_rows = GetParam().taps - 1;
  const RandomConvolution whole = MakeRandomConvolution({0, rows}, 9, GetParam().taps);
  const ConvolutionResult expected = RunConvolution(kFp32, whole);
  for (const int64_t cut : {int64_t{1}, int64_t{40}}) {
    const auto part = [&](int64_t begin, int64_t end) {
      RandomConvolution of = whole;
      of.spans = SpanTable(std::vector<int32_t>{0, static_cast<int32_t>(end - begin)});
      for (at::Tensor* of_rows : {&of.x_nz, &of.d_out_nz}) *of_rows = of_rows->narrow(0, begin, end - begin);
      return of;
    };
    RandomConvolution second = part(cut, rows);
    const ConvolutionResult of_first = RunConvolution(kFp32, part(0, cut));
    second.before_spz = of_first.last_spz;
    const ConvolutionResult of_second = RunConvolution(kFp32, second);
    EXPECT_TRUE(at::equal(at::cat({of_first.out_nz, of_second.out_nz}), expected.out_nz));
    EXPECT_TRUE(at::equal(of_second.last_spz, expected.last_spz));
    const at::Tensor d_all =
        at::cat({of_first.gradients.before_spz[0], of_first.gradients.x_nz, of_second.gradients.x_nz});
    d_all.narrow(0, cut, before_rows).add_(of_second.gradients.before_spz[0]);
    EXPECT_LT(LargestDifference(d_all.narrow(0, before_rows, rows), expected.gradients.x_nz), 1e-6);
    if (before_rows == 0) continue;
    EXPECT_LT(LargestDifference(d_all.narrow(0, 0, before_rows), expected.gradients.before_spz[0]), 1e-6);
  }
}

TEST_P(CausalConvolutionTest, EveryPrecisionRoundsWhatItStoresAndNothingElse) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const RandomConvolution of = MakeRandomConvolution(GetParam().starts, 9, GetParam().taps);
  for (const Numerics numerics :
       {Numerics{Precision::kBf16, at::kBFloat16}, Numerics{Precision::kBf16, at::kFloat},
        Numerics{Precision::kFp16, at::kFloat}}) {
    SCOPED_TRACE(PrecisionName(numerics.precision) + (numerics.emulated() ? ", emulated" : ""));
    const at::ScalarType type = PrecisionDtype(numerics.precision);
    RandomConvolution rounded = of, stored = of;
    for (at::Tensor RandomConvolution::*tensor :
         {&RandomConvolution::x_nz, &RandomConvolution::d_out_nz, &RandomConvolution::kernel_zt,
          &RandomConvolution::before_spz}) {
      rounded.*tensor = (of.*tensor).to(type).to(at::kFloat);
    }
    stored.before_spz = rounded.before_spz;
    stored.kernel_zt = rounded.kernel_zt;
    if (!numerics.emulated()) {
      for (at::Tensor RandomConvolution::*tensor :
           {&RandomConvolution::x_nz, &RandomConvolution::d_out_nz, &RandomConvolution::kernel_zt}) {
        stored.*tensor = (of.*tensor).to(type);
      }
    }
    const ConvolutionResult exact = RunConvolution(kFp32, rounded), result = RunConvolution(numerics, stored);
    const double tolerance = numerics.precision == Precision::kBf16 ? 0x1p-8 : 0x1p-11;
    const auto expect_rounded = [&](const at::Tensor& x, const at::Tensor& expected) {
      const at::Tensor error = x.to(at::kFloat).sub(expected).abs();
      const double least = 1e-6 * expected.abs().max().item<double>();
      EXPECT_TRUE(error.le(expected.abs().mul(tolerance).add(least)).all().item<bool>());
      EXPECT_TRUE(at::equal(x.to(type).to(at::kFloat), x.to(at::kFloat)));
    };
    expect_rounded(result.out_nz, exact.out_nz);
    expect_rounded(result.gradients.x_nz, exact.gradients.x_nz);
    EXPECT_TRUE(at::equal(result.last_spz, exact.last_spz));
    EXPECT_LT(LargestDifference(result.gradients.kernel_zt, exact.gradients.kernel_zt), 1e-6);
    EXPECT_LT(LargestDifference(result.gradients.scale_k, exact.gradients.scale_k), 1e-6);
  }
}

TEST_P(CausalConvolutionTest, TorchsOperatorsComputeTheSame) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  RandomConvolution of = MakeRandomConvolution(GetParam().starts, 9, GetParam().taps);
  const ConvolutionPasses passes{&on_device::CausalConvolution, &on_device::CausalConvolutionBackward};
  for (const bool plain : {false, true}) {
    if (plain) of.before_spz = of.scale_k = at::Tensor();
    const ConvolutionResult expected = RunConvolution(kFp32, of), result = RunConvolution(kFp32, of, passes);
    EXPECT_LT(LargestDifference(result.out_nz, expected.out_nz), 1e-6);
    EXPECT_TRUE(at::equal(result.last_spz, expected.last_spz));
    EXPECT_LT(LargestDifference(result.gradients.x_nz, expected.gradients.x_nz), 1e-6);
    EXPECT_LT(LargestDifference(result.gradients.kernel_zt, expected.gradients.kernel_zt), 1e-6);
    EXPECT_LT(LargestDifference(result.gradients.scale_k, expected.gradients.scale_k), 1e-6);
    if (of.before_rows() == 0) continue;
    EXPECT_LT(LargestDifference(result.gradients.before_spz, expected.gradients.before_spz), 1e-6);
  }
}

/// What the kernels of one instruction set make of rows that begin at the third.
at::Tensor ConvolutionResultsOf(const cpu::Kernels& kernels, const RandomConvolution& of) {
  const int64_t width = of.x_nz.size(1), taps = of.kernel_zt.size(1), rows = of.x_nz.size(0) - 2 * taps;
  const at::Tensor kernel_tz = of.kernel_zt.t().contiguous(), scale_z = of.scale_k.repeat({2});
  const ConvolutionWeights weights{.taps = taps,
                                   .width = width,
                                   .kernel_tz = kernel_tz.const_data_ptr<float>(),
                                   .scale_z = scale_z.const_data_ptr<float>()};
  at::Tensor out = at::zeros({rows, width}), d_p = at::zeros({rows, width}), d_x = at::zeros({rows, width}),
             d_kernel = at::zeros({taps, width}), d_scale = at::zeros({1, width});
  const auto data = [](at::Tensor& tensor) { return tensor.mutable_data_ptr<float>(); };
  const float *x = of.x_nz.const_data_ptr<float>() + (taps - 1) * width,
              *d_out = of.d_out_nz.const_data_ptr<float>();
  kernels.convolve(cpu::Codec::kFp32, weights, x, rows, data(out));
  kernels.convolution_backward(cpu::Codec::kFp32, weights, x, d_out, rows, data(d_p), data(d_kernel),
                               data(d_scale));
  kernels.convolution_input_backward(cpu::Codec::kFp32, weights, d_out, rows, data(d_x));
  return at::cat({out, d_p, d_x, d_kernel, d_scale});
}

TEST(ConvolutionKernelsTest, EveryInstructionSetComputesTheSameUpToRounding) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  std::vector<const cpu::Kernels*> all = {&cpu::BestKernels()};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) all.push_back(&cpu::kAvx2Kernels);
#endif
  const RandomConvolution of = MakeRandomConvolution({0, 40}, 141, 4);
  const at::Tensor expected = ConvolutionResultsOf(cpu::kBaselineKernels, of);
  for (const cpu::Kernels* kernels : all) {
    EXPECT_LT(test::RelativeDifference(ConvolutionResultsOf(*kernels, of), expected), 1e-6) << kernels->name;
  }
}

TEST(ConvolutionOfShapesTest, NothingIsComputed) {
  const at::TensorOptions meta = at::TensorOptions().dtype(at::kFloat).device(at::kMeta);
  const SpanTable spans(std::vector<int32_t>{0, 100, 130});
  const at::Tensor x_nz = at::empty({130, 8}, meta), kernel_zt = at::empty({8, 4}, meta),
                   scale_k = at::empty({4}, meta), before_spz = at::empty({2, 3, 8}, meta);
  at::Tensor out_nz = at::empty_like(x_nz), last_spz = at::empty_like(before_spz);
  CausalConvolution(kFp32, x_nz, kernel_zt, scale_k, spans, before_spz, out_nz, last_spz);
  ConvolutionGradients gradients{.x_nz = at::empty_like(x_nz), .kernel_zt = at::empty_like(kernel_zt)};
  CausalConvolutionBackward(kFp32, x_nz, kernel_zt, scale_k, spans, before_spz, out_nz, gradients);
  EXPECT_TRUE(gradients.x_nz.is_meta());
}

}  // namespace
}  // namespace trainwright
