// The CUDA implementations of what adapters beside quantised weights need.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "lib/nn/activation/dropout.h"
#include "lib/nn/cuda/column_scale_kernels.h"
#include "lib/nn/cuda/kernels.h"
#include "lib/nn/cuda/operator_call.h"
#include "lib/nn/cuda/operator_memory.h"
#include "lib/nn/cuda/operators.h"
#include "lib/nn/linear/nf4.h"

namespace trainwright::cuda::operators {

void Dropout(const at::Tensor& x_nd, const at::Tensor& rows_n, int64_t key, double probability, int64_t,
             at::Tensor& out_nd) {
  const OperatorCall call({x_nd, rows_n, out_nd});
  call.Check(cuda::Dropout(StorageOf(x_nd), x_nd.const_data_ptr(), Longs(rows_n), static_cast<uint64_t>(key),
                           DropoutThreshold(probability), DropoutScale(probability), x_nd.size(0),
                           x_nd.size(1), out_nd.mutable_data_ptr(), call.stream()));
}

void ScaleColumnsBackward(const at::Tensor& scale_o, const at::Tensor& norm_o, const at::Tensor& dy_no,
                          at::Tensor& y_no, at::Tensor& d_m_o) {
  const OperatorCall call({scale_o, norm_o, d_m_o});
  const int64_t rows = y_no.size(0), width = y_no.size(1);
  for (const at::Tensor& matrix : {dy_no, y_no}) {
    TORCH_CHECK(matrix.device() == scale_o.device() && matrix.sizes() == y_no.sizes() &&
                    matrix.stride(1) == 1 && matrix.scalar_type() == y_no.scalar_type(),
                "columns and their gradient are contiguous rows of one shape, type and device");
  }
  TORCH_CHECK(scale_o.numel() == width && norm_o.numel() == width && d_m_o.numel() == width,
              "each column has a scale, a norm and a gradient");
  at::Tensor partial = at::empty({ScaleColumnsStrips(rows), width}, d_m_o.options());
  call.Check(cuda::ScaleColumnsBackward(
      StorageOf(y_no), {.scale = Floats(scale_o), .norm = Floats(norm_o), .rows = rows, .width = width},
      dy_no.const_data_ptr(), dy_no.stride(0), y_no.mutable_data_ptr(), y_no.stride(0), Floats(d_m_o),
      Floats(partial), call.stream()));
}

void DequantizeNf4(const at::Tensor& codes, const at::Tensor& scales, const at::Tensor& scale_magnitudes,
                   const at::Tensor& mean, int64_t, at::Tensor& out) {
  const OperatorCall call({codes, scales, scale_magnitudes, mean, out});
  call.Check(cuda::DequantizeNf4(StorageOf(out), codes.const_data_ptr<uint8_t>(),
                                 scales.const_data_ptr<uint8_t>(), Floats(scale_magnitudes), Floats(mean),
                                 BothNf4Books(), out.numel(), out.mutable_data_ptr(), call.stream()));
}

}  // namespace trainwright::cuda::operators
