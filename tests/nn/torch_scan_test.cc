#include "lib/nn/scan/torch_scan.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/fft_fft.h>
#include <ATen/ops/fft_ifft.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/polar.h>
#include <ATen/ops/real.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/nn/scan_reference.h"

namespace trainwright {

void PrintTo(ScanKind kind, std::ostream* out) {
  *out << ScanKindName(kind);
}

namespace {

using test::LargestDifference;
using test::MakeRandomScan;
using test::NumericalGradient;
using test::RandomScan;
using test::ReferenceScan;

class TorchScanTest : public ::testing::TestWithParam<ScanKind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, TorchScanTest, ::testing::Values(ScanKind::kSequential, ScanKind::kChunked),
                         [](const auto& info) { return ScanKindName(info.param); });

/// Of a constant decay: c = b * lambda^n by the convolution theorem.
at::Tensor ByFourierTransform(const RandomScan& scan) {
  const int64_t rows = scan.rows(), channels = scan.width() / 2;
  const at::Tensor n = at::arange(rows, at::kDouble).unsqueeze(1);
  const at::Tensor powers = at::polar(n.mul(scan.decay.log_modulus_k).exp(), n.mul(scan.decay.angle_k));
  const at::Tensor b = at::complex(scan.b_nz.narrow(1, 0, channels), scan.b_nz.narrow(1, channels, channels));
  const at::Tensor product = at::fft_fft(b, 2 * rows, 0).mul(at::fft_fft(powers, 2 * rows, 0));
  const at::Tensor c = at::fft_ifft(product, 2 * rows, 0).narrow(0, 0, rows);
  return at::cat({at::real(c), at::imag(c)}, 1);
}

TEST_P(TorchScanTest, IsTheRecurrenceForAnyChunk) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  for (const bool selective : {false, true}) {
    for (const std::vector<int32_t>& starts :
         std::vector<std::vector<int32_t>>{{0, 300}, {0, 256}, {0, 1, 100, 102, 300}}) {
      const RandomScan scan = MakeRandomScan(starts, 5, selective);
      const at::Tensor expected = ReferenceScan(scan.spans, scan.Lambdas(), scan.b_nz, scan.initial_sz);
      for (const int64_t chunk : {int64_t{1}, int64_t{7}, int64_t{64}, int64_t{256}, scan.rows()}) {
        SCOPED_TRACE((selective ? "selective, " : "constant, ") + std::to_string(starts.size() - 1) +
                     " spans, chunk " + std::to_string(chunk));
        ScanEnds ends{.initial_sz = scan.initial_sz, .last_sz = at::zeros_like(scan.initial_sz)};
        const at::Tensor c_nz = TorchScan({GetParam(), chunk}, scan.decay, scan.b_nz, scan.spans, ends);
        EXPECT_LT(LargestDifference(c_nz, expected), 1e-12);
        EXPECT_TRUE(ends.last_sz[-1].equal(c_nz[-1]));
        if (GetParam() == ScanKind::kSequential) break;
      }
    }
  }
}

TEST_P(TorchScanTest, AConstantDecayIsTheConvolutionOfTheFourierTransform) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const RandomScan scan = MakeRandomScan({0, 1000}, 6, /*selective=*/false);
  const at::Tensor expected = ByFourierTransform(scan);
  for (const int64_t chunk : {int64_t{1}, int64_t{7}, int64_t{64}, int64_t{256}, scan.rows()}) {
    ScanEnds ends;
    const at::Tensor c_nz = TorchScan({GetParam(), chunk}, scan.decay, scan.b_nz, scan.spans, ends);
    EXPECT_LT(LargestDifference(c_nz, expected), 1e-12) << "chunk " << chunk;
    if (GetParam() == ScanKind::kSequential) break;
  }
}

/// <d_c, c> + <d_last, last>, by the recurrence.
double Loss(const RandomScan& scan, const at::Tensor& lambda_nz, const at::Tensor& b_nz,
            const at::Tensor& initial_sz) {
  const at::Tensor c_nz = ReferenceScan(scan.spans, lambda_nz, b_nz, initial_sz);
  double loss = c_nz.mul(scan.d_c_nz).sum().item<double>();
  for (int64_t span = 0; span + 1 < std::ssize(scan.spans.starts); ++span) {
    loss +=
        c_nz[scan.spans.starts[static_cast<size_t>(span) + 1] - 1].dot(scan.d_last_sz[span]).item<double>();
  }
  return loss;
}

ScanGradients GradientsOf(ScanKind kind, const RandomScan& scan) {
  ScanGradients gradients{.b_nz = at::zeros_like(scan.b_nz), .initial_sz = at::zeros_like(scan.initial_sz)};
  if (scan.decay.selective()) {
    gradients.lambda_nz = at::zeros_like(scan.b_nz);
  } else {
    gradients.lambda_z = at::zeros({scan.width()}, at::kDouble);
  }
  TorchScanBackward({kind, 3}, scan.decay, scan.b_nz, scan.spans, {.initial_sz = scan.initial_sz},
                    scan.d_c_nz, scan.d_last_sz, gradients);
  return gradients;
}

TEST_P(TorchScanTest, GradientsEqualFiniteDifferences) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  for (const bool selective : {false, true}) {
    SCOPED_TRACE(selective ? "selective" : "constant");
    const RandomScan scan = MakeRandomScan({0, 1, 4, 12}, 2, selective);
    const at::Tensor lambda_nz = scan.Lambdas();
    const ScanGradients gradients = GradientsOf(GetParam(), scan);
    const at::Tensor of_b = NumericalGradient(
        [&](const at::Tensor& b) { return Loss(scan, lambda_nz, b, scan.initial_sz); }, scan.b_nz);
    const at::Tensor of_initial = NumericalGradient(
        [&](const at::Tensor& initial) { return Loss(scan, lambda_nz, scan.b_nz, initial); },
        scan.initial_sz);
    const at::Tensor of_lambda = NumericalGradient(
        [&](const at::Tensor& lambda) { return Loss(scan, lambda, scan.b_nz, scan.initial_sz); }, lambda_nz);
    EXPECT_LT(LargestDifference(gradients.b_nz, of_b), 1e-8);
    EXPECT_LT(LargestDifference(gradients.initial_sz, of_initial), 1e-8);
    if (selective) {
      EXPECT_LT(LargestDifference(gradients.lambda_nz, of_lambda), 1e-8);
    } else {
      EXPECT_LT(LargestDifference(gradients.lambda_z, of_lambda.sum(0)), 1e-8);
    }
  }
}

/// The chain rule that the header gives for log|lambda| and the angle.
TEST_P(TorchScanTest, GradientsOfLogModulusAndAngleFollowFromThatOfLambda) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const RandomScan scan = MakeRandomScan({0, 12}, 3, /*selective=*/false);
  const auto loss_with = [&](const at::Tensor& log_modulus, const at::Tensor& angle) {
    RandomScan other = scan;
    other.decay = {.log_modulus_k = log_modulus, .angle_k = angle};
    return Loss(scan, other.Lambdas(), scan.b_nz, scan.initial_sz);
  };
  const at::Tensor of_modulus = NumericalGradient(
      [&](const at::Tensor& log_modulus) { return loss_with(log_modulus, scan.decay.angle_k); },
      scan.decay.log_modulus_k);
  const at::Tensor of_angle =
      NumericalGradient([&](const at::Tensor& angle) { return loss_with(scan.decay.log_modulus_k, angle); },
                        scan.decay.angle_k);
  const at::Tensor d_lambda = GradientsOf(GetParam(), scan).lambda_z.view({2, 3});
  const at::Tensor lambda = scan.Lambdas()[0].view({2, 3});
  const at::Tensor re = d_lambda[0].mul(lambda[0]).add(d_lambda[1].mul(lambda[1]));
  const at::Tensor im = d_lambda[1].mul(lambda[0]).sub(d_lambda[0].mul(lambda[1]));
  EXPECT_LT(LargestDifference(re, of_modulus), 1e-8);
  EXPECT_LT(LargestDifference(im, of_angle), 1e-8);
}

}  // namespace
}  // namespace trainwright
