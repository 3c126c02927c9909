#include "lib/nn/scan/eigen_decay.h"

#include <ATen/ops/log_sigmoid.h>

namespace trainwright {
namespace {

constexpr double kLargestLogModulus = -1e-6;

/// log |lambda| before it is clamped.
at::Tensor LogModulus(TenInit init, const at::Tensor& a_k) {
  return init == TenInit::kLru ? a_k.exp().neg() : at::log_sigmoid(a_k);
}
at::Tensor Angle(TenInit init, const at::Tensor& w_k) {
  return init == TenInit::kLru ? w_k.exp() : w_k;
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
  d_log_modulus = d_log_modulus.mul(free_modulus.le(kLargestLogModulus));
  // d log |lambda| / d a: -e^a, which is the log modulus itself; of a sigmoid 1 - |lambda|.
  const at::Tensor slope = init == TenInit::kLru ? free_modulus : free_modulus.expm1().neg();
  d_a_k.add_(d_log_modulus.mul(slope).to(at::kFloat));
  d_w_k.add_((init == TenInit::kLru ? d_angle.mul(angle) : d_angle).to(at::kFloat));
}

}  // namespace trainwright
