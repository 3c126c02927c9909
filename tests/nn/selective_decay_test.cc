#include "lib/nn/scan/selective_decay.h"

#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <string>
#include <vector>

#include "lib/nn/cpu/kernels.h"
#include "lib/nn/scan/eigen_decay.h"
#include "tests/nn/instruction_sets.h"
#include "tests/nn/reference.h"
#include "tests/nn/storage_types.h"

namespace trainwright {
namespace {

using test::kFp32;
using test::NumericalGradient;
using test::RandomTensor;
using test::RelativeDifference;

class SelectiveDecayTest : public ::testing::TestWithParam<TenInit> {};
INSTANTIATE_TEST_SUITE_P(Inits, SelectiveDecayTest, ::testing::Values(TenInit::kLru, TenInit::kCompat),
                         [](const auto& info) { return TenInitName(info.param); });

/// By the formulas of the header, in double, number by number: lambda of rows, [N, Z].
at::Tensor LambdasInDouble(TenInit init, const at::Tensor& a_k, const at::Tensor& w_k,
                           const at::Tensor& s_nz) {
  const bool lru = init == TenInit::kLru;
  const int64_t channels = a_k.numel();
  const at::Tensor a = a_k.to(at::kDouble).contiguous(), w = w_k.to(at::kDouble).contiguous(),
                   s = s_nz.to(at::kDouble).contiguous();
  at::Tensor lambda_nz = at::empty_like(s);
  for (int64_t row = 0; row < s.size(0); ++row) {
    const double* shifts = s.const_data_ptr<double>() + row * 2 * channels;
    double* lambdas = lambda_nz.mutable_data_ptr<double>() + row * 2 * channels;
    for (int64_t i = 0; i < channels; ++i) {
      const double level = a.const_data_ptr<double>()[i] + 0.1 * std::tanh(shifts[i]);
      const double angle = w.const_data_ptr<double>()[i] + 0.05 * std::tanh(shifts[channels + i]);
      const double modulus = lru ? std::exp(-std::exp(level)) : 1 / (1 + std::exp(-level));
      const std::complex<double> lambda = std::polar(modulus, lru ? std::exp(angle) : angle);
      lambdas[i] = lambda.real();
      lambdas[channels + i] = lambda.imag();
    }
  }
  return lambda_nz;
}

/// What goes in and comes back, in fp32: angles up to about 20.
struct SelectiveCase {
  SelectiveCase(TenInit init_of_all, int64_t rows, int64_t channels)
      : init(init_of_all),
        a_k(RandomTensor({channels}, 1)),
        w_k(RandomTensor({channels}, 2).clamp(-3, 3)),
        s_nz(RandomTensor({rows, 2 * channels}, 3)),
        d_lambda_nz(RandomTensor({rows, 2 * channels}, 4)),
        d_gamma_k(RandomTensor({channels}, 5).to(at::kDouble)) {}
  double Loss(const at::Tensor& a, const at::Tensor& w, const at::Tensor& s) const {
    return LambdasInDouble(init, a, w, s).mul(d_lambda_nz).sum().item<double>();
  }
  at::Tensor ExpectedGradientOfShifts() const {
    return NumericalGradient([&](const at::Tensor& s) { return Loss(a_k, w_k, s); }, s_nz);
  }
  /// \param with_gamma gamma enters the loss, too
  at::Tensor ExpectedGradientOfLevels(bool with_gamma) const {
    return NumericalGradient(
        [&](const at::Tensor& a) {
          double loss = Loss(a, w_k, s_nz);
          if (!with_gamma || init != TenInit::kLru) return loss;
          for (int64_t i = 0; i < a.numel(); ++i) {
            const double modulus = std::exp(-std::exp(a[i].item<double>()));
            loss += d_gamma_k[i].item<double>() * std::sqrt(1 - modulus * modulus);
          }
          return loss;
        },
        a_k);
  }
  at::Tensor ExpectedGradientOfAngles() const {
    return NumericalGradient([&](const at::Tensor& w) { return Loss(a_k, w, s_nz); }, w_k);
  }

  TenInit init;
  at::Tensor a_k, w_k, s_nz, d_lambda_nz, d_gamma_k;
};

/// What the backward pass writes.
struct SelectiveGradients {
  at::Tensor s_nz, a_k, w_k;
};

SelectiveGradients BackwardOf(const SelectiveCase& of, bool with_gamma = false) {
  SelectiveGradients gradients{
      .s_nz = of.s_nz.clone(), .a_k = at::zeros_like(of.a_k), .w_k = at::zeros_like(of.w_k)};
  SelectiveDecayBackward(kFp32, of.init, of.a_k, of.w_k, of.d_lambda_nz,
                         with_gamma ? of.d_gamma_k : at::Tensor(), gradients.s_nz, gradients.a_k,
                         gradients.w_k);
  return gradients;
}

double LargestError(const at::Tensor& x, const at::Tensor& expected) {
  return x.to(at::kDouble).sub(expected).abs().max().item<double>();
}

TEST_P(SelectiveDecayTest, IsTheFormulaOfEachRow) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  for (const int64_t channels : {1, 7, 37}) {
    SCOPED_TRACE(std::to_string(channels) + " channels");
    const SelectiveCase of(GetParam(), 50, channels);
    for (const double scale : {1.0, 30.0}) {  // at 30 most of tanh is 1 or -1
      const at::Tensor s_nz = of.s_nz.mul(scale);
      at::Tensor lambda_nz = at::empty_like(s_nz);
      SelectiveDecay(kFp32, of.init, of.a_k, of.w_k, s_nz, lambda_nz);
      EXPECT_LT(LargestError(lambda_nz, LambdasInDouble(of.init, of.a_k, of.w_k, s_nz)), 1e-6);
    }
  }
}

TEST_P(SelectiveDecayTest, ZerosAreTheConstantDecay) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const SelectiveCase of(GetParam(), 3, 37);
  const at::Tensor s_nz = at::zeros_like(of.s_nz);
  at::Tensor lambda_nz = at::empty_like(s_nz);
  SelectiveDecay(kFp32, of.init, of.a_k, of.w_k, s_nz, lambda_nz);
  const ScanDecay constant = EigenDecayOf(of.init, of.a_k, of.w_k).decay;
  const at::Tensor modulus_k = constant.log_modulus_k.exp();
  const at::Tensor expected_z =
      at::cat({modulus_k.mul(constant.angle_k.cos()), modulus_k.mul(constant.angle_k.sin())});
  EXPECT_LT(LargestError(lambda_nz, expected_z.expand({3, 74})), 5e-7);
}

TEST_P(SelectiveDecayTest, GradientsEqualFiniteDifferences) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const SelectiveCase of(GetParam(), 11, 7);
  for (const bool with_gamma : {false, true}) {
    SCOPED_TRACE(with_gamma ? "with gamma" : "without gamma");
    const SelectiveGradients gradients = BackwardOf(of, with_gamma);
    EXPECT_LT(RelativeDifference(gradients.s_nz, of.ExpectedGradientOfShifts()), 1e-5);
    EXPECT_LT(RelativeDifference(gradients.a_k, of.ExpectedGradientOfLevels(with_gamma)), 1e-5);
    EXPECT_LT(RelativeDifference(gradients.w_k, of.ExpectedGradientOfAngles()), 1e-5);
  }
}

TEST_P(SelectiveDecayTest, GradientsOfChannelsAreAddedAndMayBeUnwanted) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const SelectiveCase of(GetParam(), 11, 7);
  const SelectiveGradients once = BackwardOf(of);
  at::Tensor d_a_k = once.a_k.clone(), d_w_k = once.w_k.clone(), d_s_nz = of.s_nz.clone();
  SelectiveDecayBackward(kFp32, of.init, of.a_k, of.w_k, of.d_lambda_nz, {}, d_s_nz, d_a_k, d_w_k);
  EXPECT_TRUE(at::equal(d_a_k, once.a_k.mul(2)));
  EXPECT_TRUE(at::equal(d_w_k, once.w_k.mul(2)));
  at::Tensor unwanted_a, unwanted_w, alone_nz = of.s_nz.clone();
  SelectiveDecayBackward(kFp32, of.init, of.a_k, of.w_k, of.d_lambda_nz, of.d_gamma_k, alone_nz, unwanted_a,
                         unwanted_w);
  EXPECT_LT(RelativeDifference(alone_nz, once.s_nz), 1e-6);
}

TEST_P(SelectiveDecayTest, LambdaStaysInTheUnitCircleWhateverIsTrainedAndAsked) {
  const bool lru = GetParam() == TenInit::kLru;
  const at::Tensor a_k = at::tensor(std::vector<float>{-100, -20, 0, 20, 100}),
                   w_k = at::tensor(std::vector<float>{1, 20, lru ? 20.0f : 1e6f, -5, 3}),
                   s_nz = at::cat({at::full({1, 10}, -1e5f), at::zeros({1, 10}), at::full({1, 10}, 1e5f)});
  at::Tensor lambda_nz = at::empty_like(s_nz);
  SelectiveDecay(kFp32, GetParam(), a_k, w_k, s_nz, lambda_nz);
  const at::Tensor square_nk = lambda_nz.narrow(1, 0, 5).square().add(lambda_nz.narrow(1, 5, 5).square());
  EXPECT_LT(square_nk.max().item<double>(), 1);
  at::Tensor d_a_k = at::zeros_like(a_k), d_w_k = at::zeros_like(a_k), d_s_nz = s_nz.clone();
  SelectiveDecayBackward(kFp32, GetParam(), a_k, w_k, at::full({3, 10}, 1.0f), {}, d_s_nz, d_a_k, d_w_k);
  EXPECT_TRUE(d_s_nz.isfinite().all().item<bool>());
  EXPECT_TRUE(d_a_k.isfinite().all().item<bool>());
  EXPECT_TRUE(d_w_k.isfinite().all().item<bool>());
  const int64_t at_the_edge = lru ? 0 : 4;
  EXPECT_EQ(d_a_k[at_the_edge].item<float>(), 0);
  EXPECT_TRUE(d_s_nz.select(1, at_the_edge).eq(0).all().item<bool>());
}

TEST_P(SelectiveDecayTest, ShortTypesAreReadAndWrittenRounded) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const SelectiveCase of(GetParam(), 11, 7);
  for (const Numerics& numerics : test::ShortNumerics()) {
    SCOPED_TRACE(test::NameOf(numerics));
    SelectiveCase read = of;
    read.s_nz = test::AsRead(numerics, of.s_nz);
    at::Tensor s_nz = test::Stored(numerics, of.s_nz), lambda_nz = at::empty_like(of.s_nz),
               d_a_k = at::zeros_like(of.a_k), d_w_k = at::zeros_like(of.w_k);
    SelectiveDecay(numerics, of.init, of.a_k, of.w_k, s_nz, lambda_nz);
    EXPECT_LT(LargestError(lambda_nz, LambdasInDouble(of.init, of.a_k, of.w_k, read.s_nz)), 1e-6);
    SelectiveDecayBackward(numerics, of.init, of.a_k, of.w_k, of.d_lambda_nz, {}, s_nz, d_a_k, d_w_k);
    test::ExpectRounded(numerics, s_nz, read.ExpectedGradientOfShifts());
    EXPECT_LT(RelativeDifference(d_a_k, read.ExpectedGradientOfLevels(false)), 1e-5);
    EXPECT_LT(RelativeDifference(d_w_k, read.ExpectedGradientOfAngles()), 1e-5);
  }
}

TEST_P(SelectiveDecayTest, BitsDoNotDependOnThreads) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const SelectiveCase of(GetParam(), 3000, 37);
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const SelectiveGradients one = BackwardOf(of);
  for (const int threads : {2, 3}) {
    SCOPED_TRACE(std::to_string(threads) + " threads");
    at::set_num_threads(threads);
    const SelectiveGradients several = BackwardOf(of);
    EXPECT_TRUE(at::equal(several.s_nz, one.s_nz));
    EXPECT_TRUE(at::equal(several.a_k, one.a_k));
    EXPECT_TRUE(at::equal(several.w_k, one.w_k));
  }
  at::set_num_threads(before);
}

TEST_P(SelectiveDecayTest, TorchsOperatorsComputeTheSame) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const SelectiveCase of(GetParam(), 50, 7);
  at::Tensor lambda_nz = at::empty_like(of.s_nz), d_s_nz = of.s_nz.clone(), d_a_k = at::zeros_like(of.a_k),
             d_w_k = at::zeros_like(of.w_k);
  on_device::SelectiveDecay(kFp32, of.init, of.a_k, of.w_k, of.s_nz, lambda_nz);
  on_device::SelectiveDecayBackward(kFp32, of.init, of.a_k, of.w_k, of.d_lambda_nz, d_s_nz, d_a_k, d_w_k);
  const SelectiveGradients expected = BackwardOf(of);
  EXPECT_LT(LargestError(lambda_nz, LambdasInDouble(of.init, of.a_k, of.w_k, of.s_nz)), 1e-6);
  EXPECT_LT(RelativeDifference(d_s_nz, expected.s_nz), 1e-5);
  EXPECT_LT(RelativeDifference(d_a_k, expected.a_k), 1e-5);
  EXPECT_LT(RelativeDifference(d_w_k, expected.w_k), 1e-5);
}

/// What the kernels of one instruction set make of some rows, side by side.
at::Tensor ResultsOf(const cpu::Kernels& kernels, const SelectiveCase& of) {
  const int64_t channels = of.a_k.numel(), rows = of.s_nz.size(0), begin = 1, end = rows - 2;
  const at::Tensor angle_k = of.w_k.abs(), cosine_k = angle_k.cos(), sine_k = angle_k.sin(),
                   level_k = of.init == TenInit::kLru ? of.a_k.exp().neg() : of.a_k;
  const DecayChannels numbers{.init = of.init,
                              .channels = channels,
                              .level_k = level_k.const_data_ptr<float>(),
                              .angle_k = angle_k.const_data_ptr<float>(),
                              .cosine_k = cosine_k.const_data_ptr<float>(),
                              .sine_k = sine_k.const_data_ptr<float>()};
  at::Tensor lambda_nz = at::zeros_like(of.s_nz), d_s_nz = of.s_nz.clone(),
             sums_z = at::zeros({1, 2 * channels}), untold_nz = of.s_nz.clone();
  const float* d_lambda = of.d_lambda_nz.const_data_ptr<float>();
  kernels.decay_rows(cpu::Codec::kFp32, numbers, of.s_nz.const_data_ptr<float>(),
                     lambda_nz.mutable_data_ptr<float>(), begin, end);
  kernels.decay_rows_backward(cpu::Codec::kFp32, numbers, d_lambda, d_s_nz.mutable_data_ptr<float>(),
                              sums_z.mutable_data_ptr<float>(), begin, end);
  kernels.decay_rows_backward(cpu::Codec::kFp32, numbers, d_lambda, untold_nz.mutable_data_ptr<float>(),
                              nullptr, begin, end);
  return at::cat({lambda_nz, d_s_nz, sums_z, untold_nz});
}

TEST_P(SelectiveDecayTest, EveryInstructionSetComputesTheSameUpToRounding) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const SelectiveCase of(GetParam(), 40, 37);
  const at::Tensor expected = ResultsOf(cpu::kBaselineKernels, of);
  for (const cpu::Kernels* kernels : test::KernelsBesideBaseline()) {
    EXPECT_LT(RelativeDifference(ResultsOf(*kernels, of), expected), 2e-6) << kernels->name;
  }
}

TEST_P(SelectiveDecayTest, OfShapesAloneNothingIsComputed) {
  const at::TensorOptions meta = at::TensorOptions().dtype(at::kFloat).device(at::kMeta);
  const at::Tensor a_k = at::empty({4}, meta), lambda_nz = at::empty({9, 8}, meta);
  at::Tensor s_nz = at::empty({9, 8}, meta), written_nz = at::empty({9, 8}, meta),
             d_a_k = at::empty({4}, meta), d_w_k = at::empty({4}, meta);
  SelectiveDecay(kFp32, GetParam(), a_k, a_k, s_nz, written_nz);
  SelectiveDecayBackward(kFp32, GetParam(), a_k, a_k, lambda_nz, {}, s_nz, d_a_k, d_w_k);
  EXPECT_EQ(s_nz.sizes(), lambda_nz.sizes());
}

}  // namespace
}  // namespace trainwright
