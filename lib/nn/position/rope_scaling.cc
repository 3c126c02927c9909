#include "lib/nn/position/rope_scaling.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lib/base/error.h"

namespace trainwright {
namespace {

/// 0, 2 / d, 4 / d ... in fp32 for the share d of a head.
at::Tensor Exponents(int64_t share) {
  return at::arange(0, share, 2, at::kLong).to(at::kFloat).div_(share);
}

/// The context's dimension at which a frequency turns `rotations` times. \source arXiv:2309.00071,
/// section 3.2
double YarnDimension(const RopeParameters& rope, int64_t share, double rotations) {
  return static_cast<double>(share) *
         std::log(static_cast<double>(rope.original_positions) / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(rope.theta));
}

at::Tensor YarnFrequencies(const RopeParameters& rope, int64_t share) {
  double low = YarnDimension(rope, share, rope.beta_fast), high = YarnDimension(rope, share, rope.beta_slow);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(share - 1));
  if (low == high) high += 0.001;
  const at::Tensor periods = at::pow(rope.theta, Exponents(share));
  const at::Tensor extrapolated = at::reciprocal(periods),
                   interpolated = at::reciprocal(periods.mul(rope.factor));
  const at::Tensor ramp = at::arange(periods.numel(), at::kFloat).sub_(low).div_(high - low).clamp_(0, 1);
  const at::Tensor kept = ramp.neg().add_(1);
  return interpolated.mul(kept.neg().add_(1)).add_(extrapolated.mul(kept));
}

at::Tensor Llama3Frequencies(const RopeParameters& rope, const at::Tensor& plain) {
  const auto context = static_cast<double>(rope.original_positions);
  const double longest = context / rope.low_freq_factor, shortest = context / rope.high_freq_factor;
  const at::Tensor wavelengths = at::reciprocal(plain).mul_(2 * std::numbers::pi);
  const at::Tensor scaled = at::where(wavelengths.gt(longest), plain.div(rope.factor), plain);
  const at::Tensor smooth = at::reciprocal(wavelengths)
                                .mul_(context)
                                .sub_(rope.low_freq_factor)
                                .div_(rope.high_freq_factor - rope.low_freq_factor);
  const at::Tensor smoothed = smooth.neg().add_(1).mul_(scaled).div_(rope.factor).add_(smooth.mul(scaled));
  const at::Tensor medium = wavelengths.ge(shortest).logical_and_(wavelengths.le(longest));
  return at::where(medium, smoothed, scaled);
}

at::Tensor LongropeFrequencies(const std::vector<double>& factors, double theta, int64_t share) {
  at::Tensor periods = at::pow(theta, Exponents(share));
  TRAINWRIGHT_CHECK(static_cast<int64_t>(factors.size()) == periods.numel());
  at::Tensor scale = at::empty({periods.numel()}, at::kFloat);
  std::transform(factors.begin(), factors.end(), scale.mutable_data_ptr<float>(),
                 [](double factor) { return static_cast<float>(factor); });
  return at::reciprocal(scale.mul_(periods));
}

/// The base of NTK-aware scaling, in fp32 as transformers computes it.
at::Tensor DynamicTheta(const RopeParameters& rope, int64_t share, int64_t length) {
  const auto width = static_cast<double>(share);
  return at::scalar_tensor(length, at::kLong)
      .mul(rope.factor)
      .div(rope.original_positions)
      .sub(rope.factor - 1)
      .pow(width / (width - 2))
      .mul(rope.theta);
}

}  // namespace

at::Tensor RopeFrequencies(const RopeParameters& rope, int64_t head_dim, int64_t length) {
  const int64_t share = rope.RotaryShare(head_dim);
  const bool beyond = rope.LengthClass(length) != 0;
  if (rope.type == RopeType::kYarn) return YarnFrequencies(rope, share);
  if (rope.type == RopeType::kLongrope) {
    return LongropeFrequencies(beyond ? rope.long_factors : rope.short_factors, rope.theta, share);
  }
  if (rope.type == RopeType::kDynamic && beyond) {
    return at::pow(DynamicTheta(rope, share, length), Exponents(share)).reciprocal_();
  }
  const at::Tensor plain = at::pow(rope.theta, Exponents(share)).reciprocal_();
  if (rope.type == RopeType::kLinear) return plain.div(rope.factor);
  if (rope.type == RopeType::kLlama3) return Llama3Frequencies(rope, plain);
  return plain;
}

double RopeAttentionFactor(const RopeParameters& rope) {
  if (rope.type != RopeType::kYarn && rope.type != RopeType::kLongrope) return 1.0;
  if (rope.attention_factor) return *rope.attention_factor;
  if (rope.factor <= 1) return 1.0;
  const double growth = std::log(rope.factor);
  if (rope.type == RopeType::kLongrope) {
    return std::sqrt(1 + growth / std::log(static_cast<double>(rope.original_positions)));
  }
  const auto scale = [&](double mscale) { return 0.1 * mscale * growth + 1.0; };
  if (rope.mscale.value_or(0) != 0 && rope.mscale_all_dim.value_or(0) != 0) {
    return scale(*rope.mscale) / scale(*rope.mscale_all_dim);
  }
  return scale(1);
}

}  // namespace trainwright
