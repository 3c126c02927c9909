#include "lib/nn/ops.h"

#include <ATen/Parallel.h>
#include <torch/library.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/nn/activation/dropout.h"
#include "lib/nn/activation/elementwise.h"
#include "lib/nn/activation/gelu.h"
#include "lib/nn/activation/swiglu.h"
#include "lib/nn/embedding/embedding.h"
#include "lib/nn/find_operator.h"
#include "lib/nn/linear/bias.h"
#include "lib/nn/linear/dora_scales.h"
#include "lib/nn/linear/nf4.h"
#include "lib/nn/loss/cross_entropy.h"
#include "lib/nn/norm/layer_norm.h"
#include "lib/nn/norm/rms_norm.h"
#include "lib/nn/position/rope.h"
#include "lib/nn/precision.h"
#include "lib/nn/reduce.h"
#include "lib/nn/scan/diagonal_scan.h"
#include "lib/nn/scan/scan_pieces.h"
#include "lib/nn/update/adamw_8bit_cpu.h"
#include "lib/nn/update/bf16_moments_cpu.h"
#include "lib/nn/update/lion_cpu.h"
#include "lib/nn/update/step_decision.h"

namespace trainwright::ops {

void RoundInto(const at::Tensor& in, int64_t precision, at::Tensor& out) {
  static const auto op = Find<decltype(RoundInto)>("trainwright::round_into");
  op.call(in, precision, out);
}

void AddRmsNorm(const at::Tensor& residual_nd, const std::optional<at::Tensor>& update_nd,
                const at::Tensor& weight_d, double epsilon, int64_t precision, at::Tensor& sum_nd,
                at::Tensor& normed_nd, at::Tensor& rstd_n) {
  static const auto op = Find<decltype(AddRmsNorm)>("trainwright::add_rms_norm");
  op.call(residual_nd, update_nd, weight_d, epsilon, precision, sum_nd, normed_nd, rstd_n);
}

void RmsNormAgain(const at::Tensor& x_nd, const at::Tensor& rstd_n, const at::Tensor& weight_d,
                  int64_t precision, at::Tensor& normed_nd) {
  static const auto op = Find<decltype(RmsNormAgain)>("trainwright::rms_norm_again");
  op.call(x_nd, rstd_n, weight_d, precision, normed_nd);
}

void RmsNormBackward(const at::Tensor& d_normed_nd, const at::Tensor& x_nd, const at::Tensor& rstd_n,
                     const at::Tensor& weight_d, int64_t precision, at::Tensor& d_x_nd,
                     at::Tensor& d_weight_d, const std::optional<at::Tensor>& d_short_nd) {
  static const auto op = Find<decltype(RmsNormBackward)>("trainwright::rms_norm_backward");
  op.call(d_normed_nd, x_nd, rstd_n, weight_d, precision, d_x_nd, d_weight_d, d_short_nd);
}

void AddLayerNorm(const at::Tensor& residual_nd, const std::optional<at::Tensor>& update_nd,
                  const std::optional<at::Tensor>& update_bias_d, const at::Tensor& weight_d,
                  const std::optional<at::Tensor>& bias_d, double epsilon, int64_t precision,
                  const std::optional<at::Tensor>& sum_nd, at::Tensor& normed_nd, at::Tensor& mean_n,
                  at::Tensor& rstd_n) {
  static const auto op = Find<decltype(AddLayerNorm)>("trainwright::add_layer_norm");
  op.call(residual_nd, update_nd, update_bias_d, weight_d, bias_d, epsilon, precision, sum_nd, normed_nd,
          mean_n, rstd_n);
}

void LayerNormAgain(const at::Tensor& x_nd, const at::Tensor& mean_n, const at::Tensor& rstd_n,
                    const at::Tensor& weight_d, const std::optional<at::Tensor>& bias_d, int64_t precision,
                    at::Tensor& normed_nd) {
  static const auto op = Find<decltype(LayerNormAgain)>("trainwright::layer_norm_again");
  op.call(x_nd, mean_n, rstd_n, weight_d, bias_d, precision, normed_nd);
}

void LayerNormBackward(const at::Tensor& d_normed_nd, const at::Tensor& x_nd, const at::Tensor& mean_n,
                       const at::Tensor& rstd_n, const at::Tensor& weight_d, int64_t precision,
                       at::Tensor& d_x_nd, const std::optional<at::Tensor>& d_weight_d,
                       const std::optional<at::Tensor>& d_bias_d,
                       const std::optional<at::Tensor>& d_short_nd) {
  static const auto op = Find<decltype(LayerNormBackward)>("trainwright::layer_norm_backward");
  op.call(d_normed_nd, x_nd, mean_n, rstd_n, weight_d, precision, d_x_nd, d_weight_d, d_bias_d, d_short_nd);
}

void Gelu(const at::Tensor& in_nf, int64_t kind, const std::optional<at::Tensor>& bias_f, int64_t precision,
          at::Tensor& out_nf) {
  static const auto op = Find<decltype(Gelu)>("trainwright::gelu");
  op.call(in_nf, kind, bias_f, precision, out_nf);
}

void GeluBackward(const at::Tensor& d_out_nf, int64_t kind, const std::optional<at::Tensor>& bias_f,
                  int64_t precision, at::Tensor& in_nf, const std::optional<at::Tensor>& d_bias_f) {
  static const auto op = Find<decltype(GeluBackward)>("trainwright::gelu_backward");
  op.call(d_out_nf, kind, bias_f, precision, in_nf, d_bias_f);
}

void AddBias(const at::Tensor& bias_o, int64_t precision, at::Tensor& y_no) {
  static const auto op = Find<decltype(AddBias)>("trainwright::add_bias");
  op.call(bias_o, precision, y_no);
}

void BiasBackward(const at::Tensor& dy_no, int64_t precision, at::Tensor& d_bias_o) {
  static const auto op = Find<decltype(BiasBackward)>("trainwright::bias_backward");
  op.call(dy_no, precision, d_bias_o);
}

void Rope(at::Tensor& qkv, const at::Tensor& positions_n, const at::Tensor& cosines, const at::Tensor& sines,
          int64_t num_heads, int64_t num_kv_heads, int64_t precision, bool backward) {
  static const auto op = Find<decltype(Rope)>("trainwright::rope");
  op.call(qkv, positions_n, cosines, sines, num_heads, num_kv_heads, precision, backward);
}

void JoinHeads(const at::Tensor& q_nhk, const at::Tensor& k_ngk, const at::Tensor& v_ngk,
               const std::optional<at::Tensor>& positions_n, const std::optional<at::Tensor>& cosines,
               const std::optional<at::Tensor>& sines, int64_t precision, at::Tensor& qkv) {
  static const auto op = Find<decltype(JoinHeads)>("trainwright::join_heads");
  op.call(q_nhk, k_ngk, v_ngk, positions_n, cosines, sines, precision, qkv);
}

void Swiglu(const at::Tensor& gate_up, int64_t precision, at::Tensor& out_nf) {
  static const auto op = Find<decltype(Swiglu)>("trainwright::swiglu");
  op.call(gate_up, precision, out_nf);
}

void SwigluBackward(const at::Tensor& d_out_nf, int64_t precision, at::Tensor& gate_up) {
  static const auto op = Find<decltype(SwigluBackward)>("trainwright::swiglu_backward");
  op.call(d_out_nf, precision, gate_up);
}

void Dropout(const at::Tensor& x_nd, const at::Tensor& rows_n, int64_t key, double probability,
             int64_t precision, at::Tensor& out_nd) {
  static const auto op = Find<decltype(Dropout)>("trainwright::dropout");
  op.call(x_nd, rows_n, key, probability, precision, out_nd);
}

void ScaleColumnsBackward(const at::Tensor& scale_o, const at::Tensor& norm_o, const at::Tensor& dy_no,
                          at::Tensor& y_no, at::Tensor& d_m_o) {
  static const auto op = Find<decltype(ScaleColumnsBackward)>("trainwright::scale_columns_backward");
  op.call(scale_o, norm_o, dy_no, y_no, d_m_o);
}

void DequantizeNf4(const at::Tensor& codes, const at::Tensor& scales, const at::Tensor& scale_magnitudes,
                   const at::Tensor& mean, int64_t precision, at::Tensor& out) {
  static const auto op = Find<decltype(DequantizeNf4)>("trainwright::dequantize_nf4");
  op.call(codes, scales, scale_magnitudes, mean, precision, out);
}

void Embed(const at::Tensor& table_vd, const at::Tensor& tokens_n, at::Tensor& out_nd) {
  static const auto op = Find<decltype(Embed)>("trainwright::embed");
  op.call(table_vd, tokens_n, out_nd);
}

void AddEmbedding(const at::Tensor& table_vd, const at::Tensor& indices_n, at::Tensor& out_nd) {
  static const auto op = Find<decltype(AddEmbedding)>("trainwright::add_embedding");
  op.call(table_vd, indices_n, out_nd);
}

void EmbedBackward(const at::Tensor& d_out_nd, const at::Tensor& tokens_n, at::Tensor& d_table_vd) {
  static const auto op = Find<decltype(EmbedBackward)>("trainwright::embed_backward");
  op.call(d_out_nd, tokens_n, d_table_vd);
}

void SoftmaxCrossEntropy(at::Tensor& logits_np, const at::Tensor& targets_n, int64_t vocabulary,
                         double z_loss, double label_smoothing, double scale,
                         const std::optional<at::Tensor>& loss_scale, int64_t precision, bool gradients,
                         at::Tensor& losses_n3) {
  static const auto op = Find<decltype(SoftmaxCrossEntropy)>("trainwright::softmax_cross_entropy");
  op.call(logits_np, targets_n, vocabulary, z_loss, label_smoothing, scale, loss_scale, precision, gradients,
          losses_n3);
}

void HeadRows(const at::Tensor& labels_n, at::Tensor& rows_r, at::Tensor& labels_r) {
  static const auto op = Find<decltype(HeadRows)>("trainwright::head_rows");
  op.call(labels_n, rows_r, labels_r);
}

void FinishStep(const at::Tensor& sum_of_squares, const at::Tensor& inputs, double max_norm, bool scaled,
                at::Tensor& state, at::Tensor& term_rows, at::Tensor& outputs) {
  static const auto op = Find<decltype(FinishStep)>("trainwright::finish_step");
  op.call(sum_of_squares, inputs, max_norm, scaled, state, term_rows, outputs);
}

void SumOfSquares(const at::Tensor& values, at::Tensor& out) {
  static const auto op = Find<decltype(SumOfSquares)>("trainwright::sum_of_squares");
  op.call(values, out);
}

void AdamWBf16Moments(at::Tensor& values, const at::Tensor& gradients, at::Tensor& exp_avg,
                      at::Tensor& exp_avg_sq, int64_t first, double learning_rate, double beta1, double beta2,
                      double weight_decay, double epsilon, int64_t key, const at::Tensor& step,
                      const std::optional<at::Tensor>& divisor, const std::optional<at::Tensor>& found_inf,
                      const std::optional<at::Tensor>& rate) {
  static const auto op = Find<decltype(AdamWBf16Moments)>("trainwright::adamw_bf16_moments");
  op.call(values, gradients, exp_avg, exp_avg_sq, first, learning_rate, beta1, beta2, weight_decay, epsilon,
          key, step, divisor, found_inf, rate);
}

void Lion(at::Tensor& values, const at::Tensor& gradients, at::Tensor& exp_avg, double learning_rate,
          double beta1, double beta2, double weight_decay, const std::optional<at::Tensor>& divisor,
          const std::optional<at::Tensor>& found_inf, const std::optional<at::Tensor>& rate) {
  static const auto op = Find<decltype(Lion)>("trainwright::lion");
  op.call(values, gradients, exp_avg, learning_rate, beta1, beta2, weight_decay, divisor, found_inf, rate);
}

void AdamW8Bit(at::Tensor& values, const at::Tensor& gradients, at::Tensor& exp_avg,
               at::Tensor& exp_avg_largest, at::Tensor& exp_avg_sq, at::Tensor& exp_avg_sq_largest,
               const at::Tensor& signed_map, const at::Tensor& unsigned_map, double learning_rate,
               double beta1, double beta2, double weight_decay, double epsilon, const at::Tensor& step,
               const std::optional<at::Tensor>& divisor, const std::optional<at::Tensor>& found_inf,
               const std::optional<at::Tensor>& rate) {
  static const auto op = Find<decltype(AdamW8Bit)>("trainwright::adamw_8bit");
  op.call(values, gradients, exp_avg, exp_avg_largest, exp_avg_sq, exp_avg_sq_largest, signed_map,
          unsigned_map, learning_rate, beta1, beta2, weight_decay, epsilon, step, divisor, found_inf, rate);
}

void DiagonalScan(const at::Tensor& b_nz, const std::optional<at::Tensor>& log_modulus_k,
                  const std::optional<at::Tensor>& angle_k, const std::optional<at::Tensor>& lambda_nz,
                  const at::Tensor& pieces_c5, const std::optional<at::Tensor>& initial_sz, int64_t chunk,
                  int64_t precision, at::Tensor& c_nz, at::Tensor& states_cz,
                  const std::optional<at::Tensor>& last_sz) {
  static const auto op = Find<decltype(DiagonalScan)>("trainwright::diagonal_scan");
  op.call(b_nz, log_modulus_k, angle_k, lambda_nz, pieces_c5, initial_sz, chunk, precision, c_nz, states_cz,
          last_sz);
}

void DiagonalScanBackward(const at::Tensor& b_nz, const std::optional<at::Tensor>& log_modulus_k,
                          const std::optional<at::Tensor>& angle_k,
                          const std::optional<at::Tensor>& lambda_nz, const at::Tensor& pieces_c5,
                          const at::Tensor& states_cz, const at::Tensor& d_c_nz,
                          const std::optional<at::Tensor>& d_last_sz, int64_t chunk, int64_t precision,
                          at::Tensor& d_b_nz, const std::optional<at::Tensor>& d_lambda_z,
                          const std::optional<at::Tensor>& d_lambda_nz,
                          const std::optional<at::Tensor>& d_initial_sz) {
  static const auto op = Find<decltype(DiagonalScanBackward)>("trainwright::diagonal_scan_backward");
  op.call(b_nz, log_modulus_k, angle_k, lambda_nz, pieces_c5, states_cz, d_c_nz, d_last_sz, chunk, precision,
          d_b_nz, d_lambda_z, d_lambda_nz, d_initial_sz);
}

namespace {

/// The CPU's implementations: the modules' functions.
namespace on_cpu {

Numerics NumericsOf(int64_t precision, const at::Tensor& stored) {
  return {static_cast<Precision>(precision), stored.scalar_type()};
}
/// With a residual stream of the tensor's type.
Numerics NumericsOf(int64_t precision, const at::Tensor& stored, const at::Tensor& stream) {
  Numerics numerics = NumericsOf(precision, stored);
  if (stream.scalar_type() != at::kFloat) numerics.residual = numerics.precision;
  return numerics;
}

at::Tensor OrUndefined(const std::optional<at::Tensor>& tensor) {
  return tensor.value_or(at::Tensor());
}

void RoundInto(const at::Tensor& in, int64_t precision, at::Tensor& out) {
  trainwright::RoundInto(NumericsOf(precision, out), in, out);
}

void AddRmsNorm(const at::Tensor& residual_nd, const std::optional<at::Tensor>& update_nd,
                const at::Tensor& weight_d, double epsilon, int64_t precision, at::Tensor& sum_nd,
                at::Tensor& normed_nd, at::Tensor& rstd_n) {
  trainwright::AddRmsNorm(NumericsOf(precision, normed_nd, residual_nd), residual_nd,
                          update_nd.value_or(at::Tensor()), weight_d, epsilon, sum_nd, normed_nd, rstd_n);
}

void RmsNormAgain(const at::Tensor& x_nd, const at::Tensor& rstd_n, const at::Tensor& weight_d,
                  int64_t precision, at::Tensor& normed_nd) {
  trainwright::RmsNormAgain(NumericsOf(precision, normed_nd, x_nd), x_nd, rstd_n, weight_d, normed_nd);
}

void RmsNormBackward(const at::Tensor& d_normed_nd, const at::Tensor& x_nd, const at::Tensor& rstd_n,
                     const at::Tensor& weight_d, int64_t precision, at::Tensor& d_x_nd,
                     at::Tensor& d_weight_d, const std::optional<at::Tensor>& d_short_nd) {
  at::Tensor d_short = OrUndefined(d_short_nd);
  trainwright::RmsNormBackward(NumericsOf(precision, d_normed_nd, x_nd), d_normed_nd, x_nd, rstd_n, weight_d,
                               d_x_nd, d_weight_d, d_short);
}

void AddLayerNorm(const at::Tensor& residual_nd, const std::optional<at::Tensor>& update_nd,
                  const std::optional<at::Tensor>& update_bias_d, const at::Tensor& weight_d,
                  const std::optional<at::Tensor>& bias_d, double epsilon, int64_t precision,
                  const std::optional<at::Tensor>& sum_nd, at::Tensor& normed_nd, at::Tensor& mean_n,
                  at::Tensor& rstd_n) {
  at::Tensor sum = OrUndefined(sum_nd);
  LayerNormStatistics statistics{mean_n, rstd_n};
  trainwright::AddLayerNorm(NumericsOf(precision, normed_nd, residual_nd), residual_nd,
                            OrUndefined(update_nd), OrUndefined(update_bias_d),
                            {weight_d, OrUndefined(bias_d)}, epsilon, sum, normed_nd, statistics);
}

void LayerNormAgain(const at::Tensor& x_nd, const at::Tensor& mean_n, const at::Tensor& rstd_n,
                    const at::Tensor& weight_d, const std::optional<at::Tensor>& bias_d, int64_t precision,
                    at::Tensor& normed_nd) {
  trainwright::LayerNormAgain(NumericsOf(precision, normed_nd, x_nd), x_nd, {mean_n, rstd_n},
                              {weight_d, OrUndefined(bias_d)}, normed_nd);
}

void LayerNormBackward(const at::Tensor& d_normed_nd, const at::Tensor& x_nd, const at::Tensor& mean_n,
                       const at::Tensor& rstd_n, const at::Tensor& weight_d, int64_t precision,
                       at::Tensor& d_x_nd, const std::optional<at::Tensor>& d_weight_d,
                       const std::optional<at::Tensor>& d_bias_d,
                       const std::optional<at::Tensor>& d_short_nd) {
  at::Tensor d_weight = OrUndefined(d_weight_d), d_bias = OrUndefined(d_bias_d),
             d_short = OrUndefined(d_short_nd);
  trainwright::LayerNormBackward(NumericsOf(precision, d_normed_nd, x_nd), d_normed_nd, x_nd,
                                 {mean_n, rstd_n}, weight_d, d_x_nd, d_weight, d_bias, d_short);
}

void Gelu(const at::Tensor& in_nf, int64_t kind, const std::optional<at::Tensor>& bias_f, int64_t precision,
          at::Tensor& out_nf) {
  trainwright::Gelu(NumericsOf(precision, in_nf), static_cast<GeluKind>(kind), in_nf, OrUndefined(bias_f),
                    out_nf);
}

void GeluBackward(const at::Tensor& d_out_nf, int64_t kind, const std::optional<at::Tensor>& bias_f,
                  int64_t precision, at::Tensor& in_nf, const std::optional<at::Tensor>& d_bias_f) {
  at::Tensor d_bias = OrUndefined(d_bias_f);
  trainwright::GeluBackward(NumericsOf(precision, in_nf), static_cast<GeluKind>(kind), d_out_nf,
                            OrUndefined(bias_f), in_nf, d_bias);
}

void AddBias(const at::Tensor& bias_o, int64_t precision, at::Tensor& y_no) {
  trainwright::AddBias(NumericsOf(precision, y_no), bias_o, y_no);
}

void BiasBackward(const at::Tensor& dy_no, int64_t precision, at::Tensor& d_bias_o) {
  AccumulateBiasGradient(NumericsOf(precision, dy_no), dy_no, d_bias_o);
}

void Rope(at::Tensor& qkv, const at::Tensor& positions_n, const at::Tensor& cosines, const at::Tensor& sines,
          int64_t num_heads, int64_t num_kv_heads, int64_t precision, bool backward) {
  const AttentionShape shape{qkv.size(0), num_heads, num_kv_heads,
                             qkv.size(1) / (num_heads + 2 * num_kv_heads)};
  ApplyRope(NumericsOf(precision, qkv), {cosines, sines, positions_n}, shape, backward, qkv);
}

void JoinHeads(const at::Tensor& q_nhk, const at::Tensor& k_ngk, const at::Tensor& v_ngk,
               const std::optional<at::Tensor>& positions_n, const std::optional<at::Tensor>& cosines,
               const std::optional<at::Tensor>& sines, int64_t precision, at::Tensor& qkv) {
  const int64_t size = q_nhk.size(2), queries = q_nhk.size(1), keys = k_ngk.size(1);
  const at::Tensor heads = qkv.view({qkv.size(0), queries + 2 * keys, size});
  heads.narrow(1, 0, queries).copy_(q_nhk);
  heads.narrow(1, queries, keys).copy_(k_ngk);
  heads.narrow(1, queries + keys, keys).copy_(v_ngk);
  if (positions_n) Rope(qkv, *positions_n, *cosines, *sines, queries, keys, precision, /*backward=*/true);
}

void Swiglu(const at::Tensor& gate_up, int64_t precision, at::Tensor& out_nf) {
  trainwright::Swiglu(NumericsOf(precision, gate_up), gate_up, out_nf);
}

void SwigluBackward(const at::Tensor& d_out_nf, int64_t precision, at::Tensor& gate_up) {
  trainwright::SwigluBackward(NumericsOf(precision, gate_up), d_out_nf, gate_up);
}

void Dropout(const at::Tensor& x_nd, const at::Tensor& rows_n, int64_t key, double probability,
             int64_t precision, at::Tensor& out_nd) {
  trainwright::Dropout(NumericsOf(precision, out_nd), static_cast<uint64_t>(key), rows_n, probability, x_nd,
                       out_nd);
}

void DequantizeNf4(const at::Tensor& codes, const at::Tensor& scales, const at::Tensor& scale_magnitudes,
                   const at::Tensor& mean, int64_t precision, at::Tensor& out) {
  DequantizeNf4OnCpu(NumericsOf(precision, out), codes, scales, scale_magnitudes, mean, out);
}

void SoftmaxCrossEntropy(at::Tensor& logits_np, const at::Tensor& targets_n, int64_t vocabulary,
                         double z_loss, double label_smoothing, double scale,
                         const std::optional<at::Tensor>& loss_scale, int64_t precision, bool gradients,
                         at::Tensor& losses_n3) {
  const LossTerms terms{static_cast<float>(z_loss), static_cast<float>(label_smoothing)};
  trainwright::SoftmaxCrossEntropy(NumericsOf(precision, logits_np), logits_np, targets_n, vocabulary, terms,
                                   {scale, loss_scale.value_or(at::Tensor())}, gradients, losses_n3);
}

void FinishStep(const at::Tensor& sum_of_squares, const at::Tensor& inputs, double max_norm, bool scaled,
                at::Tensor& state, at::Tensor& term_rows, at::Tensor& outputs) {
  const int64_t terms = inputs.numel() - kStepInputFields;
  TRAINWRIGHT_CHECK(state.numel() == kStepStateFields && outputs.numel() == kStepOutputFields &&
                    term_rows.numel() == kStepTermRows * terms);
  const auto* numbers = inputs.const_data_ptr<double>();
  trainwright::FinishStep(
      *sum_of_squares.const_data_ptr<double>(), *reinterpret_cast<const StepInputs*>(numbers),
      numbers + kStepInputFields, static_cast<int>(terms), max_norm, scaled,
      reinterpret_cast<StepState*>(state.mutable_data_ptr<double>()), term_rows.mutable_data_ptr<double>(),
      reinterpret_cast<StepOutputs*>(outputs.mutable_data_ptr<float>()));
}

void HeadRows(const at::Tensor& labels_n, at::Tensor& rows_r, at::Tensor& labels_r) {
  const auto* labels = labels_n.const_data_ptr<int32_t>();
  auto *row_numbers = rows_r.mutable_data_ptr<int64_t>(), *row_labels = labels_r.mutable_data_ptr<int64_t>();
  const int64_t selected = rows_r.numel();
  TRAINWRIGHT_CHECK(labels_r.numel() == selected && selected <= labels_n.numel());
  int64_t others =
      selected - std::count_if(labels, labels + labels_n.numel(), [](int32_t label) { return label >= 0; });
  for (int64_t row = 0, place = 0; row < labels_n.numel() && place < selected; ++row) {
    if (labels[row] < 0 && others-- <= 0) continue;
    row_numbers[place] = row;
    row_labels[place++] = labels[row];
  }
}

void SumOfSquares(const at::Tensor& values, at::Tensor& out) {
  *out.mutable_data_ptr<double>() = trainwright::SumOfSquares(values);
}

void AdamWBf16Moments(at::Tensor& values, const at::Tensor& gradients, at::Tensor& exp_avg,
                      at::Tensor& exp_avg_sq, int64_t first, double learning_rate, double beta1, double beta2,
                      double weight_decay, double epsilon, int64_t key, const at::Tensor& step,
                      const std::optional<at::Tensor>& divisor, const std::optional<at::Tensor>& found_inf,
                      const std::optional<at::Tensor>& rate) {
  const auto scalar = [](const at::Tensor& tensor) {
    return static_cast<double>(*tensor.const_data_ptr<float>());
  };
  if (found_inf && scalar(*found_inf) != 0) return;
  const AdamWCoefficients coefficients =
      CoefficientsOf({rate ? learning_rate * *rate->const_data_ptr<double>() : learning_rate, beta1, beta2,
                      weight_decay, epsilon, static_cast<uint64_t>(key)},
                     scalar(step), divisor ? scalar(*divisor) : 1.0);
  const cpu::Bf16MomentsKernel kernel = cpu::BestBf16MomentsKernel();
  const int64_t count = values.numel();
  TRAINWRIGHT_CHECK(gradients.numel() == count && exp_avg.numel() == count && exp_avg_sq.numel() == count);
  const float* gradient = gradients.const_data_ptr<float>();
  auto* value = values.mutable_data_ptr<float>();
  auto* first_moment = reinterpret_cast<uint16_t*>(exp_avg.mutable_data_ptr<at::BFloat16>());
  auto* second_moment = reinterpret_cast<uint16_t*>(exp_avg_sq.mutable_data_ptr<at::BFloat16>());
  at::parallel_for(0, count, kRandomBlock, [&](int64_t from, int64_t to) {
    kernel(coefficients, gradient + from, value + from, first_moment + from, second_moment + from,
           first + from, to - from);
  });
}

void Lion(at::Tensor& values, const at::Tensor& gradients, at::Tensor& exp_avg, double learning_rate,
          double beta1, double beta2, double weight_decay, const std::optional<at::Tensor>& divisor,
          const std::optional<at::Tensor>& found_inf, const std::optional<at::Tensor>& rate) {
  const auto scalar = [](const at::Tensor& tensor) {
    return static_cast<double>(*tensor.const_data_ptr<float>());
  };
  if (found_inf && scalar(*found_inf) != 0) return;
  const LionCoefficients coefficients = CoefficientsOf(
      LionHyperparameters{rate ? learning_rate * *rate->const_data_ptr<double>() : learning_rate, beta1,
                          beta2, weight_decay},
      divisor ? scalar(*divisor) : 1.0);
  const int64_t count = values.numel();
  TRAINWRIGHT_CHECK(gradients.numel() == count && exp_avg.numel() == count);
  const float* gradient = gradients.const_data_ptr<float>();
  auto *value = values.mutable_data_ptr<float>(), *moment = exp_avg.mutable_data_ptr<float>();
  constexpr int64_t kGrain = 4096;
  at::parallel_for(0, count, kGrain, [&](int64_t from, int64_t to) {
    cpu::UpdateLion(coefficients, gradient + from, value + from, moment + from, to - from);
  });
}

void AdamW8Bit(at::Tensor& values, const at::Tensor& gradients, at::Tensor& exp_avg,
               at::Tensor& exp_avg_largest, at::Tensor& exp_avg_sq, at::Tensor& exp_avg_sq_largest,
               const at::Tensor& signed_map, const at::Tensor& unsigned_map, double learning_rate,
               double beta1, double beta2, double weight_decay, double epsilon, const at::Tensor& step,
               const std::optional<at::Tensor>& divisor, const std::optional<at::Tensor>& found_inf,
               const std::optional<at::Tensor>& rate) {
  const auto scalar = [](const at::Tensor& tensor) {
    return static_cast<double>(*tensor.const_data_ptr<float>());
  };
  if (found_inf && scalar(*found_inf) != 0) return;
  const AdamWCoefficients coefficients =
      CoefficientsOf({rate ? learning_rate * *rate->const_data_ptr<double>() : learning_rate, beta1, beta2,
                      weight_decay, epsilon, /*key=*/0},
                     scalar(step), divisor ? scalar(*divisor) : 1.0);
  const int64_t count = values.numel(), blocks = MomentBlocks(count);
  TRAINWRIGHT_CHECK(gradients.numel() == count && exp_avg.numel() >= count && exp_avg_sq.numel() >= count &&
                    exp_avg_largest.numel() == blocks && exp_avg_sq_largest.numel() == blocks &&
                    signed_map.numel() == kMapSize && unsigned_map.numel() == kMapSize);
  const float* gradient = gradients.const_data_ptr<float>();
  auto* value = values.mutable_data_ptr<float>();
  const auto moment = [](at::Tensor& codes, at::Tensor& largest, const at::Tensor& map, int64_t block) {
    return Moments8Bit{codes.mutable_data_ptr<uint8_t>() + block * kMomentBlock,
                       largest.mutable_data_ptr<float>() + block, map.const_data_ptr<float>()};
  };
  constexpr int64_t kGrain = 16;
  at::parallel_for(0, blocks, kGrain, [&](int64_t from, int64_t to) {
    const int64_t begin = from * kMomentBlock;
    cpu::UpdateAdamW8Bit(coefficients, gradient + begin, value + begin,
                         moment(exp_avg, exp_avg_largest, signed_map, from),
                         moment(exp_avg_sq, exp_avg_sq_largest, unsigned_map, from),
                         std::min(count, to * kMomentBlock) - begin);
  });
}

ScanDecay DecayOf(const std::optional<at::Tensor>& log_modulus_k, const std::optional<at::Tensor>& angle_k,
                  const std::optional<at::Tensor>& lambda_nz) {
  return {.log_modulus_k = log_modulus_k.value_or(at::Tensor()),
          .angle_k = angle_k.value_or(at::Tensor()),
          .lambda_nz = lambda_nz.value_or(at::Tensor())};
}

void DiagonalScan(const at::Tensor& b_nz, const std::optional<at::Tensor>& log_modulus_k,
                  const std::optional<at::Tensor>& angle_k, const std::optional<at::Tensor>& lambda_nz,
                  const at::Tensor& pieces_c5, const std::optional<at::Tensor>& initial_sz, int64_t chunk,
                  int64_t precision, at::Tensor& c_nz, at::Tensor& states_cz,
                  const std::optional<at::Tensor>& last_sz) {
  ScanEnds ends{.initial_sz = initial_sz.value_or(at::Tensor()), .last_sz = last_sz.value_or(at::Tensor())};
  trainwright::DiagonalScan(NumericsOf(precision, b_nz), {ScanKind::kFused, chunk},
                            DecayOf(log_modulus_k, angle_k, lambda_nz), b_nz, SpansOfPieceTable(pieces_c5),
                            ends, c_nz, states_cz);
}

void DiagonalScanBackward(const at::Tensor& b_nz, const std::optional<at::Tensor>& log_modulus_k,
                          const std::optional<at::Tensor>& angle_k,
                          const std::optional<at::Tensor>& lambda_nz, const at::Tensor& pieces_c5,
                          const at::Tensor& states_cz, const at::Tensor& d_c_nz,
                          const std::optional<at::Tensor>& d_last_sz, int64_t chunk, int64_t precision,
                          at::Tensor& d_b_nz, const std::optional<at::Tensor>& d_lambda_z,
                          const std::optional<at::Tensor>& d_lambda_nz,
                          const std::optional<at::Tensor>& d_initial_sz) {
  ScanGradients gradients{.b_nz = d_b_nz,
                          .lambda_z = d_lambda_z.value_or(at::Tensor()),
                          .lambda_nz = d_lambda_nz.value_or(at::Tensor()),
                          .initial_sz = d_initial_sz.value_or(at::Tensor())};
  trainwright::DiagonalScanBackward(
      NumericsOf(precision, b_nz), {ScanKind::kFused, chunk}, DecayOf(log_modulus_k, angle_k, lambda_nz),
      b_nz, SpansOfPieceTable(pieces_c5), {}, states_cz, d_c_nz, d_last_sz.value_or(at::Tensor()), gradients);
}

}  // namespace on_cpu

/// The meta device's: results are tensors of the caller, so there is nothing to make and nothing to compute.
template <typename Signature>
struct OnMeta;
template <typename... Arguments>
struct OnMeta<void(Arguments...)> {
  static void DoNothing(Arguments...) {}
};

TORCH_LIBRARY(trainwright, library) {
  library.def("round_into(Tensor x, int precision, Tensor(a!) out) -> ()");
  library.def(
      "add_rms_norm(Tensor residual, Tensor? update, Tensor weight, float epsilon, int precision, "
      "Tensor(a!) sum, Tensor(b!) normed, Tensor(c!) rstd) -> ()");
  library.def("rms_norm_again(Tensor x, Tensor rstd, Tensor weight, int precision, Tensor(a!) normed) -> ()");
  library.def(
      "rms_norm_backward(Tensor d_normed, Tensor x, Tensor rstd, Tensor weight, int precision, "
      "Tensor(a!) d_x, Tensor(b!) d_weight, Tensor(c!)? d_short) -> ()");
  library.def(
      "add_layer_norm(Tensor residual, Tensor? update, Tensor? update_bias, Tensor weight, Tensor? bias, "
      "float epsilon, int precision, Tensor(a!)? sum, Tensor(b!) normed, Tensor(c!) mean, "
      "Tensor(d!) rstd) -> ()");
  library.def(
      "layer_norm_again(Tensor x, Tensor mean, Tensor rstd, Tensor weight, Tensor? bias, int precision, "
      "Tensor(a!) normed) -> ()");
  library.def(
      "layer_norm_backward(Tensor d_normed, Tensor x, Tensor mean, Tensor rstd, Tensor weight, "
      "int precision, Tensor(a!) d_x, Tensor(b!)? d_weight, Tensor(c!)? d_bias, "
      "Tensor(d!)? d_short) -> ()");
  library.def("gelu(Tensor x, int kind, Tensor? bias, int precision, Tensor(a!) out) -> ()");
  library.def(
      "gelu_backward(Tensor d_out, int kind, Tensor? bias, int precision, Tensor(a!) x, "
      "Tensor(b!)? d_bias) -> ()");
  library.def("add_bias(Tensor bias, int precision, Tensor(a!) y) -> ()");
  library.def("bias_backward(Tensor dy, int precision, Tensor(a!) d_bias) -> ()");
  library.def(
      "rope(Tensor(a!) qkv, Tensor positions, Tensor cosines, Tensor sines, int num_heads, int num_kv_heads, "
      "int precision, bool backward) -> ()");
  library.def("swiglu(Tensor gate_up, int precision, Tensor(a!) out) -> ()");
  library.def("swiglu_backward(Tensor d_out, int precision, Tensor(a!) gate_up) -> ()");
  library.def(
      "dropout(Tensor x, Tensor rows, int key, float probability, int precision, Tensor(a!) out) -> ()");
  library.def(
      "scale_columns_backward(Tensor scale, Tensor norm, Tensor dy, Tensor(a!) y, Tensor(b!) d_magnitude) "
      "-> ()");
  library.def(
      "dequantize_nf4(Tensor codes, Tensor scales, Tensor scale_magnitudes, Tensor mean, int precision, "
      "Tensor(a!) out) -> ()");
  library.def("embed(Tensor table, Tensor tokens, Tensor(a!) out) -> ()");
  library.def("add_embedding(Tensor table, Tensor indices, Tensor(a!) out) -> ()");
  library.def("embed_backward(Tensor d_out, Tensor tokens, Tensor(a!) d_table) -> ()");
  library.def(
      "softmax_cross_entropy(Tensor(a!) logits, Tensor targets, int vocabulary, float z_loss, "
      "float label_smoothing, float scale, Tensor? loss_scale, int precision, bool gradients, Tensor(b!) "
      "losses) -> ()");
  library.def(
      "finish_step(Tensor sum_of_squares, Tensor inputs, float max_norm, bool scaled, "
      "Tensor(a!) state, Tensor(b!) term_rows, Tensor(c!) outputs) -> ()");
  library.def("head_rows(Tensor labels, Tensor(a!) rows, Tensor(b!) row_labels) -> ()");
  library.def(
      "join_heads(Tensor q, Tensor k, Tensor v, Tensor? positions, Tensor? cosines, Tensor? sines, "
      "int precision, Tensor(a!) qkv) -> ()");
  library.def("sum_of_squares(Tensor values, Tensor(a!) out) -> ()");
  library.def(
      "adamw_bf16_moments(Tensor(a!) values, Tensor gradients, Tensor(b!) exp_avg, Tensor(c!) exp_avg_sq, "
      "int first, float learning_rate, float beta1, float beta2, float weight_decay, float epsilon, "
      "int key, Tensor step, Tensor? divisor, Tensor? found_inf, Tensor? rate) -> ()");
  library.def(
      "lion(Tensor(a!) values, Tensor gradients, Tensor(b!) exp_avg, float learning_rate, float beta1, "
      "float beta2, float weight_decay, Tensor? divisor, Tensor? found_inf, Tensor? rate) -> ()");
  library.def(
      "adamw_8bit(Tensor(a!) values, Tensor gradients, Tensor(b!) exp_avg, Tensor(c!) exp_avg_largest, "
      "Tensor(d!) exp_avg_sq, Tensor(e!) exp_avg_sq_largest, Tensor signed_map, Tensor unsigned_map, "
      "float learning_rate, float beta1, float beta2, float weight_decay, float epsilon, Tensor step, "
      "Tensor? divisor, Tensor? found_inf, Tensor? rate) -> ()");
  library.def(
      "diagonal_scan(Tensor b, Tensor? log_modulus, Tensor? angle, Tensor? row_lambda, Tensor pieces, "
      "Tensor? initial, int chunk, int precision, Tensor(a!) c, Tensor(b!) states, Tensor(c!)? last) -> ()");
  library.def(
      "diagonal_scan_backward(Tensor b, Tensor? log_modulus, Tensor? angle, Tensor? row_lambda, Tensor "
      "pieces, "
      "Tensor states, Tensor d_c, Tensor? d_last, int chunk, int precision, Tensor(a!) d_b, "
      "Tensor(b!)? d_lambda, Tensor(c!)? d_row_lambda, Tensor(d!)? d_initial) -> ()");
}

TORCH_LIBRARY_IMPL(trainwright, CPU, library) {
  library.impl("round_into", &on_cpu::RoundInto);
  library.impl("add_rms_norm", &on_cpu::AddRmsNorm);
  library.impl("rms_norm_again", &on_cpu::RmsNormAgain);
  library.impl("rms_norm_backward", &on_cpu::RmsNormBackward);
  library.impl("add_layer_norm", &on_cpu::AddLayerNorm);
  library.impl("layer_norm_again", &on_cpu::LayerNormAgain);
  library.impl("layer_norm_backward", &on_cpu::LayerNormBackward);
  library.impl("gelu", &on_cpu::Gelu);
  library.impl("gelu_backward", &on_cpu::GeluBackward);
  library.impl("add_bias", &on_cpu::AddBias);
  library.impl("bias_backward", &on_cpu::BiasBackward);
  library.impl("rope", &on_cpu::Rope);
  library.impl("join_heads", &on_cpu::JoinHeads);
  library.impl("swiglu", &on_cpu::Swiglu);
  library.impl("swiglu_backward", &on_cpu::SwigluBackward);
  library.impl("dropout", &on_cpu::Dropout);
  library.impl("scale_columns_backward", &trainwright::ScaleColumnsBackward);
  library.impl("dequantize_nf4", &on_cpu::DequantizeNf4);
  library.impl("embed", static_cast<decltype(&ops::Embed)>(&trainwright::Embed));
  library.impl("add_embedding", static_cast<decltype(&ops::AddEmbedding)>(&trainwright::AddEmbedding));
  library.impl("embed_backward", &trainwright::EmbedBackward);
  library.impl("softmax_cross_entropy", &on_cpu::SoftmaxCrossEntropy);
  library.impl("finish_step", &on_cpu::FinishStep);
  library.impl("head_rows", &on_cpu::HeadRows);
  library.impl("sum_of_squares", &on_cpu::SumOfSquares);
  library.impl("adamw_bf16_moments", &on_cpu::AdamWBf16Moments);
  library.impl("lion", &on_cpu::Lion);
  library.impl("adamw_8bit", &on_cpu::AdamW8Bit);
  library.impl("diagonal_scan", &on_cpu::DiagonalScan);
  library.impl("diagonal_scan_backward", &on_cpu::DiagonalScanBackward);
}

TORCH_LIBRARY_IMPL(trainwright, Meta, library) {
  library.impl("round_into", &OnMeta<decltype(ops::RoundInto)>::DoNothing);
  library.impl("add_rms_norm", &OnMeta<decltype(ops::AddRmsNorm)>::DoNothing);
  library.impl("rms_norm_again", &OnMeta<decltype(ops::RmsNormAgain)>::DoNothing);
  library.impl("rms_norm_backward", &OnMeta<decltype(ops::RmsNormBackward)>::DoNothing);
  library.impl("add_layer_norm", &OnMeta<decltype(ops::AddLayerNorm)>::DoNothing);
  library.impl("layer_norm_again", &OnMeta<decltype(ops::LayerNormAgain)>::DoNothing);
  library.impl("layer_norm_backward", &OnMeta<decltype(ops::LayerNormBackward)>::DoNothing);
  library.impl("gelu", &OnMeta<decltype(ops::Gelu)>::DoNothing);
  library.impl("gelu_backward", &OnMeta<decltype(ops::GeluBackward)>::DoNothing);
  library.impl("add_bias", &OnMeta<decltype(ops::AddBias)>::DoNothing);
  library.impl("bias_backward", &OnMeta<decltype(ops::BiasBackward)>::DoNothing);
  library.impl("rope", &OnMeta<decltype(ops::Rope)>::DoNothing);
  library.impl("join_heads", &OnMeta<decltype(ops::JoinHeads)>::DoNothing);
  library.impl("swiglu", &OnMeta<decltype(ops::Swiglu)>::DoNothing);
  library.impl("swiglu_backward", &OnMeta<decltype(ops::SwigluBackward)>::DoNothing);
  library.impl("dropout", &OnMeta<decltype(ops::Dropout)>::DoNothing);
  library.impl("scale_columns_backward", &OnMeta<decltype(ops::ScaleColumnsBackward)>::DoNothing);
  library.impl("dequantize_nf4", &OnMeta<decltype(ops::DequantizeNf4)>::DoNothing);
  library.impl("embed", &OnMeta<decltype(ops::Embed)>::DoNothing);
  library.impl("add_embedding", &OnMeta<decltype(ops::AddEmbedding)>::DoNothing);
  library.impl("embed_backward", &OnMeta<decltype(ops::EmbedBackward)>::DoNothing);
  library.impl("softmax_cross_entropy", &OnMeta<decltype(ops::SoftmaxCrossEntropy)>::DoNothing);
  library.impl("head_rows", &OnMeta<decltype(ops::HeadRows)>::DoNothing);
  library.impl("finish_step", &OnMeta<decltype(ops::FinishStep)>::DoNothing);
  library.impl("sum_of_squares", &OnMeta<decltype(ops::SumOfSquares)>::DoNothing);
  library.impl("adamw_bf16_moments", &OnMeta<decltype(ops::AdamWBf16Moments)>::DoNothing);
  library.impl("lion", &OnMeta<decltype(ops::Lion)>::DoNothing);
  library.impl("adamw_8bit", &OnMeta<decltype(ops::AdamW8Bit)>::DoNothing);
  library.impl("diagonal_scan", &OnMeta<decltype(ops::DiagonalScan)>::DoNothing);
  library.impl("diagonal_scan_backward", &OnMeta<decltype(ops::DiagonalScanBackward)>::DoNothing);
}

}  // namespace
}  // namespace trainwright::ops
