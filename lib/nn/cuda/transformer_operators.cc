// The operators of layer normalisation, GELU, biases and learned positions.
#include <ATen/ops/empty.h>

#include "lib/nn/cuda/bias_kernels.h"
#include "lib/nn/cuda/gelu_kernels.h"
#include "lib/nn/cuda/layer_norm_kernels.h"
#include "lib/nn/cuda/operator_call.h"
#include "lib/nn/cuda/operator_memory.h"
#include "lib/nn/cuda/operators.h"

namespace trainwright::cuda {
namespace {

LayerNormInput NormOf(const at::Tensor& x_nd, const at::Tensor& weight_d,
                      const std::optional<at::Tensor>& bias_d) {
  return {
      .rows = x_nd.size(0), .width = x_nd.size(1), .weight = Floats(weight_d), .bias = FloatsOrNull(bias_d)};
}

/// The columns of a matrix, whose rows lie side by side, may be part of a wider one's.
void CheckRows(const at::Tensor& rows, const at::Tensor& bias) {
  TORCH_CHECK(rows.device() == bias.device() && rows.dim() == 2 && rows.stride(1) == 1 &&
                  rows.size(1) == bias.numel(),
              "a bias takes contiguous rows of its own width, on its own device");
}

}  // namespace

namespace operators {

void AddLayerNorm(const at::Tensor& residual_nd, const std::optional<at::Tensor>& update_nd,
                  const std::optional<at::Tensor>& update_bias_d, const at::Tensor& weight_d,
                  const std::optional<at::Tensor>& bias_d, double epsilon, int64_t,
                  const std::optional<at::Tensor>& sum_nd, at::Tensor& normed_nd, at::Tensor& mean_n,
                  at::Tensor& rstd_n) {
  TORCH_CHECK(!update_nd || sum_nd, "a layer norm with an update has a place for the sum");
  const OperatorCall call({residual_nd, update_nd.value_or(residual_nd), update_bias_d.value_or(weight_d),
                           weight_d, bias_d.value_or(weight_d), sum_nd.value_or(residual_nd), normed_nd,
                           mean_n, rstd_n});
  at::Tensor sum = sum_nd.value_or(at::Tensor());
  call.Check(cuda::AddLayerNorm(NormStorageOf(normed_nd, residual_nd), NormOf(residual_nd, weight_d, bias_d),
                                residual_nd.const_data_ptr(), StoredOrNull(update_nd),
                                FloatsOrNull(update_bias_d), static_cast<float>(epsilon),
                                update_nd ? StreamOf(residual_nd, sum) : nullptr,
                                normed_nd.mutable_data_ptr(), Floats(mean_n), Floats(rstd_n), call.stream()));
}

void LayerNormAgain(const at::Tensor& x_nd, const at::Tensor& mean_n, const at::Tensor& rstd_n,
                    const at::Tensor& weight_d, const std::optional<at::Tensor>& bias_d, int64_t,
                    at::Tensor& normed_nd) {
  const OperatorCall call({x_nd, mean_n, rstd_n, weight_d, bias_d.value_or(weight_d), normed_nd});
  call.Check(cuda::LayerNormAgain(NormStorageOf(normed_nd, x_nd), NormOf(x_nd, weight_d, bias_d),
                                  x_nd.const_data_ptr(), Floats(mean_n), Floats(rstd_n),
                                  normed_nd.mutable_data_ptr(), call.stream()));
}

void LayerNormBackward(const at::Tensor& d_normed_nd, const at::Tensor& x_nd, const at::Tensor& mean_n,
                       const at::Tensor& rstd_n, const at::Tensor& weight_d, int64_t, at::Tensor& d_x_nd,
                       const std::optional<at::Tensor>& d_weight_d, const std::optional<at::Tensor>& d_bias_d,
                       const std::optional<at::Tensor>& d_short_nd) {
  const OperatorCall call({d_normed_nd, x_nd, mean_n, rstd_n, weight_d, d_x_nd, d_weight_d.value_or(weight_d),
                           d_bias_d.value_or(weight_d), d_short_nd.value_or(x_nd)});
  const bool of_weights = d_weight_d || d_bias_d;
  at::Tensor partial = at::empty({of_weights ? LayerNormBackwardStrips(x_nd.size(0)) : 0, 2 * x_nd.size(1)},
                                 weight_d.options());
  call.Check(cuda::LayerNormBackward(NormStorageOf(d_normed_nd, x_nd), NormOf(x_nd, weight_d, std::nullopt),
                                     d_normed_nd.const_data_ptr(), x_nd.const_data_ptr(), Floats(mean_n),
                                     Floats(rstd_n),
                                     {.d_x = StreamOf(x_nd, d_x_nd),
                                      .d_short = StoredOrNull(d_short_nd),
                                      .d_weight = FloatsOrNull(d_weight_d),
                                      .d_bias = FloatsOrNull(d_bias_d),
                                      .partial = of_weights ? Floats(partial) : nullptr},
                                     call.stream()));
}

void Gelu(const at::Tensor& in_nf, int64_t kind, const std::optional<at::Tensor>& bias_f, int64_t,
          at::Tensor& out_nf) {
  const OperatorCall call({in_nf, bias_f.value_or(in_nf), out_nf});
  call.Check(cuda::Gelu(StorageOf(in_nf), static_cast<GeluKind>(kind), in_nf.const_data_ptr(),
                        FloatsOrNull(bias_f), in_nf.size(0), in_nf.size(1), out_nf.mutable_data_ptr(),
                        call.stream()));
}

void GeluBackward(const at::Tensor& d_out_nf, int64_t kind, const std::optional<at::Tensor>& bias_f, int64_t,
                  at::Tensor& in_nf, const std::optional<at::Tensor>& d_bias_f) {
  const OperatorCall call({d_out_nf, bias_f.value_or(in_nf), in_nf, d_bias_f.value_or(in_nf)});
  const int64_t rows = in_nf.size(0), width = in_nf.size(1);
  at::Tensor partial =
      at::empty({d_bias_f ? ColumnSumStrips(rows) : 0, width}, in_nf.options().dtype(at::kFloat));
  call.Check(cuda::GeluBackward(StorageOf(in_nf), static_cast<GeluKind>(kind), d_out_nf.const_data_ptr(),
                                FloatsOrNull(bias_f), rows, width, in_nf.mutable_data_ptr(),
                                FloatsOrNull(d_bias_f), d_bias_f ? Floats(partial) : nullptr, call.stream()));
}

void AddBias(const at::Tensor& bias_o, int64_t, at::Tensor& y_no) {
  const OperatorCall call({bias_o});
  CheckRows(y_no, bias_o);
  call.Check(cuda::AddBias(StorageOf(y_no), y_no.mutable_data_ptr(), Floats(bias_o), y_no.size(0),
                           y_no.size(1), y_no.stride(0), call.stream()));
}

void BiasBackward(const at::Tensor& dy_no, int64_t, at::Tensor& d_bias_o) {
  const OperatorCall call({d_bias_o});
  CheckRows(dy_no, d_bias_o);
  const int64_t rows = dy_no.size(0), width = dy_no.size(1);
  at::Tensor partial = at::empty({ColumnSumStrips(rows), width}, d_bias_o.options());
  call.Check(cuda::BiasBackward(StorageOf(dy_no), dy_no.const_data_ptr(), rows, width, dy_no.stride(0),
                                Floats(d_bias_o), Floats(partial), call.stream()));
}

void AddEmbedding(const at::Tensor& table_vd, const at::Tensor& indices_n, at::Tensor& out_nd) {
  const OperatorCall call({table_vd, indices_n, out_nd});
  call.Check(cuda::AddEmbedding(StorageOf(out_nd), Floats(table_vd), Longs(indices_n), out_nd.size(0),
                                out_nd.size(1), out_nd.mutable_data_ptr(), call.stream()));
}

}  // namespace operators
}  // namespace trainwright::cuda
