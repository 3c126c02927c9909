/// The decay of a diagonal recurrence from the two numbers a channel that are trained, and the way back.
///
///   lru      |lambda| = exp(-e^a)    angle = e^w    gamma = sqrt(1 - |lambda|^2)
///   compat   |lambda| = sigmoid(a)   angle = w      gamma = 1
/// lambda lies in the unit circle whatever is trained. gamma scales what enters the recurrence: the state of
/// white noise then has its variance.
/// \source Orvieto et al. 2023, arXiv:2303.06349 (lru)
///
/// Numerics: fp64 throughout, from fp32 parameters; log |lambda| is at most -1e-6. Where that holds a has a
/// gradient only if a step against it makes |lambda| smaller, with the slope of -1e-6. K channels, Z = 2 K as
/// in diagonal_scan.h. On any device, and without waiting for it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "lib/nn/scan/diagonal_scan.h"
#include "lib/spec/ten_fields.h"
#include "lib/spec/ten_init.h"

namespace trainwright {

struct EigenDecay {
  ScanDecay decay;     ///< of all rows
  at::Tensor gamma_k;  ///< fp32 [K]; undefined: 1
};

/// \param a_k, w_k fp32 [K]
EigenDecay EigenDecayOf(TenInit init, const at::Tensor& a_k, const at::Tensor& w_k);

/// Adds the gradients of a_k and w_k to theirs.
/// \param d_lambda_z fp64 [Z], of ScanGradients
/// \param d_gamma_k fp64 [K]; undefined: zero
/// \param d_a_k, d_w_k fp32 [K]
void EigenDecayBackward(TenInit init, const at::Tensor& a_k, const at::Tensor& w_k,
                        const at::Tensor& d_lambda_z, const at::Tensor& d_gamma_k, at::Tensor& d_a_k,
                        at::Tensor& d_w_k);

/// Where training starts, fp64 [K].
struct DecayStart {
  at::Tensor a_k, w_k;
};

/// lru: |lambda|^2 uniform from min_modulus^2 to max_modulus^2, so that lambda is uniform over the ring
/// between the two, and the angle uniform up to max_angle, in every layer. compat: a uniform from -3 to -0.1,
/// or with depth_decay from c - 1 to c + 0.5 where c rises from -2 in the first layer to -0.5 in the last
/// one, and the angles evenly around the circle.
/// \param a_name, w_name of the parameters: with `seed` all that is drawn depends on, as in InitializeWeights
/// \param channels K, of the cell: that of a window in the multi-scale block
/// \param layer from 0 to layers - 1
DecayStart StartDecay(uint64_t seed, const std::string& a_name, const std::string& w_name,
                      const TenFields& fields, int64_t channels, int64_t layer, int64_t layers);

}  // namespace trainwright
