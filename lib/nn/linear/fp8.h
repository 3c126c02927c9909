/// GEMMs in fp8, of matrices that are rounded for them.
///
/// In training with fp8 (--fp8) all three GEMMs of a layer are: y = x W^T and d_x = dy W and dW = dy^T x,
/// with activations x and weights W in E4M3 and gradients dy in E5M2 (fp8_format.h). Each operand has one
/// scale, of its own largest magnitude at that moment, found on the device; numerics: lib/nn/fp8_ops.h.
/// Weights are rounded from their compute copy at each pass: those of the head once for all of its slices. An
/// operand of two GEMMs of one pass is scanned once. y is rounded once to the storage type, d_x once for each
/// of the matrices that read one input, and dW is added in fp32.
///
/// On a GPU of compute capability 8.9 or later cuBLASLt multiplies the codes, without its fast
/// accumulation: its kernels read operands along the depth alone, so that those of dW and W of d_x are
/// rounded into their transposes, filled up with zeros to a multiple of 16. Columns of a result must be a
/// multiple of 16. On a CPU the same values are rounded in the same places and multiplied as bf16 or fp32,
/// which hold them exactly: it shows the accuracy of fp8, and is slower than bf16. \source Micikevicius et
/// al. 2022, arXiv:2209.05433
#pragma once

#include <ATen/core/Tensor.h>

#include "lib/nn/linear/fp8_format.h"
#include "lib/nn/linear/product_chooser.h"
#include "lib/nn/parameters/gradient_target.h"
#include "lib/nn/precision.h"

namespace trainwright {

/// Columns of a result are a multiple of this.
inline constexpr int64_t kFp8Multiple = 16;

/// Codes whose lines lie along the depth of a GEMM.
struct Fp8Operand {
  at::Tensor codes_lk;  ///< uint8 [lines, depth]
  at::Tensor scale_2;   ///< fp32
  Fp8Format format = Fp8Format::kE4m3;
};

/// A matrix that becomes operands of GEMMs; its scale is found once.
class Fp8Matrix {
 public:
  /// \param x_rc storage type, rows contiguous, unchanged while this lives
  Fp8Matrix(const Numerics& numerics, const at::Tensor& x_rc, Fp8Format format);
  Fp8Operand Rows() const { return Encode(/*columns=*/false); }    ///< its columns are the depth
  Fp8Operand Columns() const { return Encode(/*columns=*/true); }  ///< its rows are the depth

 private:
  Fp8Operand Encode(bool columns) const;

  int64_t precision_;
  at::Tensor x_rc_, scale_2_;
  Fp8Format format_;
};

/// out = a b^T, or out += a b^T.
/// \param out_mn rows contiguous, storage type or fp32
/// \param chooser of the library's kernels; null: its best guess
/// \throws Error{kDevice} where the device's library has no kernel for it
void Multiply(const Fp8Operand& a_mk, const Fp8Operand& b_nk, at::Tensor& out_mn, bool accumulate = false,
              ProductChooser* chooser = nullptr);

/// Most bytes that the operands of a layer's GEMMs take at once beside what the layer holds.
/// \param rows of a micro-batch
int64_t Fp8Bytes(int64_t rows, int64_t in_features, int64_t out_features, bool on_cpu);

}  // namespace trainwright
