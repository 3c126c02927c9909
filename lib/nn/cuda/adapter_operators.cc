// The CUDA implementations of what adapters beside quantised weights need.
#include <ATen/core/Tensor.h>

#include "lib/nn/activation/dropout.h"
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

void DequantizeNf4(const at::Tensor& codes, const at::Tensor& scales, const at::Tensor& scale_magnitudes,
                   const at::Tensor& mean, int64_t, at::Tensor& out) {
  const OperatorCall call({codes, scales, scale_magnitudes, mean, out});
  call.Check(cuda::DequantizeNf4(StorageOf(out), codes.const_data_ptr<uint8_t>(),
                                 scales.const_data_ptr<uint8_t>(), Floats(scale_magnitudes), Floats(mean),
                                 BothNf4Books(), out.numel(), out.mutable_data_ptr(), call.stream()));
}

}  // namespace trainwright::cuda::operators
