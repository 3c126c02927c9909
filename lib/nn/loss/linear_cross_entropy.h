/// The language-model head and its loss in one pass over slices of rows: the logits of all rows never exist
/// at once.
///
/// Rows that HeadLabels leaves out cost nothing. The softmax is computed in fp32, the loss summed in fp64 in
/// the order of rows.
///
/// Under Numerics::vocabulary_multiple the products of the logits and of the hidden states' gradient run over
/// a padded vocabulary: over a copy of the weights with rows of zeros after them, and logits of which the
/// last columns are pads. Pads are ignored in the softmax and have the gradient 0, and the weights'
/// gradient is that of the true vocabulary alone: it is added up in two GEMMs, of which the first has all
/// rows that fill the multiple.
///
/// With Numerics::fp8 the three GEMMs are in fp8 (lib/nn/linear/fp8.h): the weights have one scale, and the
/// hidden states and the logits' gradients of each slice one each. The weights' gradient is one GEMM then.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "lib/nn/buffer.h"
#include "lib/nn/loss/cross_entropy.h"
#include "lib/nn/loss/head_labels.h"
#include "lib/nn/parameters/gradient_target.h"
#include "lib/nn/precision.h"

namespace trainwright {

class Fp8Matrix;
class ProductChooser;

/// Sums over labels, softmax in fp32, summed in fp64. The training objective is the sum of the three losses.
struct LossSum {
  double loss_nats = 0;  ///< cross-entropy, -log p(label)
  int64_t num_labels = 0;
  double smoothing_nats = 0;  ///< what label smoothing adds; may be negative
  double z_loss_nats = 0;
  /// The three losses in this order, fp64 [3], where a GPU computed them and nothing waited for it: the
  /// numbers above are then 0. Undefined when they are the result.
  at::Tensor on_device;
};

class LinearCrossEntropy {
 public:
  explicit LinearCrossEntropy(const Numerics& numerics) : numerics_(numerics) {}

  /// Loss alone; waits for a GPU.
  /// \param hidden_nd storage type, rounded
  /// \param weight_vd the compute copy
  /// \param labels_n int64 on the host, each in [0, V) or negative: none
  /// \param pin as of Upload
  LossSum Loss(const at::Tensor& hidden_nd, const at::Tensor& weight_vd, const at::Tensor& labels_n,
               bool pin = true);
  /// Losses, and the gradients of scale * objective: of the weights [V, D] to d_weight, and written to
  /// d_hidden_nd (storage type, unrounded under emulation). On a GPU the losses stay there.
  LossSum LossAndGradients(const at::Tensor& hidden_nd, const at::Tensor& weight_vd, const HeadLabels& labels,
                           const LossTerms& terms, const GradientScale& scale, at::Tensor& d_hidden_nd,
                           GradientTarget d_weight);

  /// \param chooser of the kernels of GEMMs on a GPU, outlives this; null, as at first: torch's, and in fp8
  /// the library's best guesses
  void set_product_chooser(ProductChooser* chooser) { chooser_ = chooser; }

  /// Memory of the slices and of padded weights, grown to the largest so far.
  int64_t workspace_bytes() const {
    return rows_.bytes() + logits_.bytes() + d_rows_.bytes() + padded_weight_.bytes();
  }

 private:
  struct Fp8Weights;
  LossSum Run(const at::Tensor& hidden_nd, const at::Tensor& weight_vd, const HeadLabels& labels,
              const LossTerms& terms, const GradientScale& scale, at::Tensor* d_hidden_nd,
              GradientTarget d_weight);
  /// The weights as the GEMMs of padded logits read them.
  at::Tensor Padded(const at::Tensor& weight_vd);
  /// \param backward whether gradients of the hidden states are wanted
  std::optional<Fp8Weights> EncodeWeights(const at::Tensor& weight_pd, bool backward) const;
  /// Of a slice, whose gradients the padded logits hold.
  /// \param d_x_nd set
  void PassBackInFp8(const at::Tensor& d_logits_np, const Fp8Weights& weights, const Fp8Matrix& x,
                     const GradientTarget& d_weight, at::Tensor& d_x_nd) const;
  /// Of a slice, whose gradients the padded logits hold.
  void AddWeightGradient(const at::Tensor& d_logits_np, const at::Tensor& x_nd,
                         const GradientTarget& d_weight);

  Numerics numerics_;
  ProductChooser* chooser_ = nullptr;
  Buffer rows_, logits_, d_rows_, padded_weight_;
};

}  // namespace trainwright
