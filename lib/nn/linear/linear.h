/// y = x W^T + b, over one or several parameters that share their input.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lib/nn/linear/lora.h"
#include "lib/nn/parameters/flat_parameters.h"
#include "lib/nn/parameters/gradient_target.h"

namespace trainwright {

/// The outputs of the parameters lie side by side in a row of y. Parameters that are neighbours in the flat
/// buffer without padding between them are multiplied as one matrix. Those that have a low-rank adapter
/// (lora.h) pass through it, too.
class Linear {
 public:
  Linear() = default;
  /// \param parameters allocated, outlives this
  /// \param indices of [out_i, in] matrices, in the order of y's columns
  /// \param biases of their [out_i] vectors, one each, or none at all
  Linear(FlatParameters* parameters, const std::vector<size_t>& indices,
         const std::vector<size_t>& biases = {});
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
  /// short products the product dy^T x of one call is rounded before it is added, because no product with
  /// fp32 output exists there.
  /// \param dy, x rounded
  void Backward(const at::Tensor& dy, const at::Tensor& x, at::Tensor& d_x) const;
  /// The same without the gradients of biases, for callers that add the column sums to bias_gradient()
  /// themselves.
  void BackwardWithoutBias(const at::Tensor& dy, const at::Tensor& x, at::Tensor& d_x) const;
  /// The gradient of bias(), fp32 [out]; undefined when there is none, or when it is not trained.
  at::Tensor bias_gradient() const;

 private:
  struct Piece {
    size_t first, last;  ///< parameters
    int64_t column, rows;
  };
  struct Bias {
    size_t index;
    int64_t column, rows;
  };
  FlatParameters* parameters_ = nullptr;
  std::vector<Piece> pieces_;
  std::vector<Bias> biases_;
  std::vector<LoraColumns> adapted_;
  int64_t in_ = 0, out_ = 0;
};

/// Puts dy^T x to a gradient [out, in], as in Linear::Backward.
void AccumulateWeightGradient(const at::Tensor& dy, const at::Tensor& x, GradientTarget target);

}  // namespace trainwright
