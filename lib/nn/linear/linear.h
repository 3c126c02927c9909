/// y = x W^T + b, over one or several parameters that share their input.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lib/nn/linear/lora.h"
#include "lib/nn/linear/product_chooser.h"
#include "lib/nn/parameters/flat_parameters.h"
#include "lib/nn/parameters/gradient_target.h"

namespace trainwright {

/// The outputs of the parameters lie side by side in a row of y. Parameters that are neighbours in the flat
/// buffer without padding between them are multiplied as one matrix. Those that have a low-rank adapter
/// (lora.h) pass through it, too.
///
/// On a GPU biases and their gradients are part of the GEMMs (product_ops.h) but of those with adapters: y
/// is rounded once, after its bias is added. On a CPU it is rounded before that, too.
///
/// Quantised parameters are read as they lie on a CPU (quantized_product.h), and elsewhere dequantised first.
///
/// In fp8 (fp8.h) the parameters that are multiplied as one matrix have one scale, and so have the columns
/// of dy that belong to them; biases and GELUs are no part of the GEMMs then, and adapters are not in fp8.
class Linear {
 public:
  Linear() = default;
  /// \param parameters allocated, outlives this
  /// \param indices of [out_i, in] matrices, in the order of y's columns
  /// \param biases of their [out_i] vectors, one each, or none at all
  /// \param fp8 whether its GEMMs are
  Linear(FlatParameters* parameters, const std::vector<size_t>& indices,
         const std::vector<size_t>& biases = {}, bool fp8 = false);
  /// Whether anything in it is trained.
  bool trains() const;
  int64_t in_features() const { return in_; }
  int64_t out_features() const { return out_; }
  /// y = x W^T + b.
  /// \param x, y storage type [N, in], [N, out]; under emulation y is rounded if there are biases, else not
  ///     (its readers round)
  void Forward(const at::Tensor& x, at::Tensor& y) const;
  /// y = x W^T, for readers that add bias() themselves; y is left unrounded under emulation.
  void ForwardWithoutBias(const at::Tensor& x, at::Tensor& y) const;
  /// The bias of a single parameter, fp32 [out]; undefined when there is none.
  at::Tensor bias() const;
  /// Adds dy^T x and the column sums of dy to the gradients in fp32 of those weights and biases that are
  /// trained, and sets d_x = dy W (unrounded under emulation) unless it is undefined. On a CPU with native
  /// reduced precision the GEMM dy^T x of one call is rounded before it is added, because no GEMM with
  /// fp32 output exists there.
  /// \param dy, x rounded
  void Backward(const at::Tensor& dy, const at::Tensor& x, at::Tensor& d_x) const;
  /// The same without the gradients of biases, for callers that add the column sums to bias_gradient()
  /// themselves.
  void BackwardWithoutBias(const at::Tensor& dy, const at::Tensor& x, at::Tensor& d_x) const;
  /// The gradient of bias(), fp32 [out]; undefined when there is none, or when it is not trained.
  at::Tensor bias_gradient() const;

  /// Forward to the input and to the output of a GELU by tanh, at once; false: not possible, nothing written.
  /// \param pre, y storage type, contiguous [N, out]: x W^T + b, and GELU of it
  [[nodiscard]] bool ForwardThroughGelu(const at::Tensor& x, at::Tensor& pre, at::Tensor& y) const;
  /// Of a layer that reads a GELU by tanh: d_pre = dy W times that GELU's derivative at pre; false: as above.
  /// The gradients of weights and biases are left to Backward without a d_x.
  /// \param pre, d_pre storage type, contiguous [N, in]
  [[nodiscard]] bool BackwardIntoGelu(const at::Tensor& dy, const at::Tensor& pre, at::Tensor& d_pre) const;
  /// d_x = dy W alone.
  void InputGradient(const at::Tensor& dy, at::Tensor& d_x) const;

 private:
  struct Piece {
    size_t first, last;  ///< parameters
    int64_t column, rows;
  };
  struct Bias {
    size_t index;
    int64_t column, rows;
  };
  /// The biases of a piece's columns.
  std::vector<Bias> BiasesOf(const Piece& piece) const;
  /// Those as one vector, fp32 [rows of the piece]; undefined where there are none.
  at::Tensor BiasVector(const Piece& piece) const;
  /// Whether GEMMs may have epilogues: on a device, not in fp8, and without adapters, which
  /// add to its result.
  bool has_epilogues(const at::Tensor& x) const { return !x.is_cpu() && adapted_.empty() && !fp8_; }
  /// Which of the library's kernels computes a GEMM: ProductChooser's choice.
  /// \param a one of the operands, with `depth` values a row
  int64_t CandidateOf(const char* name, const at::Tensor& a, int64_t depth, int64_t columns,
                      const ProductChooser::Trial& trial) const;
  bool TryForwardWithBias(const Piece& piece, const at::Tensor& x, at::Tensor& columns) const;
  /// Weights and biases of a piece.
  bool TryGradients(const Piece& piece, const at::Tensor& columns, const at::Tensor& x,
                    const GradientTarget& target) const;
  /// Of all pieces and adapters, before DoRA scales what these come out as.
  void MultiplyAll(const at::Tensor& x, at::Tensor& y) const;
  /// The backward pass of that.
  void MultiplyAllBackward(const at::Tensor& dy, const at::Tensor& x, at::Tensor& d_x) const;
  /// y = x W^T, of a piece.
  void MultiplyForward(const Piece& piece, const at::Tensor& x, at::Tensor& columns) const;
  /// A piece's part of Backward in fp8.
  /// \param columns of dy
  void BackwardInFp8(const Piece& piece, const at::Tensor& columns, const at::Tensor& x,
                     at::Tensor& d_x) const;
  void AddBiases(const Piece& piece, at::Tensor& y) const;
  void AddBiasGradients(const Piece& piece, const at::Tensor& dy) const;

  FlatParameters* parameters_ = nullptr;
  std::vector<Piece> pieces_;
  std::vector<Bias> biases_;
  std::vector<LoraColumns> adapted_;
  int64_t in_ = 0, out_ = 0;
  bool fp8_ = false;
};

/// Puts dy^T x to a gradient [out, in], as in Linear::Backward.
/// \param chooser of a GPU's kernels, or null
void AccumulateWeightGradient(const at::Tensor& dy, const at::Tensor& x, GradientTarget target,
                              ProductChooser* chooser = nullptr);

}  // namespace trainwright
