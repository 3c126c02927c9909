#include "lib/nn/product_ops.h"

#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include "lib/nn/activation/gelu.h"
#include "lib/nn/find_operator.h"
#include "lib/nn/linear/bias.h"
#include "lib/nn/linear/matmul.h"
#include "lib/nn/precision.h"

namespace trainwright::ops {

bool Multiply(const at::Tensor& a_mk, const at::Tensor& b_kn, bool accumulate, int64_t candidate,
              at::Tensor& out_mn) {
  static const auto op = Find<decltype(Multiply)>("trainwright::multiply");
  return op.call(a_mk, b_kn, accumulate, candidate, out_mn);
}

bool LinearWithBias(const at::Tensor& x_nk, const at::Tensor& weight_ok, const at::Tensor& bias_o,
                    int64_t precision, int64_t candidate, at::Tensor& y_no) {
  static const auto op = Find<decltype(LinearWithBias)>("trainwright::linear_with_bias");
  return op.call(x_nk, weight_ok, bias_o, precision, candidate, y_no);
}

bool LinearWithGelu(const at::Tensor& x_nk, const at::Tensor& weight_ok,
                    const std::optional<at::Tensor>& bias_o, int64_t precision, int64_t candidate,
                    at::Tensor& pre_no, at::Tensor& y_no) {
  static const auto op = Find<decltype(LinearWithGelu)>("trainwright::linear_with_gelu");
  return op.call(x_nk, weight_ok, bias_o, precision, candidate, pre_no, y_no);
}

bool LinearBackwardIntoGelu(const at::Tensor& dy_no, const at::Tensor& weight_ok, const at::Tensor& pre_nk,
                            int64_t precision, int64_t candidate, at::Tensor& d_pre_nk) {
  static const auto op = Find<decltype(LinearBackwardIntoGelu)>("trainwright::linear_backward_into_gelu");
  return op.call(dy_no, weight_ok, pre_nk, precision, candidate, d_pre_nk);
}

bool LinearGradients(const at::Tensor& dy_no, const at::Tensor& x_nk, bool accumulate, int64_t precision,
                     int64_t candidate, at::Tensor& d_weight_ok, at::Tensor& d_bias_o) {
  static const auto op = Find<decltype(LinearGradients)>("trainwright::linear_gradients");
  return op.call(dy_no, x_nk, accumulate, precision, candidate, d_weight_ok, d_bias_o);
}

namespace {

/// The CPU's: the parts, in one way.
namespace on_cpu {

Numerics NumericsOf(int64_t precision, const at::Tensor& stored) {
  return {static_cast<Precision>(precision), stored.scalar_type()};
}

bool Multiply(const at::Tensor& a_mk, const at::Tensor& b_kn, bool accumulate, int64_t candidate,
              at::Tensor& out_mn) {
  if (candidate > 0) return false;
  Matmul(a_mk, b_kn, out_mn, accumulate);
  return true;
}

bool LinearWithBias(const at::Tensor& x_nk, const at::Tensor& weight_ok, const at::Tensor& bias_o,
                    int64_t precision, int64_t candidate, at::Tensor& y_no) {
  if (candidate > 0) return false;
  Matmul(x_nk, weight_ok.t(), y_no);
  AddBias(NumericsOf(precision, y_no), bias_o, y_no);
  return true;
}

bool LinearWithGelu(const at::Tensor& x_nk, const at::Tensor& weight_ok,
                    const std::optional<at::Tensor>& bias_o, int64_t precision, int64_t candidate,
                    at::Tensor& pre_no, at::Tensor& y_no) {
  if (candidate > 0) return false;
  const Numerics numerics = NumericsOf(precision, y_no);
  Matmul(x_nk, weight_ok.t(), pre_no);
  AddBias(numerics, bias_o.value_or(at::Tensor()), pre_no);
  Gelu(numerics, GeluKind::kTanh, pre_no, {}, y_no);
  return true;
}

bool LinearBackwardIntoGelu(const at::Tensor& dy_no, const at::Tensor& weight_ok, const at::Tensor& pre_nk,
                            int64_t precision, int64_t candidate, at::Tensor& d_pre_nk) {
  if (candidate > 0) return false;
  at::Tensor d_activation_nk = at::empty_like(d_pre_nk), unwanted;
  Matmul(dy_no, weight_ok, d_activation_nk);
  d_pre_nk.copy_(pre_nk);
  GeluBackward(NumericsOf(precision, pre_nk), GeluKind::kTanh, d_activation_nk, {}, d_pre_nk, unwanted);
  return true;
}

bool LinearGradients(const at::Tensor& dy_no, const at::Tensor& x_nk, bool accumulate, int64_t precision,
                     int64_t candidate, at::Tensor& d_weight_ok, at::Tensor& d_bias_o) {
  if (candidate > 0) return false;
  Matmul(dy_no.t(), x_nk, d_weight_ok, accumulate);
  d_bias_o.zero_();
  AccumulateBiasGradient(NumericsOf(precision, dy_no), dy_no, d_bias_o);
  return true;
}

}  // namespace on_cpu

/// The meta device's: results are tensors of the caller, so there is nothing to make and nothing to compute.
template <typename Signature>
struct OnMeta;
template <typename... Arguments>
struct OnMeta<bool(Arguments...)> {
  static bool SayYes(Arguments...) { return true; }
};

TORCH_LIBRARY_FRAGMENT(trainwright, library) {
  library.def("multiply(Tensor a, Tensor b, bool accumulate, int candidate, Tensor(a!) out) -> bool");
  library.def(
      "linear_with_bias(Tensor x, Tensor weight, Tensor bias, int precision, int candidate, Tensor(a!) y) -> "
      "bool");
  library.def(
      "linear_with_gelu(Tensor x, Tensor weight, Tensor? bias, int precision, int candidate, Tensor(a!) pre, "
      "Tensor(b!) y) -> bool");
  library.def(
      "linear_backward_into_gelu(Tensor dy, Tensor weight, Tensor pre, int precision, int candidate, "
      "Tensor(a!) d_pre) -> "
      "bool");
  library.def(
      "linear_gradients(Tensor dy, Tensor x, bool accumulate, int precision, int candidate, Tensor(a!) "
      "d_weight, "
      "Tensor(b!) d_bias) -> bool");
}

TORCH_LIBRARY_IMPL(trainwright, CPU, library) {
  library.impl("multiply", &on_cpu::Multiply);
  library.impl("linear_with_bias", &on_cpu::LinearWithBias);
  library.impl("linear_with_gelu", &on_cpu::LinearWithGelu);
  library.impl("linear_backward_into_gelu", &on_cpu::LinearBackwardIntoGelu);
  library.impl("linear_gradients", &on_cpu::LinearGradients);
}

TORCH_LIBRARY_IMPL(trainwright, Meta, library) {
  library.impl("multiply", &OnMeta<decltype(ops::Multiply)>::SayYes);
  library.impl("linear_with_bias", &OnMeta<decltype(ops::LinearWithBias)>::SayYes);
  library.impl("linear_with_gelu", &OnMeta<decltype(ops::LinearWithGelu)>::SayYes);
  library.impl("linear_backward_into_gelu", &OnMeta<decltype(ops::LinearBackwardIntoGelu)>::SayYes);
  library.impl("linear_gradients", &OnMeta<decltype(ops::LinearGradients)>::SayYes);
}

}  // namespace
}  // namespace trainwright::ops
