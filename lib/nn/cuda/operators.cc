#include "lib/nn/cuda/operators.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/sort.h>

#include "lib/nn/cuda/kernels.h"
#include "lib/nn/cuda/operator_call.h"
#include "lib/nn/cuda/operator_memory.h"
#include "lib/nn/update/step_decision.h"

namespace trainwright::cuda {
namespace operators {

void RoundInto(const at::Tensor& in, int64_t, at::Tensor& out) {
  const OperatorCall call({in, out});
  call.Check(Round(StorageOf(out), Floats(in), out.mutable_data_ptr(), in.numel(), call.stream()));
}

void AddRmsNorm(const at::Tensor& residual_nd, const std::optional<at::Tensor>& update_nd,
                const at::Tensor& weight_d, double epsilon, int64_t, at::Tensor& sum_nd,
                at::Tensor& normed_nd, at::Tensor& rstd_n) {
  const OperatorCall call({residual_nd, update_nd.value_or(residual_nd), weight_d, normed_nd, rstd_n});
  call.Check(AddNorm(NormStorageOf(normed_nd, residual_nd), residual_nd.const_data_ptr(),
                     update_nd ? update_nd->const_data_ptr() : nullptr, Floats(weight_d),
                     static_cast<float>(epsilon), residual_nd.size(0), residual_nd.size(1),
                     update_nd ? StreamOf(residual_nd, sum_nd) : nullptr, normed_nd.mutable_data_ptr(),
                     Floats(rstd_n), call.stream()));
}

void RmsNormAgain(const at::Tensor& x_nd, const at::Tensor& rstd_n, const at::Tensor& weight_d, int64_t,
                  at::Tensor& normed_nd) {
  const OperatorCall call({x_nd, rstd_n, weight_d, normed_nd});
  call.Check(NormAgain(NormStorageOf(normed_nd, x_nd), x_nd.const_data_ptr(), Floats(rstd_n),
                       Floats(weight_d), x_nd.size(0), x_nd.size(1), normed_nd.mutable_data_ptr(),
                       call.stream()));
}

void RmsNormBackward(const at::Tensor& d_normed_nd, const at::Tensor& x_nd, const at::Tensor& rstd_n,
                     const at::Tensor& weight_d, int64_t, at::Tensor& d_x_nd, at::Tensor& d_weight_d,
                     const std::optional<at::Tensor>& d_short_nd) {
  const OperatorCall call(
      {d_normed_nd, x_nd, rstd_n, weight_d, d_x_nd, d_weight_d, d_short_nd.value_or(x_nd)});
  const int64_t rows = x_nd.size(0), width = x_nd.size(1);
  at::Tensor partial = at::empty({NormBackwardBlocks(rows), width}, weight_d.options());
  call.Check(NormBackward(NormStorageOf(d_normed_nd, x_nd), d_normed_nd.const_data_ptr(),
                          x_nd.const_data_ptr(), Floats(rstd_n), Floats(weight_d), rows, width,
                          StreamOf(x_nd, d_x_nd), StoredOrNull(d_short_nd), Floats(d_weight_d),
                          Floats(partial), call.stream()));
}

void Rope(at::Tensor& qkv, const at::Tensor& positions_n, const at::Tensor& cosines, const at::Tensor& sines,
          int64_t num_heads, int64_t num_kv_heads, int64_t, bool backward) {
  const OperatorCall call({qkv, positions_n, cosines, sines});
  call.Check(cuda::Rope(StorageOf(qkv), qkv.mutable_data_ptr(), Longs(positions_n), Floats(cosines),
                        Floats(sines), qkv.size(0), qkv.size(1), num_heads + num_kv_heads,
                        qkv.size(1) / (num_heads + 2 * num_kv_heads), cosines.size(1),
                        backward ? -1.0f : 1.0f, call.stream()));
}

void JoinHeads(const at::Tensor& q_nhk, const at::Tensor& k_ngk, const at::Tensor& v_ngk,
               const std::optional<at::Tensor>& positions_n, const std::optional<at::Tensor>& cosines,
               const std::optional<at::Tensor>& sines, int64_t, at::Tensor& qkv) {
  const OperatorCall call({qkv, positions_n.value_or(qkv), cosines.value_or(qkv), sines.value_or(qkv)});
  const int64_t size = q_nhk.size(2), queries = q_nhk.size(1), keys = k_ngk.size(1);
  TORCH_CHECK(qkv.size(1) == (queries + 2 * keys) * size && v_ngk.sizes() == k_ngk.sizes(),
              "heads of another shape than their rows");
  const auto heads = [&](const at::Tensor& part) -> HeadsInMemory {
    TORCH_CHECK(part.scalar_type() == qkv.scalar_type() && part.stride(2) == 1 && part.size(2) == size &&
                    part.size(0) == qkv.size(0),
                "heads are stored as their rows, elements side by side");
    return {part.const_data_ptr(), part.stride(0), part.stride(1)};
  };
  call.Check(cuda::JoinHeads(StorageOf(qkv), heads(q_nhk), heads(k_ngk), heads(v_ngk), qkv.size(0), queries,
                             keys, size, positions_n ? Longs(*positions_n) : nullptr,
                             cosines ? Floats(*cosines) : nullptr, sines ? Floats(*sines) : nullptr,
                             positions_n ? cosines->size(1) : 0, qkv.mutable_data_ptr(), call.stream()));
}

void Swiglu(const at::Tensor& gate_up, int64_t, at::Tensor& out_nf) {
  const OperatorCall call({gate_up, out_nf});
  call.Check(cuda::Swiglu(StorageOf(gate_up), gate_up.const_data_ptr(), out_nf.size(0), out_nf.size(1),
                          out_nf.mutable_data_ptr(), call.stream()));
}

void SwigluBackward(const at::Tensor& d_out_nf, int64_t, at::Tensor& gate_up) {
  const OperatorCall call({d_out_nf, gate_up});
  call.Check(cuda::SwigluBackward(StorageOf(gate_up), gate_up.mutable_data_ptr(), d_out_nf.const_data_ptr(),
                                  d_out_nf.size(0), d_out_nf.size(1), call.stream()));
}

void SoftmaxCrossEntropy(at::Tensor& logits_np, const at::Tensor& targets_n, int64_t vocabulary,
                         double z_loss, double label_smoothing, double scale,
                         const std::optional<at::Tensor>& loss_scale, int64_t, bool gradients,
                         at::Tensor& losses_n3) {
  const OperatorCall call({logits_np, targets_n, loss_scale.value_or(targets_n), losses_n3});
  TORCH_CHECK(vocabulary > 0 && vocabulary <= logits_np.size(1), "the logits have fewer columns than ids");
  const LossTerms terms{static_cast<float>(z_loss), static_cast<float>(label_smoothing)};
  call.Check(CrossEntropy(StorageOf(logits_np), logits_np.mutable_data_ptr(), Longs(targets_n),
                          logits_np.size(0), vocabulary, logits_np.size(1), terms, static_cast<float>(scale),
                          loss_scale ? loss_scale->const_data_ptr<double>() : nullptr, gradients,
                          losses_n3.mutable_data_ptr<double>(), call.stream()));
}

void Embed(const at::Tensor& table_vd, const at::Tensor& tokens_n, at::Tensor& out_nd) {
  if (table_vd.scalar_type() == out_nd.scalar_type()) {
    at::index_select_out(out_nd, table_vd, 0, tokens_n);
    return;
  }
  const OperatorCall call({table_vd, tokens_n, out_nd});
  call.Check(cuda::Embed(StorageOf(out_nd), Floats(table_vd), Longs(tokens_n), out_nd.size(0), out_nd.size(1),
                         out_nd.mutable_data_ptr(), call.stream()));
}

void EmbedBackward(const at::Tensor& d_out_nd, const at::Tensor& tokens_n, at::Tensor& d_table_vd) {
  const OperatorCall call({d_out_nd, tokens_n, d_table_vd});
  const auto [tokens, rows] = at::sort(tokens_n, /*stable=*/true, /*dim=*/0, /*descending=*/false);
  const int64_t width = d_out_nd.size(1);
  at::Tensor partial = at::empty({EmbeddingStretches(d_out_nd.size(0)), width}, d_table_vd.options());
  call.Check(EmbeddingBackward(StorageOf(d_out_nd), d_out_nd.const_data_ptr(), Longs(tokens), Longs(rows),
                               d_out_nd.size(0), width, Floats(d_table_vd), Floats(partial), call.stream()));
}

void HeadRows(const at::Tensor& labels_n, at::Tensor& rows_r, at::Tensor& labels_r) {
  const OperatorCall call({labels_n, rows_r, labels_r});
  const int64_t rows = labels_n.numel();
  TORCH_CHECK(labels_r.numel() == rows_r.numel() && rows_r.numel() <= rows);
  at::Tensor counts = at::empty({HeadRowsBlocks(rows)}, labels_n.options());
  call.Check(cuda::HeadRows(labels_n.const_data_ptr<int32_t>(), rows, rows_r.numel(),
                            counts.mutable_data_ptr<int32_t>(), rows_r.mutable_data_ptr<int64_t>(),
                            labels_r.mutable_data_ptr<int64_t>(), call.stream()));
}

void SumOfSquares(const at::Tensor& values, at::Tensor& out) {
  const OperatorCall call({values, out});
  at::Tensor partial = at::empty({SumOfSquaresBlocks(values.numel())}, out.options());
  call.Check(cuda::SumOfSquares(Floats(values), values.numel(), partial.mutable_data_ptr<double>(),
                                out.mutable_data_ptr<double>(), call.stream()));
}

void FinishStep(const at::Tensor& sum_of_squares, const at::Tensor& inputs, double max_norm, bool scaled,
                at::Tensor& state, at::Tensor& term_rows, at::Tensor& outputs) {
  const OperatorCall call({sum_of_squares, inputs, state, term_rows, outputs});
  const int64_t terms = inputs.numel() - kStepInputFields;
  TORCH_CHECK(state.numel() == kStepStateFields && outputs.numel() == kStepOutputFields &&
              term_rows.numel() == kStepTermRows * terms);
  call.Check(cuda::FinishStep(sum_of_squares.const_data_ptr<double>(), inputs.const_data_ptr<double>(),
                              static_cast<int>(terms), max_norm, scaled, state.mutable_data_ptr<double>(),
                              term_rows.mutable_data_ptr<double>(), Floats(outputs), call.stream()));
}

void AdamWBf16Moments(at::Tensor& values, const at::Tensor& gradients, at::Tensor& exp_avg,
                      at::Tensor& exp_avg_sq, int64_t first, double learning_rate, double beta1, double beta2,
                      double weight_decay, double epsilon, int64_t key, const at::Tensor& step,
                      const std::optional<at::Tensor>& divisor, const std::optional<at::Tensor>& found_inf,
                      const std::optional<at::Tensor>& rate) {
  const OperatorCall call({values, gradients, exp_avg, exp_avg_sq, step, divisor.value_or(step),
                           found_inf.value_or(step), rate.value_or(step)});
  TORCH_CHECK(gradients.numel() == values.numel() && exp_avg.numel() == values.numel() &&
              exp_avg_sq.numel() == values.numel());
  const auto bits = [](at::Tensor& moments) {
    return reinterpret_cast<uint16_t*>(moments.mutable_data_ptr<at::BFloat16>());
  };
  call.Check(cuda::AdamWBf16Moments(
      Floats(values), Floats(gradients), bits(exp_avg), bits(exp_avg_sq), first, values.numel(),
      {learning_rate, beta1, beta2, weight_decay, epsilon, static_cast<uint64_t>(key)}, Floats(step),
      divisor ? Floats(*divisor) : nullptr, found_inf ? Floats(*found_inf) : nullptr,
      rate ? rate->const_data_ptr<double>() : nullptr, call.stream()));
}

void Lion(at::Tensor& values, const at::Tensor& gradients, at::Tensor& exp_avg, double learning_rate,
          double beta1, double beta2, double weight_decay, const std::optional<at::Tensor>& divisor,
          const std::optional<at::Tensor>& found_inf, const std::optional<at::Tensor>& rate) {
  const OperatorCall call({values, gradients, exp_avg, divisor.value_or(values), found_inf.value_or(values),
                           rate.value_or(values)});
  TORCH_CHECK(gradients.numel() == values.numel() && exp_avg.numel() == values.numel());
  call.Check(cuda::Lion(Floats(values), Floats(gradients), Floats(exp_avg), values.numel(),
                        {learning_rate, beta1, beta2, weight_decay}, divisor ? Floats(*divisor) : nullptr,
                        found_inf ? Floats(*found_inf) : nullptr,
                        rate ? rate->const_data_ptr<double>() : nullptr, call.stream()));
}

void AdamW8Bit(at::Tensor& values, const at::Tensor& gradients, at::Tensor& exp_avg,
               at::Tensor& exp_avg_largest, at::Tensor& exp_avg_sq, at::Tensor& exp_avg_sq_largest,
               const at::Tensor& signed_map, const at::Tensor& unsigned_map, double learning_rate,
               double beta1, double beta2, double weight_decay, double epsilon, const at::Tensor& step,
               const std::optional<at::Tensor>& divisor, const std::optional<at::Tensor>& found_inf,
               const std::optional<at::Tensor>& rate) {
  const OperatorCall call({values, gradients, exp_avg, exp_avg_largest, exp_avg_sq, exp_avg_sq_largest,
                           signed_map, unsigned_map, step, divisor.value_or(step), found_inf.value_or(step),
                           rate.value_or(step)});
  const int64_t count = values.numel(), blocks = MomentBlocks(count);
  TORCH_CHECK(gradients.numel() == count && exp_avg.numel() >= count && exp_avg_sq.numel() >= count &&
              exp_avg_largest.numel() == blocks && exp_avg_sq_largest.numel() == blocks &&
              signed_map.numel() == kMapSize && unsigned_map.numel() == kMapSize);
  call.Check(cuda::AdamW8Bit(
      Floats(values), Floats(gradients),
      {exp_avg.mutable_data_ptr<uint8_t>(), Floats(exp_avg_largest), Floats(signed_map)},
      {exp_avg_sq.mutable_data_ptr<uint8_t>(), Floats(exp_avg_sq_largest), Floats(unsigned_map)}, count,
      {learning_rate, beta1, beta2, weight_decay, epsilon, /*key=*/0}, Floats(step),
      divisor ? Floats(*divisor) : nullptr, found_inf ? Floats(*found_inf) : nullptr,
      rate ? rate->const_data_ptr<double>() : nullptr, call.stream()));
}

}  // namespace operators

namespace {

DiagonalScanInput ScanInputOf(const at::Tensor& b_nz, const std::optional<at::Tensor>& log_modulus_k,
                              const std::optional<at::Tensor>& angle_k,
                              const std::optional<at::Tensor>& lambda_nz, const at::Tensor& pieces_c5,
                              int64_t chunk) {
  const auto doubles = [](const std::optional<at::Tensor>& tensor) {
    return tensor ? tensor->const_data_ptr<double>() : nullptr;
  };
  TORCH_CHECK(lambda_nz || (log_modulus_k && angle_k), "a scan has a decay of all rows or one of each");
  return {.storage = StorageOf(b_nz),
          .rows = b_nz.size(0),
          .channels = b_nz.size(1) / 2,
          .chunk = chunk,
          .pieces_c5 = pieces_c5.const_data_ptr<int32_t>(),
          .pieces = pieces_c5.size(0),
          .log_modulus_k = doubles(log_modulus_k),
          .angle_k = doubles(angle_k),
          .lambda_nz = lambda_nz ? Floats(*lambda_nz) : nullptr,
          .b_nz = b_nz.const_data_ptr()};
}

std::optional<at::Tensor> ScratchIf(bool wanted, at::IntArrayRef sizes, const at::TensorOptions& options) {
  return wanted ? std::optional<at::Tensor>(at::empty(sizes, options)) : std::nullopt;
}

}  // namespace

namespace operators {

void DiagonalScan(const at::Tensor& b_nz, const std::optional<at::Tensor>& log_modulus_k,
                  const std::optional<at::Tensor>& angle_k, const std::optional<at::Tensor>& lambda_nz,
                  const at::Tensor& pieces_c5, const std::optional<at::Tensor>& initial_sz, int64_t chunk,
                  int64_t, at::Tensor& c_nz, at::Tensor& states_cz,
                  const std::optional<at::Tensor>& last_sz) {
  const OperatorCall call({b_nz, log_modulus_k.value_or(b_nz), angle_k.value_or(b_nz),
                           lambda_nz.value_or(b_nz), pieces_c5, initial_sz.value_or(b_nz), c_nz, states_cz,
                           last_sz.value_or(b_nz)});
  const DiagonalScanInput input = ScanInputOf(b_nz, log_modulus_k, angle_k, lambda_nz, pieces_c5, chunk);
  const auto products_cz = ScratchIf(lambda_nz.has_value(), states_cz.sizes(), states_cz.options());
  call.Check(cuda::DiagonalScan(input, FloatsOrNull(initial_sz),
                                {.c_nz = c_nz.mutable_data_ptr(),
                                 .states_cz = Floats(states_cz),
                                 .last_sz = DataOrNull<float>(last_sz),
                                 .products_cz = DataOrNull<float>(products_cz)},
                                call.stream()));
}

void DiagonalScanBackward(const at::Tensor& b_nz, const std::optional<at::Tensor>& log_modulus_k,
                          const std::optional<at::Tensor>& angle_k,
                          const std::optional<at::Tensor>& lambda_nz, const at::Tensor& pieces_c5,
                          const at::Tensor& states_cz, const at::Tensor& d_c_nz,
                          const std::optional<at::Tensor>& d_last_sz, int64_t chunk, int64_t,
                          at::Tensor& d_b_nz, const std::optional<at::Tensor>& d_lambda_z,
                          const std::optional<at::Tensor>& d_lambda_nz,
                          const std::optional<at::Tensor>& d_initial_sz) {
  const OperatorCall call({b_nz, log_modulus_k.value_or(b_nz), angle_k.value_or(b_nz),
                           lambda_nz.value_or(b_nz), pieces_c5, states_cz, d_c_nz, d_last_sz.value_or(b_nz),
                           d_b_nz, d_lambda_z.value_or(b_nz), d_lambda_nz.value_or(b_nz),
                           d_initial_sz.value_or(b_nz)});
  const DiagonalScanInput input = ScanInputOf(b_nz, log_modulus_k, angle_k, lambda_nz, pieces_c5, chunk);
  const at::TensorOptions floats = states_cz.options();
  const bool of_decay = d_lambda_z.has_value() || d_lambda_nz.has_value();
  const at::Tensor carries_cz = at::empty(states_cz.sizes(), floats);
  const auto products_cz = ScratchIf(lambda_nz.has_value(), states_cz.sizes(), floats);
  const auto stretches_xz =
      ScratchIf(of_decay, {DiagonalScanStretches(input.rows, input.pieces), b_nz.size(1)}, floats);
  const auto partial_cz = ScratchIf(d_lambda_z.has_value(), states_cz.sizes(), floats.dtype(at::kDouble));
  const auto tickets =
      ScratchIf(d_lambda_z.has_value(), {DiagonalScanTickets(input.channels)}, floats.dtype(at::kInt));
  call.Check(cuda::DiagonalScanBackward(input, Floats(states_cz), d_c_nz.const_data_ptr(),
                                        FloatsOrNull(d_last_sz),
                                        {.d_b_nz = d_b_nz.mutable_data_ptr(),
                                         .d_lambda_z = DataOrNull<double>(d_lambda_z),
                                         .d_lambda_nz = DataOrNull<float>(d_lambda_nz),
                                         .d_initial_sz = DataOrNull<float>(d_initial_sz),
                                         .carries_cz = carries_cz.mutable_data_ptr<float>(),
                                         .products_cz = DataOrNull<float>(products_cz),
                                         .stretches_xz = DataOrNull<float>(stretches_xz),
                                         .partial_cz = DataOrNull<double>(partial_cz),
                                         .tickets = DataOrNull<int32_t>(tickets)},
                                        call.stream()));
}

}  // namespace operators
}  // namespace trainwright::cuda
