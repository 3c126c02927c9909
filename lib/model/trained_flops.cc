#include "lib/model/trained_flops.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/spec/family.h"

namespace trainwright {
namespace {

/// Layers of which the backward pass computes nothing.
int64_t LayersWithoutGradients(const FlatParameters& parameters, const std::vector<LayerMatrix>& matrices) {
  // A layer's segment is that of its matrices.
  int64_t lowest = matrices.back().layer + 1;
  std::vector<size_t> segments;
  for (const LayerMatrix& matrix : matrices) {
    if (matrix.layer < static_cast<int64_t>(segments.size())) continue;
    segments.push_back(parameters.Find(matrix.module + ".weight")->segment);
  }
  for (const Parameter& parameter : parameters.all()) {
    if (!parameter.trainable) continue;
    if (parameter.segment < segments.front()) return 0;  // below the layers
    const auto found = std::find(segments.begin(), segments.end(), parameter.segment);
    lowest = std::min(lowest, static_cast<int64_t>(found - segments.begin()));
  }
  return lowest;
}

}  // namespace

StepFlops CountTrainedFlops(LanguageModel* model, const FineTuning& tuning) {
  const ModelConfig& config = model->config();
  StepFlops flops = CountStepFlops(config, tuning);
  const std::vector<LayerMatrix> matrices = FamilyOf(config).LayerMatrices(config);
  if (tuning.rules.freeze.empty() || matrices.empty()) return flops;
  const FlatParameters& parameters = model->parameters();
  const int64_t skipped = LayersWithoutGradients(parameters, matrices);
  // Of three equal parts, which are the forward pass and both gradients, such a layer has one.
  const double skipped_share =
      2.0 / 3 * static_cast<double>(skipped) / static_cast<double>(config.num_layers);
  flops.per_token *= 1 - skipped_share;
  flops.per_pair *= 1 - skipped_share;
  for (const LayerMatrix& matrix : matrices) {
    if (matrix.layer < skipped || parameters.Find(matrix.module + ".weight")->trainable) continue;
    flops.per_token -=
        2 * matrix.token_rows * static_cast<double>(matrix.outputs) * static_cast<double>(matrix.inputs);
  }
  if (!parameters.all()[model->body().head()].trainable) flops.per_label *= 2.0 / 3;
  return flops;
}

}  // namespace trainwright
