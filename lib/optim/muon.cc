#include "lib/optim/muon.h"

#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/profile_scope.h"
#include "lib/nn/linear/lora.h"
#include "lib/optim/fused_adamw.h"
#include "lib/spec/built_in_optimizers.h"

namespace trainwright {
namespace {

std::set<int64_t> OffsetsOfMatrices(const FlatParameters& parameters) {
  std::set<int64_t> offsets;
  for (const size_t index : ProductMatrices(parameters)) {
    const Parameter& parameter = parameters.all()[index];
    if (parameter.trainable) offsets.insert(parameter.offset);
  }
  return offsets;
}

ParameterRuns OtherRuns(const FlatParameters& parameters) {
  return ParameterRuns(parameters, [matrices = OffsetsOfMatrices(parameters)](const Parameter& parameter) {
    return !matrices.contains(parameter.offset);
  });
}

/// 1 where an update changes something, else 0; undefined: 1.
at::Tensor KeepOf(const DeviceInputs& inputs) {
  if (!inputs.found_inf.defined()) return {};
  return inputs.found_inf.eq(0).to(at::kFloat);
}

}  // namespace

at::Tensor NewtonSchulz(at::Tensor x_nab, int64_t steps) {
  constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315, kLeastNorm = 1e-7;
  x_nab.div_(
      at::linalg_vector_norm(x_nab, 2, at::IntArrayRef{1, 2}, /*keepdim=*/true).clamp_min_(kLeastNorm));
  const int64_t rows = x_nab.size(1), columns = x_nab.size(2);
  const ProfileScope scope("newton_schulz", ProfilePart::kGemm,
                           steps * x_nab.size(0) * (4 * rows * rows * columns + 2 * rows * rows * rows));
  for (int64_t step = 0; step < steps; ++step) {
    const at::Tensor gram_naa = at::bmm(x_nab, x_nab.transpose(1, 2));
    const at::Tensor change_naa = at::baddbmm(gram_naa, gram_naa, gram_naa, kB, kC);
    x_nab = at::baddbmm(x_nab, change_naa, x_nab, kA);
  }
  return x_nab;
}

Muon::Muon(FlatParameters* parameters, const OptimizerOptions& options)
    : Optimizer(parameters),
      options_(options),
      momentum_(options.own.at("momentum").number()),
      adamw_factor_(options.own.at("adamw_factor").number()),
      ns_steps_(static_cast<int64_t>(options.own.at("ns_steps").number())),
      nesterov_(options.own.at("nesterov").number() != 0),
      match_rms_adamw_(options.own.at("match_rms_adamw").number() != 0),
      batches_(BatchesOf(*parameters)),
      others_(OtherRuns(*parameters)),
      exp_avg_(NewState(at::kFloat)),
      exp_avg_sq_(at::zeros({others_.elements()}, exp_avg_.options())) {
  TRAINWRIGHT_CHECK(parameters->shard() == nullptr);
}

std::vector<Muon::Batch> Muon::BatchesOf(const FlatParameters& parameters) {
  using Key = std::tuple<size_t, int64_t, int64_t, Treatment>;
  std::map<Key, Batch> batches;
  const std::set<int64_t> matrices = OffsetsOfMatrices(parameters);
  for (const Parameter& parameter : parameters.all()) {
    if (!parameter.trainable || !matrices.contains(parameter.offset)) continue;
    const Treatment treatment = {parameter.decay, parameter.rate};
    Batch& batch = batches[{parameter.segment, parameter.shape[0], parameter.shape[1], treatment}];
    batch.rows = parameter.shape[0];
    batch.columns = parameter.shape[1];
    batch.treatment = treatment;
    batch.offsets.push_back(parameter.offset);
  }
  std::vector<Batch> all;
  for (auto& [key, batch] : batches) all.push_back(std::move(batch));
  return all;
}

std::vector<OptimizerState> Muon::OwnStates() const {
  return {{.name = "exp_avg", .value = exp_avg_, .by_element = true},
          {.name = "exp_avg_sq", .value = exp_avg_sq_}};
}

void Muon::Step(const ParameterRange& range, at::Tensor& gradients, const OptimizerUpdate& update) {
  const int64_t end = range.begin + range.size;
  for (const Batch& batch : batches_) {
    const int64_t first = batch.offsets.front(), last = batch.offsets.back() + batch.rows * batch.columns;
    if (last <= range.begin || first >= end) continue;
    TRAINWRIGHT_CHECK(first >= range.begin && last <= end);
    UpdateBatch(batch, range.begin, gradients, update);
  }
  others_.ForEach(range, [&](const Treatment& treatment, const std::vector<ParameterRange>& parts) {
    FusedAdamWTensors tensors;
    for (const ParameterRange& part : parts) {
      tensors.values.push_back(parameters()->Masters(part.begin, part.size));
      tensors.gradients.push_back(gradients.narrow(0, part.begin - range.begin, part.size));
      tensors.exp_avg.push_back(exp_avg_.narrow(0, part.begin, part.size));
      tensors.exp_avg_sq.push_back(exp_avg_sq_.narrow(0, others_.PlaceOf(part.begin), part.size));
    }
    FusedAdamW(options_, treatment, update, tensors, adamw_factor_);
  });
}

at::Tensor Muon::TakeGradients(const Batch& batch, int64_t begin, const at::Tensor& gradients,
                               const DeviceInputs& inputs) {
  const at::Tensor keep = KeepOf(inputs);
  const int64_t size = batch.rows * batch.columns;
  std::vector<at::Tensor> directions;
  for (const int64_t offset : batch.offsets) {
    at::Tensor gradient = gradients.narrow(0, offset - begin, size).view({batch.rows, batch.columns}),
               average = exp_avg_.narrow(0, offset, size).view({batch.rows, batch.columns});
    if (inputs.divisor.defined()) gradient.div_(inputs.divisor);
    if (keep.defined()) {
      gradient.masked_fill_(keep.eq(0), 0);  // what is not finite
      average.lerp_(gradient, keep.mul(1 - momentum_));
    } else {
      average.lerp_(gradient, 1 - momentum_);
    }
    const at::Tensor direction = nesterov_ ? gradient.lerp(average, momentum_) : average;
    directions.push_back(batch.rows > batch.columns ? direction.t() : direction);
  }
  return at::stack(directions);
}

void Muon::UpdateBatch(const Batch& batch, int64_t begin, const at::Tensor& gradients,
                       const OptimizerUpdate& update) {
  const DeviceInputs& inputs = update.inputs;
  const at::Tensor direction_nab = TakeGradients(batch, begin, gradients, inputs);
  const at::Tensor orthogonal_nab =
      NewtonSchulz(direction_nab.is_cpu() ? direction_nab : direction_nab.to(at::kBFloat16), ns_steps_);
  const auto rows = static_cast<double>(batch.rows), columns = static_cast<double>(batch.columns);
  const double scale =
      match_rms_adamw_ ? 0.2 * std::sqrt(std::max(rows, columns)) : std::sqrt(std::max(1.0, rows / columns));
  // fp64 scalars: of the host, or of the device that knows them.
  at::Tensor rate = inputs.learning_rate.defined() ? inputs.learning_rate.mul(batch.treatment.rate)
                                                   : at::full({}, update.learning_rate * batch.treatment.rate,
                                                              at::TensorOptions().dtype(at::kDouble));
  if (const at::Tensor keep = KeepOf(inputs); keep.defined()) rate = rate.mul(keep);
  const double decay = batch.treatment.decay ? options_.weight_decay : 0.0;
  const at::Tensor kept = rate.mul(-decay).add_(1).to(at::kFloat), step = rate.mul(scale).to(at::kFloat);
  const int64_t size = batch.rows * batch.columns;
  for (size_t i = 0; i < batch.offsets.size(); ++i) {
    const at::Tensor orthogonal = orthogonal_nab[static_cast<int64_t>(i)];
    at::Tensor values = parameters()->Masters(batch.offsets[i], size).view({batch.rows, batch.columns});
    values.mul_(kept).sub_(
        (batch.rows > batch.columns ? orthogonal.t() : orthogonal).to(at::kFloat).mul(step));
  }
}

int64_t Muon::scratch_bytes() const {
  // Directions and their stack, the iterate and the next one; the Gram matrix, its square and their sum.
  constexpr int64_t kOfMatrix = 4 * sizeof(float), kOfGram = 3 * sizeof(float);
  int64_t most = 0;
  for (const Batch& batch : batches_) {
    const int64_t side = std::min(batch.rows, batch.columns);
    const int64_t matrix = batch.rows * batch.columns * kOfMatrix + side * side * kOfGram;
    most = std::max(most, std::ssize(batch.offsets) * matrix);
  }
  return most;
}

OptimizerKind MuonKind() {
  return {.description = MuonDescription(),
          .make = [](FlatParameters* parameters, const OptimizerOptions& options, uint64_t) {
            return std::make_unique<Muon>(parameters, options);
          }};
}

}  // namespace trainwright
