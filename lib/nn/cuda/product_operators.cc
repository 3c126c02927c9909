// The operators that multiply matrices, with an epilogue or without, by the seam of epilogue_product.h.
#include <ATen/Context.h>
#include <ATen/ops/empty.h>

#include "lib/nn/cuda/epilogue_product.h"
#include "lib/nn/cuda/operator_call.h"
#include "lib/nn/cuda/operator_memory.h"
#include "lib/nn/cuda/operators.h"

namespace trainwright::cuda {
namespace {

/// Contiguous rows, which may lie apart.
ProductOperand RowsOf(const at::Tensor& matrix) {
  TORCH_CHECK(matrix.dim() == 2 && (matrix.stride(1) == 1 || matrix.size(1) == 1),
              "a GEMM takes matrices of contiguous rows");
  return {matrix.const_data_ptr(), matrix.stride(0), /*transposed=*/false};
}
ProductOperand TransposeOf(const at::Tensor& matrix) {
  ProductOperand operand = RowsOf(matrix);
  operand.transposed = true;
  return operand;
}

/// Either.
ProductOperand OperandOf(const at::Tensor& matrix) {
  const bool transposed = matrix.stride(1) != 1 && matrix.size(1) != 1;
  return transposed ? TransposeOf(matrix.t()) : RowsOf(matrix);
}

EpilogueProduct ProductOf(Epilogue epilogue, const at::Tensor& operand, int64_t depth, int64_t candidate,
                          at::Tensor& out) {
  const ProductOperand place = RowsOf(out);
  return {.rows = out.size(0),
          .columns = out.size(1),
          .depth = depth,
          .operand_type = StorageOf(operand),
          .out_type = StorageOf(out),
          .out = out.mutable_data_ptr(),
          .out_stride = place.stride,
          .epilogue = epilogue,
          .candidate = static_cast<int>(candidate),
          .tf32 = at::globalContext().allowTF32CuBLAS()};
}

/// \returns false where the library has no kernel for it
bool Compute(const OperatorCall& call, const EpilogueProduct& product, const at::Tensor& like) {
  if (product.rows == 0 || product.columns == 0 || product.depth == 0) return false;
  at::Tensor workspace = at::empty({EpilogueWorkspaceBytes()}, like.options().dtype(at::kByte));
  const ProductStatus status = MultiplyWithEpilogue(product, workspace.mutable_data_ptr(), call.stream());
  TORCH_CHECK(status != ProductStatus::kFailed, "cuBLASLt failed at a GEMM of ", product.rows, " x ",
              product.depth, " x ", product.columns);
  return status == ProductStatus::kDone;
}

/// As epilogues add it; undefined where there is none.
at::Tensor StoredBias(const std::optional<at::Tensor>& bias, const at::Tensor& out) {
  return bias ? bias->to(out.scalar_type()) : at::Tensor();
}

}  // namespace

namespace operators {

bool Multiply(const at::Tensor& a_mk, const at::Tensor& b_kn, bool accumulate, int64_t candidate,
              at::Tensor& out_mn) {
  if (out_mn.size(0) == 0) return false;
  const OperatorCall call({out_mn.narrow(0, 0, 1)});  // whose rows may lie apart
  EpilogueProduct product = ProductOf(Epilogue::kNone, a_mk, a_mk.size(1), candidate, out_mn);
  product.a = OperandOf(a_mk);
  product.b = OperandOf(b_kn);
  product.accumulate = accumulate;
  return Compute(call, product, a_mk);
}

bool LinearWithBias(const at::Tensor& x_nk, const at::Tensor& weight_ok, const at::Tensor& bias_o, int64_t,
                    int64_t candidate, at::Tensor& y_no) {
  const OperatorCall call({bias_o});
  const at::Tensor bias = StoredBias(bias_o, y_no);
  EpilogueProduct product = ProductOf(Epilogue::kBias, x_nk, x_nk.size(1), candidate, y_no);
  product.a = RowsOf(x_nk);
  product.b = TransposeOf(weight_ok);
  product.bias = bias.const_data_ptr();
  return Compute(call, product, x_nk);
}

bool LinearWithGelu(const at::Tensor& x_nk, const at::Tensor& weight_ok,
                    const std::optional<at::Tensor>& bias_o, int64_t, int64_t candidate, at::Tensor& pre_no,
                    at::Tensor& y_no) {
  const OperatorCall call({pre_no, y_no, bias_o.value_or(y_no)});
  const at::Tensor bias = StoredBias(bias_o, y_no);
  EpilogueProduct product = ProductOf(Epilogue::kGelu, x_nk, x_nk.size(1), candidate, y_no);
  product.a = RowsOf(x_nk);
  product.b = TransposeOf(weight_ok);
  product.bias = bias.defined() ? bias.const_data_ptr() : nullptr;
  product.pre_activation = pre_no.mutable_data_ptr();
  return Compute(call, product, x_nk);
}

bool LinearBackwardIntoGelu(const at::Tensor& dy_no, const at::Tensor& weight_ok, const at::Tensor& pre_nk,
                            int64_t, int64_t candidate, at::Tensor& d_pre_nk) {
  const OperatorCall call({pre_nk, d_pre_nk});
  EpilogueProduct product = ProductOf(Epilogue::kGeluGradient, dy_no, dy_no.size(1), candidate, d_pre_nk);
  product.a = RowsOf(dy_no);
  product.b = RowsOf(weight_ok);
  product.pre_activation = const_cast<void*>(pre_nk.const_data_ptr());  // this epilogue reads it
  return Compute(call, product, dy_no);
}

bool LinearGradients(const at::Tensor& dy_no, const at::Tensor& x_nk, bool accumulate, int64_t,
                     int64_t candidate, at::Tensor& d_weight_ok, at::Tensor& d_bias_o) {
  const OperatorCall call({d_bias_o});
  EpilogueProduct product = ProductOf(Epilogue::kBiasGradient, dy_no, dy_no.size(0), candidate, d_weight_ok);
  product.a = TransposeOf(dy_no);
  product.b = RowsOf(x_nk);
  product.accumulate = accumulate;
  product.bias_gradient = Floats(d_bias_o);
  return Compute(call, product, dy_no);
}

}  // namespace operators
}  // namespace trainwright::cuda
