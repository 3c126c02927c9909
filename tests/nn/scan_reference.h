/// The diagonal recurrence as it is written, in double, and random scans: the oracle of its implementations.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>

#include <complex>
#include <cstdint>
#include <utility>
#include <vector>

#include "lib/nn/scan/diagonal_scan.h"
#include "tests/nn/reference.h"

namespace trainwright::test {

/// The arguments of a scan and of its backward pass in fp64, of values that fp32 holds, too.
struct RandomScan {
  SpanTable spans;
  ScanDecay decay;
  at::Tensor b_nz, d_c_nz, initial_sz, d_last_sz;

  int64_t rows() const { return b_nz.size(0); }
  int64_t width() const { return b_nz.size(1); }
  /// lambda of each row, [N, Z].
  at::Tensor Lambdas() const {
    if (decay.selective()) return decay.lambda_nz;
    const at::Tensor modulus_k = decay.log_modulus_k.exp();
    const at::Tensor lambda_z =
        at::cat({modulus_k.mul(decay.angle_k.cos()), modulus_k.mul(decay.angle_k.sin())});
    return lambda_z.expand({rows(), width()}).contiguous();
  }
  /// With fp32 tensors, as the models have them.
  RandomScan InFp32() const {
    RandomScan scan = *this;
    for (at::Tensor* tensor :
         {&scan.decay.lambda_nz, &scan.b_nz, &scan.d_c_nz, &scan.initial_sz, &scan.d_last_sz}) {
      if (tensor->defined()) *tensor = tensor->to(at::kFloat);
    }
    return scan;
  }
};

/// Moduli from 0.5 to 0.9999, mostly near 1, and all angles.
inline RandomScan MakeRandomScan(std::vector<int32_t> starts, int64_t channels, bool selective,
                                 uint64_t stream = 0) {
  const int64_t rows = starts.back(), spans = static_cast<int64_t>(starts.size()) - 1;
  const auto random = [&](int64_t count, int64_t width, uint64_t of) {
    return RandomTensor({count, width}, 16 * stream + of).to(at::kDouble);
  };
  RandomScan scan{.spans = SpanTable(std::move(starts))};
  const int64_t decays = selective ? rows : 1;
  const at::Tensor log_modulus =
      random(decays, channels, 0).mul(2).sub(4).exp().add(1e-4).clamp_max(0.7).neg();
  const at::Tensor angle = random(decays, channels, 1).mul(3);
  if (selective) {
    const at::Tensor modulus = log_modulus.exp();
    scan.decay.lambda_nz =
        at::cat({modulus.mul(angle.cos()), modulus.mul(angle.sin())}, 1).to(at::kFloat).to(at::kDouble);
  } else {
    scan.decay.log_modulus_k = log_modulus[0].contiguous();
    scan.decay.angle_k = angle[0].contiguous();
  }
  scan.b_nz = random(rows, 2 * channels, 2);
  scan.d_c_nz = random(rows, 2 * channels, 3);
  scan.initial_sz = random(spans, 2 * channels, 4);
  scan.d_last_sz = random(spans, 2 * channels, 5);
  return scan;
}

/// c [N, Z] row by row.
/// \param lambda_nz, b_nz, initial_sz fp64
inline at::Tensor ReferenceScan(const SpanTable& spans, const at::Tensor& lambda_nz, const at::Tensor& b_nz,
                                const at::Tensor& initial_sz) {
  at::Tensor c_nz = at::empty_like(b_nz);
  const int64_t channels = b_nz.size(1) / 2;
  const auto number = [&](const at::Tensor& x, int64_t row, int64_t i) {
    const double* values = x.const_data_ptr<double>() + row * 2 * channels;
    return std::complex<double>(values[i], values[channels + i]);
  };
  for (int64_t span = 0; span + 1 < static_cast<int64_t>(spans.starts.size()); ++span) {
    for (int64_t i = 0; i < channels; ++i) {
      std::complex<double> c = initial_sz.defined() ? number(initial_sz, span, i) : 0.0;
      for (int64_t row = spans.starts[static_cast<size_t>(span)];
           row < spans.starts[static_cast<size_t>(span) + 1]; ++row) {
        c = number(lambda_nz, row, i) * c + number(b_nz, row, i);
        c_nz.mutable_data_ptr<double>()[row * 2 * channels + i] = c.real();
        c_nz.mutable_data_ptr<double>()[row * 2 * channels + channels + i] = c.imag();
      }
    }
  }
  return c_nz;
}

/// max |a - b| / max |b|.
inline double LargestDifference(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor exact = b.to(at::kDouble);
  return a.to(at::kDouble).sub(exact).abs().max().item<double>() / exact.abs().max().item<double>();
}

}  // namespace trainwright::test
