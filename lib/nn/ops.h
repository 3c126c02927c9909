/// The one schema of our operators: torch's library "trainwright".
///
/// Each function here calls the operator of its name through torch's dispatcher, so the tensors' device picks
/// the implementation: the CPU's are registered by the program itself, CUDA's by the plugin that lib/device
/// loads. On torch's meta device, whose tensors have shapes and no content, they do nothing. The modules of
/// this layer call their CPU kernels directly and come here for other devices only, so that training on a CPU
/// pays no dispatch; tests come here for every device.
///
/// `precision` is the value of Precision; the storage is the type of the stored tensors, and the type of a
/// residual stream and its gradient, fp32 or the storage, is that of their tensors. Shapes and meanings
/// are those of the modules' functions (rms_norm.h and so on). Results are written into tensors that the
/// caller allocated; none of the operators waits for the device. A device without an implementation throws
/// c10::NotImplementedError.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace trainwright::ops {

/// As operators take what may be absent.
inline std::optional<at::Tensor> IfDefined(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

void RoundInto(const at::Tensor& in, int64_t precision, at::Tensor& out);
void AddRmsNorm(const at::Tensor& residual_nd, const std::optional<at::Tensor>& update_nd,
                const at::Tensor& weight_d, double epsilon, int64_t precision, at::Tensor& sum_nd,
                at::Tensor& normed_nd, at::Tensor& rstd_n);
void RmsNormAgain(const at::Tensor& x_nd, const at::Tensor& rstd_n, const at::Tensor& weight_d,
                  int64_t precision, at::Tensor& normed_nd);
void RmsNormBackward(const at::Tensor& d_normed_nd, const at::Tensor& x_nd, const at::Tensor& rstd_n,
                     const at::Tensor& weight_d, int64_t precision, at::Tensor& d_x_nd,
                     at::Tensor& d_weight_d, const std::optional<at::Tensor>& d_short_nd);
void AddLayerNorm(const at::Tensor& residual_nd, const std::optional<at::Tensor>& update_nd,
                  const std::optional<at::Tensor>& update_bias_d, const at::Tensor& weight_d,
                  const std::optional<at::Tensor>& bias_d, double epsilon, int64_t precision,
                  const std::optional<at::Tensor>& sum_nd, at::Tensor& normed_nd, at::Tensor& mean_n,
                  at::Tensor& rstd_n);
void LayerNormAgain(const at::Tensor& x_nd, const at::Tensor& mean_n, const at::Tensor& rstd_n,
                    const at::Tensor& weight_d, const std::optional<at::Tensor>& bias_d, int64_t precision,
                    at::Tensor& normed_nd);
void LayerNormBackward(const at::Tensor& d_normed_nd, const at::Tensor& x_nd, const at::Tensor& mean_n,
                       const at::Tensor& rstd_n, const at::Tensor& weight_d, int64_t precision,
                       at::Tensor& d_x_nd, const std::optional<at::Tensor>& d_weight_d,
                       const std::optional<at::Tensor>& d_bias_d,
                       const std::optional<at::Tensor>& d_short_nd);
/// \param kind the value of GeluKind
void Gelu(const at::Tensor& in_nf, int64_t kind, const std::optional<at::Tensor>& bias_f, int64_t precision,
          at::Tensor& out_nf);
void GeluBackward(const at::Tensor& d_out_nf, int64_t kind, const std::optional<at::Tensor>& bias_f,
                  int64_t precision, at::Tensor& in_nf, const std::optional<at::Tensor>& d_bias_f);
void AddBias(const at::Tensor& bias_o, int64_t precision, at::Tensor& y_no);
void BiasBackward(const at::Tensor& dy_no, int64_t precision, at::Tensor& d_bias_o);
void Rope(at::Tensor& qkv, const at::Tensor& positions_n, const at::Tensor& cosines, const at::Tensor& sines,
          int64_t num_heads, int64_t num_kv_heads, int64_t precision, bool backward);
/// Gradients of queries [N, H, K], keys and values [N, G, K], each in memory of its own, as those of packed
/// projections, turned back (ApplyRope backward) where there are angles.
/// \param q_nhk, k_ngk, v_ngk stored as qkv; elements of a head are neighbours
/// \param positions_n, cosines, sines of RopeRows; absent: nothing turns
/// \param qkv [N, (H+2G) K], contiguous, written; overlaps none of them
void JoinHeads(const at::Tensor& q_nhk, const at::Tensor& k_ngk, const at::Tensor& v_ngk,
               const std::optional<at::Tensor>& positions_n, const std::optional<at::Tensor>& cosines,
               const std::optional<at::Tensor>& sines, int64_t precision, at::Tensor& qkv);
void Swiglu(const at::Tensor& gate_up, int64_t precision, at::Tensor& out_nf);
void SwigluBackward(const at::Tensor& d_out_nf, int64_t precision, at::Tensor& gate_up);
/// \param key the bits of an Rng's
void Dropout(const at::Tensor& x_nd, const at::Tensor& rows_n, int64_t key, double probability,
             int64_t precision, at::Tensor& out_nd);
/// dy and y may be columns of wider matrices.
void ScaleColumnsBackward(const at::Tensor& scale_o, const at::Tensor& norm_o, const at::Tensor& dy_no,
                          at::Tensor& y_no, at::Tensor& d_m_o);
/// \param codes, scales, scale_magnitudes, mean Nf4Tensor::parts
void DequantizeNf4(const at::Tensor& codes, const at::Tensor& scales, const at::Tensor& scale_magnitudes,
                   const at::Tensor& mean, int64_t precision, at::Tensor& out);
void Embed(const at::Tensor& table_vd, const at::Tensor& tokens_n, at::Tensor& out_nd);
void AddEmbedding(const at::Tensor& table_vd, const at::Tensor& indices_n, at::Tensor& out_nd);
void EmbedBackward(const at::Tensor& d_out_nd, const at::Tensor& tokens_n, at::Tensor& d_table_vd);
/// SelectHeadRows where some rows are left out.
/// \param labels_n int32
/// \param rows_r, labels_r int64 [R], written; R < N
void HeadRows(const at::Tensor& labels_n, at::Tensor& rows_r, at::Tensor& labels_r);
/// \param loss_scale fp64 [1]: see GradientScale
void SoftmaxCrossEntropy(at::Tensor& logits_np, const at::Tensor& targets_n, int64_t vocabulary,
                         double z_loss, double label_smoothing, double scale,
                         const std::optional<at::Tensor>& loss_scale, int64_t precision, bool gradients,
                         at::Tensor& losses_n3);
/// \param out fp64 [1]
void SumOfSquares(const at::Tensor& values, at::Tensor& out);
/// trainwright::FinishStep of step_decision.h.
/// \param inputs fp64 [kStepInputFields + terms]: StepInputs, and the denominators of the terms of the loss
/// \param state fp64 [kStepStateFields]
/// \param term_rows fp64 [kStepTermRows, terms]
/// \param outputs fp32 [kStepOutputFields]
void FinishStep(const at::Tensor& sum_of_squares, const at::Tensor& inputs, double max_norm, bool scaled,
                at::Tensor& state, at::Tensor& term_rows, at::Tensor& outputs);
/// Updates elements that lie side by side: see bf16_moments.h.
/// \param values, gradients fp32, and the moments bf16, of the same elements
/// \param first place of the first of them in the flat buffers
/// \param key of the run's random bits
/// \param step fp32 scalar: number of the update
/// \param divisor fp32 scalar, of the gradients; absent: 1
/// \param found_inf fp32 scalar: 1 changes nothing; absent: 0
/// \param rate fp64 scalar: the learning rate is multiplied by it; absent: 1
void AdamWBf16Moments(at::Tensor& values, const at::Tensor& gradients, at::Tensor& exp_avg,
                      at::Tensor& exp_avg_sq, int64_t first, double learning_rate, double beta1, double beta2,
                      double weight_decay, double epsilon, int64_t key, const at::Tensor& step,
                      const std::optional<at::Tensor>& divisor, const std::optional<at::Tensor>& found_inf,
                      const std::optional<at::Tensor>& rate = {});
/// Updates elements that lie side by side: see lion.h.
/// \param values, gradients, exp_avg fp32, of the same elements
/// \param divisor, found_inf, rate as of AdamWBf16Moments
void Lion(at::Tensor& values, const at::Tensor& gradients, at::Tensor& exp_avg, double learning_rate,
          double beta1, double beta2, double weight_decay, const std::optional<at::Tensor>& divisor,
          const std::optional<at::Tensor>& found_inf, const std::optional<at::Tensor>& rate = {});
/// Updates a parameter, whose blocks begin with its first element: see adamw_8bit.h.
/// \param values, gradients fp32 [n]
/// \param exp_avg, exp_avg_sq uint8, at least [n]; the other elements of a last block stay as they are
/// \param exp_avg_largest, exp_avg_sq_largest fp32 [ceil(n / kMomentBlock)]
/// \param signed_map, unsigned_map fp32 [kMapSize], of the first and the second moment
/// \param step, divisor, found_inf, rate as of AdamWBf16Moments
void AdamW8Bit(at::Tensor& values, const at::Tensor& gradients, at::Tensor& exp_avg,
               at::Tensor& exp_avg_largest, at::Tensor& exp_avg_sq, at::Tensor& exp_avg_sq_largest,
               const at::Tensor& signed_map, const at::Tensor& unsigned_map, double learning_rate,
               double beta1, double beta2, double weight_decay, double epsilon, const at::Tensor& step,
               const std::optional<at::Tensor>& divisor, const std::optional<at::Tensor>& found_inf,
               const std::optional<at::Tensor>& rate = {});
/// A diagonal recurrence in chunks: diagonal_scan.h.
/// \param log_modulus_k, angle_k fp64, of a decay of all rows
/// \param lambda_nz fp32, in their place
/// \param pieces_c5 int32, of the device: ScanPieceTable of the spans and `chunk`
/// \param states_cz written, as c_nz and last_sz
void DiagonalScan(const at::Tensor& b_nz, const std::optional<at::Tensor>& log_modulus_k,
                  const std::optional<at::Tensor>& angle_k, const std::optional<at::Tensor>& lambda_nz,
                  const at::Tensor& pieces_c5, const std::optional<at::Tensor>& initial_sz, int64_t chunk,
                  int64_t precision, at::Tensor& c_nz, at::Tensor& states_cz,
                  const std::optional<at::Tensor>& last_sz);
/// \param d_b_nz written, as those of the gradients after it that are there
void DiagonalScanBackward(const at::Tensor& b_nz, const std::optional<at::Tensor>& log_modulus_k,
                          const std::optional<at::Tensor>& angle_k,
                          const std::optional<at::Tensor>& lambda_nz, const at::Tensor& pieces_c5,
                          const at::Tensor& states_cz, const at::Tensor& d_c_nz,
                          const std::optional<at::Tensor>& d_last_sz, int64_t chunk, int64_t precision,
                          at::Tensor& d_b_nz, const std::optional<at::Tensor>& d_lambda_z,
                          const std::optional<at::Tensor>& d_lambda_nz,
                          const std::optional<at::Tensor>& d_initial_sz);

}  // namespace trainwright::ops
