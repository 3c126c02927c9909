// The operators of fp8_ops.h: rounding by the kernels of fp8_kernels.h, GEMMs by the seam of
// epilogue_product.h.
#include <ATen/ops/empty.h>

#include "lib/nn/cuda/epilogue_product.h"
#include "lib/nn/cuda/fp8_kernels.h"
#include "lib/nn/cuda/operator_call.h"
#include "lib/nn/cuda/operator_memory.h"
#include "lib/nn/cuda/operators.h"

namespace trainwright::cuda {
namespace {

StoredMatrix MatrixOf(const at::Tensor& x_rc) {
  TORCH_CHECK(x_rc.dim() == 2 && (x_rc.stride(1) == 1 || x_rc.size(1) == 1),
              "fp8 takes matrices of contiguous rows");
  return {StorageOf(x_rc), x_rc.const_data_ptr(), x_rc.size(0), x_rc.size(1), x_rc.stride(0)};
}

}  // namespace

namespace operators {

void Fp8Scale(const at::Tensor& x_rc, int64_t format, int64_t, at::Tensor& scale_2) {
  const OperatorCall call({scale_2});
  at::Tensor partial = at::empty({kFp8Partials}, scale_2.options());
  call.Check(Fp8ScaleOf(MatrixOf(x_rc), static_cast<Fp8Format>(format),
                        reinterpret_cast<uint32_t*>(Floats(partial)), Floats(scale_2), call.stream()));
}

void Fp8Encode(const at::Tensor& x_rc, const at::Tensor& scale_2, int64_t format, bool columns, int64_t,
               at::Tensor& codes_lk) {
  const OperatorCall call({scale_2, codes_lk});
  const StoredMatrix x = MatrixOf(x_rc);
  const int64_t stride = codes_lk.size(1);
  TORCH_CHECK(codes_lk.size(0) == (columns ? x.columns : x.rows) &&
                  stride >= (columns ? x.rows : x.columns) && stride % 16 == 0,
              "codes of another shape");
  call.Check(cuda::Fp8Encode(x, static_cast<Fp8Format>(format), Floats(scale_2), columns,
                             codes_lk.mutable_data_ptr<uint8_t>(), stride, call.stream()));
}

bool Fp8Product(const at::Tensor& a_mk, const at::Tensor& a_scale_2, int64_t a_format, const at::Tensor& b_nk,
                const at::Tensor& b_scale_2, int64_t b_format, bool accumulate, int64_t candidate,
                at::Tensor& out_mn) {
  const OperatorCall call({a_mk, a_scale_2, b_nk, b_scale_2});
  TORCH_CHECK(out_mn.stride(1) == 1 || out_mn.size(1) == 1, "a GEMM gives matrices of contiguous rows");
  const EpilogueProduct product = {
      .rows = out_mn.size(0),
      .columns = out_mn.size(1),
      .depth = a_mk.size(1),
      .out_type = StorageOf(out_mn),
      .a = {a_mk.const_data_ptr(), a_mk.size(1), /*transposed=*/false},
      .b = {b_nk.const_data_ptr(), b_nk.size(1), /*transposed=*/true},
      .out = out_mn.mutable_data_ptr(),
      .out_stride = out_mn.stride(0),
      .accumulate = accumulate,
      .candidate = static_cast<int>(candidate),
      .fp8 = Fp8Operands{static_cast<Fp8Format>(a_format), static_cast<Fp8Format>(b_format),
                         Floats(a_scale_2), Floats(b_scale_2)}};
  if (product.rows == 0 || product.columns == 0) return true;
  at::Tensor workspace = at::empty({EpilogueWorkspaceBytes()}, a_mk.options());
  const ProductStatus status = MultiplyWithEpilogue(product, workspace.mutable_data_ptr(), call.stream());
  TORCH_CHECK(status != ProductStatus::kFailed, "cuBLASLt failed at an fp8 GEMM of ", product.rows, " x ",
              product.depth, " x ", product.columns);
  return status == ProductStatus::kDone;
}

}  // namespace operators
}  // namespace trainwright::cuda
