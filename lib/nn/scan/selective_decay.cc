#include "lib/nn/scan/selective_decay.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include "lib/base/error.h"
#include "lib/base/profile_scope.h"
#include "lib/nn/activation/elementwise.h"
#include "lib/nn/cpu/parallel.h"
#include "lib/nn/scan/eigen_decay.h"
#include "lib/nn/scan/selective_channels.h"

namespace trainwright {
namespace {

/// What depends on the channel alone, from fp64.
struct ChannelNumbers {
  ChannelNumbers(TenInit init_of_all, const at::Tensor& a_k, const at::Tensor& w_k) : init(init_of_all) {
    const at::Tensor a = a_k.to(at::kDouble), angle = EigenDecayOf(init, a_k, w_k).decay.angle_k;
    level_k = (init == TenInit::kLru ? a.exp().neg() : a).to(at::kFloat);
    angle_k = angle.to(at::kFloat);
    cosine_k = angle.cos().to(at::kFloat);
    sine_k = angle.sin().to(at::kFloat);
  }
  DecayChannels OnCpu() const {
    return {.init = init,
            .channels = level_k.numel(),
            .level_k = level_k.const_data_ptr<float>(),
            .angle_k = angle_k.const_data_ptr<float>(),
            .cosine_k = cosine_k.const_data_ptr<float>(),
            .sine_k = sine_k.const_data_ptr<float>()};
  }

  TenInit init;
  at::Tensor level_k, angle_k, cosine_k, sine_k;  ///< fp32; see DecayChannels
};

void CheckInputs(const Numerics& numerics, const at::Tensor& a_k, const at::Tensor& w_k,
                 const at::Tensor& s_nz, const at::Tensor& lambda_nz) {
  TRAINWRIGHT_CHECK(a_k.is_contiguous() && w_k.is_contiguous() && a_k.sizes() == w_k.sizes() &&
                    2 * a_k.numel() == s_nz.size(1));
  TRAINWRIGHT_CHECK(s_nz.is_contiguous() && s_nz.scalar_type() == numerics.storage);
  TRAINWRIGHT_CHECK(lambda_nz.is_contiguous() && lambda_nz.scalar_type() == at::kFloat &&
                    lambda_nz.sizes() == s_nz.sizes());
}

/// The kernels' formulas out of torch's operators, of all rows.
struct DecaysOfRows {
  DecaysOfRows(const Numerics& numerics, const ChannelNumbers& of, const at::Tensor& s_nz) {
    const bool lru = of.init == TenInit::kLru;
    const int64_t channels = of.level_k.numel();
    const at::Tensor s = Loaded(numerics, s_nz);
    tanh_level = s.narrow(1, 0, channels).tanh();
    tanh_angle = s.narrow(1, channels, channels).tanh();
    const at::Tensor level_shift = tanh_level.mul(kLevelReach), angle_shift = tanh_angle.mul(kAngleReach);
    level = lru ? of.level_k.mul(level_shift.exp()).clamp_min(kLeastLogModulus) : of.level_k.add(level_shift);
    const at::Tensor modulus =
        lru ? level.clamp_max(kLargestLogModulus).exp() : level.sigmoid().clamp_max(1 + kLargestLogModulus);
    turn = lru ? of.angle_k.mul(angle_shift.expm1()) : angle_shift;
    const at::Tensor cosine = turn.cos(), sine = turn.sin();
    re = modulus.mul(of.cosine_k.mul(cosine).sub(of.sine_k.mul(sine)));
    im = modulus.mul(of.sine_k.mul(cosine).add(of.cosine_k.mul(sine)));
  }

  at::Tensor tanh_level, tanh_angle, level, turn, re, im;  ///< fp32 [N, K]
};

}  // namespace

void SelectiveDecay(const Numerics& numerics, TenInit init, const at::Tensor& a_k, const at::Tensor& w_k,
                    const at::Tensor& s_nz, at::Tensor& lambda_nz) {
  const ProfileScope scope("selective_decay", ProfilePart::kScan);
  CheckInputs(numerics, a_k, w_k, s_nz, lambda_nz);
  if (lambda_nz.is_meta()) return;  // nothing to compute
  if (!lambda_nz.is_cpu()) return on_device::SelectiveDecay(numerics, init, a_k, w_k, s_nz, lambda_nz);
  const ChannelNumbers numbers(init, a_k, w_k);
  const DecayChannels channels = numbers.OnCpu();
  const cpu::Codec codec = cpu::CodecOf(numerics);
  const void* s = s_nz.const_data_ptr();
  float* lambda = lambda_nz.mutable_data_ptr<float>();
  cpu::ParallelRows(s_nz.size(0), 16 * s_nz.size(1), [&](int64_t begin, int64_t end) {
    cpu::BestKernels().decay_rows(codec, channels, s, lambda, begin, end);
  });
}

void SelectiveDecayBackward(const Numerics& numerics, TenInit init, const at::Tensor& a_k,
                            const at::Tensor& w_k, const at::Tensor& d_lambda_nz, const at::Tensor& d_gamma_k,
                            at::Tensor& s_nz, at::Tensor& d_a_k, at::Tensor& d_w_k) {
  const ProfileScope scope("selective_decay_backward", ProfilePart::kScan);
  CheckInputs(numerics, a_k, w_k, s_nz, d_lambda_nz);
  TRAINWRIGHT_CHECK(d_a_k.defined() == d_w_k.defined());
  if (s_nz.is_meta()) return;
  const int64_t rows = s_nz.size(0), width = s_nz.size(1), count = a_k.numel();
  if (d_a_k.defined() && d_gamma_k.defined()) {
    const at::Tensor none_z = at::zeros({width}, a_k.options().dtype(at::kDouble));
    EigenDecayBackward(init, a_k, w_k, none_z, d_gamma_k, d_a_k, d_w_k);
  }
  if (!s_nz.is_cpu()) {
    return on_device::SelectiveDecayBackward(numerics, init, a_k, w_k, d_lambda_nz, s_nz, d_a_k, d_w_k);
  }
  const ChannelNumbers numbers(init, a_k, w_k);
  const DecayChannels channels = numbers.OnCpu();
  const cpu::Codec codec = cpu::CodecOf(numerics);
  const float* d_lambda = d_lambda_nz.const_data_ptr<float>();
  void* s = s_nz.mutable_data_ptr();
  const auto backward = [&](float* sums, int64_t begin, int64_t end) {
    cpu::BestKernels().decay_rows_backward(codec, channels, d_lambda, s, sums, begin, end);
  };
  if (!d_a_k.defined()) {
    cpu::ParallelRows(rows, 16 * width, [&](int64_t begin, int64_t end) { backward(nullptr, begin, end); });
    return;
  }
  float *d_a = d_a_k.mutable_data_ptr<float>(), *d_w = d_w_k.mutable_data_ptr<float>();
  cpu::SumOverRowBlocks(rows, width, backward, [&](const float* sums) {
    for (int64_t i = 0; i < count; ++i) {
      d_a[i] += sums[i];
      d_w[i] += sums[count + i];
    }
  });
}

namespace on_device {

void SelectiveDecay(const Numerics& numerics, TenInit init, const at::Tensor& a_k, const at::Tensor& w_k,
                    const at::Tensor& s_nz, at::Tensor& lambda_nz) {
  const DecaysOfRows rows(numerics, ChannelNumbers(init, a_k, w_k), s_nz);
  lambda_nz.copy_(at::cat({rows.re, rows.im}, 1));
}

void SelectiveDecayBackward(const Numerics& numerics, TenInit init, const at::Tensor& a_k,
                            const at::Tensor& w_k, const at::Tensor& d_lambda_nz, at::Tensor& s_nz,
                            at::Tensor& d_a_k, at::Tensor& d_w_k) {
  const bool lru = init == TenInit::kLru;
  const ChannelNumbers numbers(init, a_k, w_k);
  const DecaysOfRows rows(numerics, numbers, s_nz);
  const int64_t channels = a_k.numel();
  const at::Tensor d_re = d_lambda_nz.narrow(1, 0, channels),
                   d_im = d_lambda_nz.narrow(1, channels, channels);
  const at::Tensor is_free =
      lru ? rows.level.le(kLargestLogModulus) : rows.level.sigmoid().le(1 + kLargestLogModulus);
  const at::Tensor d_log_modulus = d_re.mul(rows.re).add(d_im.mul(rows.im)).mul(is_free);
  const at::Tensor d_angle = d_im.mul(rows.re).sub(d_re.mul(rows.im));
  const at::Tensor d_a = d_log_modulus.mul(lru ? rows.level : rows.level.neg().sigmoid());
  const at::Tensor d_w = lru ? d_angle.mul(numbers.angle_k.add(rows.turn)) : d_angle;
  const auto through_tanh = [](const at::Tensor& d, const at::Tensor& of_shift, double reach) {
    return d.mul(of_shift.square().neg().add(1)).mul(reach);
  };
  RoundInto(numerics,
            at::cat({through_tanh(d_a, rows.tanh_level, kLevelReach),
                     through_tanh(d_w, rows.tanh_angle, kAngleReach)},
                    1),
            s_nz);
  if (!d_a_k.defined()) return;
  d_a_k.add_(d_a.sum(0, /*keepdim=*/false, at::kFloat));
  d_w_k.add_(d_w.sum(0, /*keepdim=*/false, at::kFloat));
}

}  // namespace on_device
}  // namespace trainwright
