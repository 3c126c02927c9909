#include "lib/nn/loss/linear_cross_entropy.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "lib/base/profile_scope.h"
#include "lib/nn/embedding/embedding.h"
#include "lib/nn/linear/chosen_matmul.h"
#include "lib/nn/linear/fp8.h"
#include "lib/nn/loss/head_slices.h"

namespace trainwright {
LossSum LinearCrossEntropy::Loss(const at::Tensor& hidden_nd, const at::Tensor& weight_vd,
                                 const at::Tensor& labels_n, bool pin) {
  return Run(hidden_nd, weight_vd, UploadHeadLabels(labels_n, {}, hidden_nd.device(), pin), {}, 0.0, nullptr,
             {});
}

LossSum LinearCrossEntropy::LossAndGradients(const at::Tensor& hidden_nd, const at::Tensor& weight_vd,
                                             const HeadLabels& labels, const LossTerms& terms,
                                             const GradientScale& scale, at::Tensor& d_hidden_nd,
                                             GradientTarget d_weight) {
  return Run(hidden_nd, weight_vd, labels, terms, scale, &d_hidden_nd, std::move(d_weight));
}

at::Tensor LinearCrossEntropy::Padded(const at::Tensor& weight_vd) {
  const int64_t vocabulary = weight_vd.size(0), width = weight_vd.size(1),
                padded = PaddedVocabulary(vocabulary, numerics_.vocabulary_multiple);
  if (padded == vocabulary) return weight_vd;
  at::Tensor copy_pd = padded_weight_.Get({padded, width}, weight_vd.scalar_type(), weight_vd.device());
  copy_pd.narrow(0, 0, vocabulary).copy_(weight_vd);
  copy_pd.narrow(0, vocabulary, padded - vocabulary).zero_();
  return copy_pd;
}

void LinearCrossEntropy::AddWeightGradient(const at::Tensor& d_logits_np, const at::Tensor& x_nd,
                                           const GradientTarget& d_weight) {
  const int64_t vocabulary = d_weight.gradient.size(0);
  const int64_t even = vocabulary / numerics_.vocabulary_multiple * numerics_.vocabulary_multiple;
  const auto add = [&](int64_t first, int64_t columns) {
    if (columns == 0) return;
    at::Tensor rows = d_weight.gradient.narrow(0, first, columns);
    ChosenMatmul(d_logits_np.narrow(1, first, columns).t(), x_nd, rows, d_weight.accumulate, chooser_);
  };
  add(0, even);
  add(even, vocabulary - even);
}

/// The weights as operands in fp8, of all slices; none where the head is not in fp8.
struct LinearCrossEntropy::Fp8Weights {
  Fp8Operand of_logits, of_d_hidden;
};

std::optional<LinearCrossEntropy::Fp8Weights> LinearCrossEntropy::EncodeWeights(const at::Tensor& weight_pd,
                                                                                bool backward) const {
  if (!numerics_.fp8.head) return std::nullopt;
  const Fp8Matrix weights(numerics_, weight_pd, Fp8Format::kE4m3);
  return Fp8Weights{weights.Rows(), backward ? weights.Columns() : Fp8Operand{}};
}

void LinearCrossEntropy::PassBackInFp8(const at::Tensor& d_logits_np, const Fp8Weights& weights,
                                       const Fp8Matrix& x, const GradientTarget& d_weight,
                                       at::Tensor& d_x_nd) const {
  const Fp8Matrix d_logits(numerics_, d_logits_np, Fp8Format::kE5m2);
  if (d_weight.gradient.defined()) {
    Fp8Operand of_vocabulary = d_logits.Columns();
    of_vocabulary.codes_lk = of_vocabulary.codes_lk.narrow(0, 0, d_weight.gradient.size(0));
    at::Tensor gradient = d_weight.gradient;
    Multiply(of_vocabulary, x.Columns(), gradient, d_weight.accumulate, chooser_);
  }
  Multiply(d_logits.Rows(), weights.of_d_hidden, d_x_nd, /*accumulate=*/false, chooser_);
}

LossSum LinearCrossEntropy::Run(const at::Tensor& hidden_nd, const at::Tensor& weight_vd,
                                const HeadLabels& labels, const LossTerms& terms, const GradientScale& scale,
                                at::Tensor* d_hidden_nd, GradientTarget d_weight) {
  const ProfileScope scope("linear_cross_entropy", ProfilePart::kHead);
  const int64_t vocabulary = weight_vd.size(0), width = weight_vd.size(1), count = labels.rows;
  const at::Device device = hidden_nd.device();
  const bool all_rows = !labels.rows_r.defined();
  if (d_hidden_nd != nullptr) d_hidden_nd->zero_();
  LossSum sum;
  sum.num_labels = labels.num_labels;
  if (count == 0) {
    if (d_weight.gradient.defined() && !d_weight.accumulate) d_weight.gradient.zero_();
    return sum;
  }
  at::Tensor losses_n3 = at::empty({count, 3}, at::TensorOptions().dtype(at::kDouble).device(device));
  const at::Tensor weight_pd = Padded(weight_vd);
  const int64_t padded = weight_pd.size(0);
  const std::optional<Fp8Weights> fp8 = EncodeWeights(weight_pd, d_hidden_nd != nullptr);
  const int64_t slice_rows = HeadSliceRows(numerics_.head_slice_logits, padded, count);
  for (int64_t begin = 0; begin < count; begin += slice_rows) {
    const int64_t rows = std::min(slice_rows, count - begin);
    at::Tensor x = hidden_nd.narrow(0, begin, rows);
    if (!all_rows) {
      x = rows_.Get({rows, width}, hidden_nd.scalar_type(), device);
      Embed(hidden_nd, labels.rows_r.narrow(0, begin, rows), x);
    }
    at::Tensor logits = logits_.Get({rows, padded}, hidden_nd.scalar_type(), device);
    std::optional<Fp8Matrix> x_in_fp8;
    if (fp8) {
      x_in_fp8.emplace(numerics_, x, Fp8Format::kE4m3);
      Multiply(x_in_fp8->Rows(), fp8->of_logits, logits, /*accumulate=*/false, chooser_);
    } else {
      ChosenMatmul(x, weight_pd.t(), logits, /*accumulate=*/false, chooser_);
    }
    at::Tensor losses = losses_n3.narrow(0, begin, rows);
    SoftmaxCrossEntropy(numerics_, logits, labels.labels_r.narrow(0, begin, rows), vocabulary, terms, scale,
                        d_hidden_nd != nullptr, losses);
    if (labels.weights_r1.defined()) {
      losses.mul_(labels.weights_r1.narrow(0, begin, rows));
      if (d_hidden_nd != nullptr) logits.mul_(labels.weights_r1.narrow(0, begin, rows));
    }
    if (d_hidden_nd == nullptr) continue;
    at::Tensor d_x = all_rows ? d_hidden_nd->narrow(0, begin, rows)
                              : d_rows_.Get({rows, width}, hidden_nd.scalar_type(), device);
    if (fp8) {
      PassBackInFp8(logits, *fp8, *x_in_fp8, d_weight, d_x);
    } else {
      if (d_weight.gradient.defined()) AddWeightGradient(logits, x, d_weight);
      ChosenMatmul(logits, weight_pd, d_x, /*accumulate=*/false, chooser_);
    }
    d_weight.accumulate = true;
    if (!all_rows) d_hidden_nd->index_copy_(0, labels.rows_r.narrow(0, begin, rows), d_x);
  }
  at::Tensor sums = losses_n3;
  if (!device.is_cpu()) {
    sums = losses_n3.sum(0, /*keepdim=*/true);
    if (d_hidden_nd != nullptr) {
      sum.on_device = sums.squeeze(0);
      return sum;
    }
    sums = sums.cpu();
  }
  const double* losses = sums.const_data_ptr<double>();
  for (int64_t row = 0; row < sums.size(0); ++row) {
    sum.loss_nats += losses[3 * row];
    sum.smoothing_nats += losses[3 * row + 1];
    sum.z_loss_nats += losses[3 * row + 2];
  }
  return sum;
}

}  // namespace trainwright
