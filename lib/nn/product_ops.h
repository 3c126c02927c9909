/// The operators of torch's library "trainwright" (ops.h) that multiply matrices by a kernel of the caller's
/// choice and may do at once what comes before or after: biases, GELU and their gradients.
///
/// Each says whether it computed its result. A GPU whose library has no kernel for a shape answers no and
/// has written nothing: the caller computes the parts one by one (linear.h does). The CPU and the meta device
/// always say yes.
///
/// Of a shape the library may have several kernels: `candidate` is the number of one, the library's best
/// guess 0. One that it does not have is answered with no. The CPU has one.
///
/// Numerics. On a GPU: those of lib/nn/cuda/epilogue_product.h, fp32 sums rounded once at the end, with the
/// bias rounded to the storage type before it is added. On a CPU: those of the parts, each rounded.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace trainwright::ops {

/// out = a b, or out += a b.
/// \param a_mk, b_kn of one type; rows or columns contiguous
/// \param out_mn their type or fp32, rows contiguous
[[nodiscard]] bool Multiply(const at::Tensor& a_mk, const at::Tensor& b_kn, bool accumulate,
                            int64_t candidate, at::Tensor& out_mn);
/// y = x W^T + bias.
/// \param x_nk, weight_ok, y_no storage type, rows contiguous
/// \param bias_o fp32
[[nodiscard]] bool LinearWithBias(const at::Tensor& x_nk, const at::Tensor& weight_ok,
                                  const at::Tensor& bias_o, int64_t precision, int64_t candidate,
                                  at::Tensor& y_no);
/// pre = x W^T + bias, y = GeluKind::kTanh of it.
/// \param pre_no, y_no storage type, contiguous
[[nodiscard]] bool LinearWithGelu(const at::Tensor& x_nk, const at::Tensor& weight_ok,
                                  const std::optional<at::Tensor>& bias_o, int64_t precision,
                                  int64_t candidate, at::Tensor& pre_no, at::Tensor& y_no);
/// d_pre = dy W times the derivative of GeluKind::kTanh at pre: the way back through a layer that reads a
/// GELU.
/// \param dy_no, weight_ok storage type, rows contiguous
/// \param pre_nk, d_pre_nk storage type, contiguous
[[nodiscard]] bool LinearBackwardIntoGelu(const at::Tensor& dy_no, const at::Tensor& weight_ok,
                                          const at::Tensor& pre_nk, int64_t precision, int64_t candidate,
                                          at::Tensor& d_pre_nk);
/// The gradients of a weight and its bias: d_weight = or += dy^T x; d_bias = the column sums of dy.
/// \param dy_no, x_nk storage type, rows contiguous
/// \param d_weight_ok, d_bias_o fp32
/// \param accumulate whether d_weight_ok is added to; d_bias_o is overwritten in any case
[[nodiscard]] bool LinearGradients(const at::Tensor& dy_no, const at::Tensor& x_nk, bool accumulate,
                                   int64_t precision, int64_t candidate, at::Tensor& d_weight_ok,
                                   at::Tensor& d_bias_o);

}  // namespace trainwright::ops
