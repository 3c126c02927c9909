/// A decay of each row's own: that of eigen_decay.h with what a row asks for added to the two trained numbers
/// of a channel. With s1 and s2 the two halves of a row of its projection,
///   lambda_t = lambda(a + 0.1 tanh(s1_t), w + 0.05 tanh(s2_t)),
/// so that it stays near the channel's own and in the unit circle. s = 0 is the constant decay. gamma stays
/// that of a and w alone (EigenDecayOf): what enters the recurrence is scaled by one number a channel.
///
/// Numerics: what depends on the channel alone is computed in fp64; the rest is fp32, lambda within 1e-6 of
/// the formula where s2 turns the angle by 1 or less. log |lambda| is at most kLargestLogModulus, and where
/// that holds neither a nor s1 has a gradient through lambda.
///
/// N rows, K channels, Z = 2 K as in diagonal_scan.h.
#pragma once

#include <ATen/core/Tensor.h>

#include "lib/nn/precision.h"
#include "lib/spec/ten_init.h"

namespace trainwright {

/// \param a_k, w_k fp32 [K]
/// \param s_nz storage type [N, Z], contiguous: s1 | s2
/// \param lambda_nz fp32 [N, Z], contiguous: ScanDecay::lambda_nz
void SelectiveDecay(const Numerics& numerics, TenInit init, const at::Tensor& a_k, const at::Tensor& w_k,
                    const at::Tensor& s_nz, at::Tensor& lambda_nz);

/// Overwrites s_nz with its gradient, rounded, and adds the gradients of a_k and w_k to theirs; their sums
/// over rows have an order that depends on the number of rows alone.
/// \param d_lambda_nz fp32 [N, Z], contiguous: ScanGradients::lambda_nz
/// \param d_gamma_k fp64 [K], as EigenDecayBackward takes it; undefined: zero
/// \param d_a_k, d_w_k fp32 [K]; both undefined: not wanted
void SelectiveDecayBackward(const Numerics& numerics, TenInit init, const at::Tensor& a_k,
                            const at::Tensor& w_k, const at::Tensor& d_lambda_nz, const at::Tensor& d_gamma_k,
                            at::Tensor& s_nz, at::Tensor& d_a_k, at::Tensor& d_w_k);

/// The implementations for devices other than the CPU, out of torch's operators; they run there, too. Sums
/// are added up in another order.
namespace on_device {

void SelectiveDecay(const Numerics& numerics, TenInit init, const at::Tensor& a_k, const at::Tensor& w_k,
                    const at::Tensor& s_nz, at::Tensor& lambda_nz);
void SelectiveDecayBackward(const Numerics& numerics, TenInit init, const at::Tensor& a_k,
                            const at::Tensor& w_k, const at::Tensor& d_lambda_nz, at::Tensor& s_nz,
                            at::Tensor& d_a_k, at::Tensor& d_w_k);

}  // namespace on_device
}  // namespace trainwright
