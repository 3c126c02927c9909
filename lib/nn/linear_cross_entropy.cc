#include "lib/nn/linear_cross_entropy.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <vector>

#include "lib/nn/cpu/parallel.h"
#include "lib/nn/linear.h"
#include "lib/nn/matmul.h"

namespace trainwright {
namespace {

/// Rows of a slice: about 32M logits, and enough rows for the products to be efficient.
int64_t SliceRows(int64_t vocabulary) {
  return std::clamp<int64_t>((int64_t{1} << 25) / vocabulary, 64, 4096);
}

}  // namespace

LossSum LinearCrossEntropy::Loss(const at::Tensor& hidden_nd, const at::Tensor& weight_vd,
                                 const at::Tensor& labels_n) {
  return Run(hidden_nd, weight_vd, labels_n, {}, 0.0, nullptr, {});
}

LossSum LinearCrossEntropy::LossAndGradients(const at::Tensor& hidden_nd, const at::Tensor& weight_vd,
                                             const at::Tensor& labels_n, const LossTerms& terms,
                                             double gradient_scale, at::Tensor& d_hidden_nd,
                                             at::Tensor d_weight_vd) {
  return Run(hidden_nd, weight_vd, labels_n, terms, gradient_scale, &d_hidden_nd, d_weight_vd);
}

LossSum LinearCrossEntropy::Run(const at::Tensor& hidden_nd, const at::Tensor& weight_vd,
                                const at::Tensor& labels_n, const LossTerms& terms, double gradient_scale,
                                at::Tensor* d_hidden_nd, const at::Tensor& d_weight_vd) {
  const int64_t vocabulary = weight_vd.size(0), width = weight_vd.size(1);
  const int64_t* labels = labels_n.const_data_ptr<int64_t>();
  std::vector<int64_t> labelled, targets;
  for (int64_t row = 0; row < labels_n.numel(); ++row) {
    if (labels[row] < 0) continue;
    labelled.push_back(row);
    targets.push_back(labels[row]);
  }
  const auto count = static_cast<int64_t>(labelled.size());
  if (d_hidden_nd != nullptr) d_hidden_nd->zero_();
  const bool all_rows = count == labels_n.numel();
  const at::Tensor indices = at::tensor(labelled, at::TensorOptions().dtype(at::kLong));
  const cpu::Codec codec = cpu::CodecOf(numerics_);
  const int64_t slice_rows = SliceRows(vocabulary);
  std::vector<double> losses(3 * count);
  for (int64_t begin = 0; begin < count; begin += slice_rows) {
    const int64_t rows = std::min(slice_rows, count - begin);
    at::Tensor x = hidden_nd.narrow(0, begin, rows);
    if (!all_rows) {
      x = rows_.Get({rows, width}, hidden_nd.scalar_type(), hidden_nd.device());
      at::index_select_out(x, hidden_nd, 0, indices.narrow(0, begin, rows));
    }
    at::Tensor logits = logits_.Get({rows, vocabulary}, hidden_nd.scalar_type(), hidden_nd.device());
    Matmul(x, weight_vd.t(), logits);
    void* data = logits.mutable_data_ptr();
    at::parallel_for(0, rows, 1, [&](int64_t first, int64_t last) {
      cpu::BestKernels().cross_entropy(codec, data, targets.data() + begin, vocabulary, terms,
                                       static_cast<float>(gradient_scale), d_hidden_nd != nullptr,
                                       losses.data() + 3 * begin, first, last);
    });
    if (d_hidden_nd == nullptr) continue;
    AccumulateWeightGradient(logits, x, d_weight_vd);
    if (all_rows) {
      at::Tensor d_x = d_hidden_nd->narrow(0, begin, rows);
      Matmul(logits, weight_vd, d_x);
    } else {
      at::Tensor d_x = d_rows_.Get({rows, width}, hidden_nd.scalar_type(), hidden_nd.device());
      Matmul(logits, weight_vd, d_x);
      d_hidden_nd->index_copy_(0, indices.narrow(0, begin, rows), d_x);
    }
  }
  LossSum sum;
  sum.num_labels = count;
  for (int64_t row = 0; row < count; ++row) {
    sum.loss_nats += losses[3 * row];
    sum.smoothing_nats += losses[3 * row + 1];
    sum.z_loss_nats += losses[3 * row + 2];
  }
  return sum;
}

}  // namespace trainwright
