#include "lib/nn/scan/eigen_decay.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/softplus.h>

#include <cmath>
#include <numbers>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/profile_scope.h"
#include "lib/base/rng.h"

namespace trainwright {
namespace {

/// log |lambda| before it is clamped.
at::Tensor LogModulus(TenInit init, const at::Tensor& a_k) {
  if (init == TenInit::kLru) return a_k.exp().neg();
  // log sigmoid(a), by an operator that runs on the meta device, too. Above the threshold
  // softplus(x) is x, in doubles.
  return at::softplus(a_k.neg(), /*beta=*/1, /*threshold=*/40).neg();
}
at::Tensor Angle(TenInit init, const at::Tensor& w_k) {
  return init == TenInit::kLru ? w_k.exp() : w_k;
}

/// f(channel) of each, fp64 [K].
template <typename Function>
at::Tensor OfChannels(int64_t channels, const Function& f) {
  at::Tensor values_k = at::empty({channels}, at::kDouble);
  auto* values = values_k.mutable_data_ptr<double>();
  for (int64_t i = 0; i < channels; ++i) values[i] = f(i);
  return values_k;
}

/// Uniform in (0, 1], for logarithms.
double AboveZero(const Rng& rng, int64_t channel) {
  return 1 - rng.Uniform(static_cast<uint64_t>(channel));
}

/// Of compat's a, by the depth of the layer.
std::pair<double, double> RangeOfCompat(bool depth_decay, int64_t layer, int64_t layers) {
  if (!depth_decay) return {-3, -0.1};
  const double depth = layers > 1 ? static_cast<double>(layer) / static_cast<double>(layers - 1) : 0;
  const double center = -2 + 1.5 * depth;
  return {center - 1, center + 0.5};
}

}  // namespace

EigenDecay EigenDecayOf(TenInit init, const at::Tensor& a_k, const at::Tensor& w_k) {
  EigenDecay eigen;
  eigen.decay.log_modulus_k = LogModulus(init, a_k.to(at::kDouble)).clamp_max(kLargestLogModulus);
  eigen.decay.angle_k = Angle(init, w_k.to(at::kDouble)).contiguous();
  if (init == TenInit::kLru) {
    eigen.gamma_k = eigen.decay.log_modulus_k.mul(2).expm1().neg().sqrt().to(at::kFloat);
  }
  return eigen;
}

void EigenDecayBackward(TenInit init, const at::Tensor& a_k, const at::Tensor& w_k,
                        const at::Tensor& d_lambda_z, const at::Tensor& d_gamma_k, at::Tensor& d_a_k,
                        at::Tensor& d_w_k) {
  const ProfileScope scope("eigen_decay_backward", ProfilePart::kScan);
  const int64_t channels = a_k.numel();
  const at::Tensor a = a_k.to(at::kDouble), w = w_k.to(at::kDouble);
  const at::Tensor free_modulus = LogModulus(init, a),
                   log_modulus = free_modulus.clamp_max(kLargestLogModulus);
  const at::Tensor angle = Angle(init, w), modulus = log_modulus.exp();
  const at::Tensor re = modulus.mul(angle.cos()), im = modulus.mul(angle.sin());
  const at::Tensor d_re = d_lambda_z.narrow(0, 0, channels), d_im = d_lambda_z.narrow(0, channels, channels);
  const at::Tensor d_angle = d_im.mul(re).sub(d_re.mul(im));
  at::Tensor d_log_modulus = d_re.mul(re).add(d_im.mul(im));
  if (d_gamma_k.defined() && init == TenInit::kLru) {
    // d gamma / d log |lambda| = -|lambda|^2 / gamma
    const at::Tensor gamma = log_modulus.mul(2).expm1().neg().sqrt();
    d_log_modulus = d_log_modulus.sub(d_gamma_k.mul(modulus.square()).div(gamma));
  }
  // Of a clamped modulus what would make it larger is dropped. What makes it smaller stays, by the slope at
  // the edge: so a channel can come back.
  d_log_modulus = d_log_modulus.mul(free_modulus.le(kLargestLogModulus).bitwise_or(d_log_modulus.gt(0)));
  // d log |lambda| / d a: -e^a, which is the log modulus itself; of a sigmoid 1 - |lambda|.
  const at::Tensor slope = init == TenInit::kLru ? log_modulus : log_modulus.expm1().neg();
  d_a_k.add_(d_log_modulus.mul(slope).to(at::kFloat));
  d_w_k.add_((init == TenInit::kLru ? d_angle.mul(angle) : d_angle).to(at::kFloat));
}

DecayStart StartDecay(uint64_t seed, const std::string& a_name, const std::string& w_name,
                      const TenFields& fields, int64_t channels, int64_t layer, int64_t layers) {
  TRAINWRIGHT_CHECK(layer >= 0 && layer < layers);
  const Rng of_a(seed, "init/" + a_name), of_w(seed, "init/" + w_name);
  if (fields.init == TenInit::kLru) {
    const double least = fields.min_modulus * fields.min_modulus;
    const double range = fields.max_modulus * fields.max_modulus - least;
    return {.a_k = OfChannels(channels,
                              [&](int64_t i) {
                                const double squared_modulus = least + AboveZero(of_a, i) * range;
                                return std::log(-0.5 * std::log(squared_modulus));
                              }),
            .w_k = OfChannels(channels,
                              [&](int64_t i) { return std::log(AboveZero(of_w, i) * fields.max_angle); })};
  }
  const std::pair<double, double> range = RangeOfCompat(fields.depth_decay, layer, layers);
  const double step = 2 * std::numbers::pi / static_cast<double>(channels);
  return {.a_k = OfChannels(channels,
                            [&](int64_t i) {
                              const double share = of_a.Uniform(static_cast<uint64_t>(i));
                              return range.first + share * (range.second - range.first);
                            }),
          .w_k = OfChannels(channels, [&](int64_t i) { return static_cast<double>(i) * step; })};
}

}  // namespace trainwright
