#include "lib/nn/pooling/row_projection.h"

#include "lib/nn/linear/bias.h"
#include "lib/nn/linear/matmul.h"
#include "lib/nn/precision.h"

namespace trainwright {

void ProjectRows(const at::Tensor& x_td, const at::Tensor& matrix_pd, const at::Tensor& bias_p,
                 at::Tensor& y_tp) {
  Matmul(x_td, matrix_pd.t(), y_tp);
  AddBias(Numerics{}, bias_p, y_tp);
}

void ProjectRowsBackward(const at::Tensor& d_y_tp, const at::Tensor& x_td, const at::Tensor& matrix_pd,
                         at::Tensor d_matrix_pd, at::Tensor d_bias_p, at::Tensor d_x_td) {
  if (d_matrix_pd.defined()) Matmul(d_y_tp.t(), x_td, d_matrix_pd, /*accumulate=*/true);
  if (d_bias_p.defined()) AccumulateBiasGradient(Numerics{}, d_y_tp, d_bias_p);
  if (d_x_td.defined()) Matmul(d_y_tp, matrix_pd, d_x_td);
}

}  // namespace trainwright
