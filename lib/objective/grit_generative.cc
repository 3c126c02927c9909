#include "lib/objective/grit_generative.h"

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "lib/base/error.h"

namespace trainwright {
namespace {

/// Of each token of some rows, one by the labels of its row.
at::Tensor WeightsOf(const std::vector<int32_t>& starts, const std::vector<int64_t>& labels) {
  std::vector<float> weights;
  for (size_t row = 0; row < labels.size(); ++row) {
    const float weight = labels[row] == 0 ? 0.0f : 1.0f / static_cast<float>(labels[row]);
    weights.insert(weights.end(), static_cast<size_t>(starts[row + 1] - starts[row]), weight);
  }
  return at::tensor(weights, at::TensorOptions().dtype(at::kFloat));
}

/// What the sum of a micro-batch's losses is multiplied by.
double FactorOf(const GritOptions& options, int64_t labels) {
  const bool is_mean = options.generative_loss == GenerativeLoss::kMixed && options.means_of_micro_batches;
  return is_mean ? options.generative_factor / static_cast<double>(labels) : options.generative_factor;
}

}  // namespace

int64_t GenerativeLabels(const PackedBatch& batch, const GritSpans& spans) {
  const std::vector<int64_t> of_rows = LabelsOfRows(batch, spans);
  return std::accumulate(of_rows.begin(), of_rows.end(), int64_t{0});
}

int64_t GenerativeDenominator(const GritOptions& options, const PackedBatch& batch, const GritSpans& spans) {
  const std::vector<int64_t> of_rows = LabelsOfRows(batch, spans);
  const int64_t labels = std::accumulate(of_rows.begin(), of_rows.end(), int64_t{0});
  if (options.generative_loss == GenerativeLoss::kMixed) {
    return options.means_of_micro_batches ? std::min<int64_t>(labels, 1) : labels;
  }
  return std::count_if(of_rows.begin(), of_rows.end(), [](int64_t own) { return own > 0; });
}

at::Tensor AddGenerativeGradients(const GritOptions& options, const GritMicroBatch& micro_batch,
                                  int64_t denominator, int64_t samples_of_step, bool is_last) {
  const StepPass& pass = micro_batch.pass;
  const std::vector<int64_t> labels_of_rows = LabelsOfRows(micro_batch.batch(), micro_batch.spans);
  const int64_t labels = std::accumulate(labels_of_rows.begin(), labels_of_rows.end(), int64_t{0});
  TRAINWRIGHT_CHECK(labels > 0);
  ModelInput input = RowsOf(micro_batch, samples_of_step);
  if (options.generative_loss == GenerativeLoss::kSample) {
    input.weights_n = WeightsOf(input.span_starts, labels_of_rows);
  }
  const double factor = FactorOf(options, labels);
  GradientScale scale = pass.ScaleOf(denominator);
  scale.factor *= factor;
  if (is_last) pass.TellLastBackward();
  const LossSum loss = pass.model->LossAndGradients(input, scale);
  if (loss.on_device.defined()) return loss.on_device.narrow(0, 0, 1).mul(factor);
  return at::full({1}, loss.loss_nats * factor, at::TensorOptions().dtype(at::kDouble));
}

}  // namespace trainwright
