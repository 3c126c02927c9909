/// An optimizer that only the tests know: momentum scaled by what each segment's gradients have been, with
/// three states of other shapes and types than AdamW's. It shows what adding one takes: this file, and a line
/// of main that puts its kind into the registry.
#pragma once

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "lib/optim/optimizer_registry.h"

namespace trainwright::test {

inline constexpr char kToyOptimizer[] = "toy";

class ToyOptimizer final : public Optimizer {
 public:
  ToyOptimizer(FlatParameters* parameters, const OptimizerOptions& options)
      : Optimizer(parameters), damping_(options.own.at("damping").number()) {
    for (const Parameter& parameter : parameters->all()) {
      if (!parameter.trainable) continue;
      if (runs_.size() <= parameter.segment) runs_.resize(parameter.segment + 1);
      ParameterRange& run = runs_[parameter.segment];
      if (run.size == 0) run.begin = parameter.offset;
      run.size = parameter.offset + parameter.size - run.begin;
    }
    const at::TensorOptions on_device = parameters->values().options();
    momentum_ = at::zeros(parameters->values().sizes(), on_device);
    squares_ = at::zeros({static_cast<int64_t>(runs_.size())}, on_device.dtype(at::kDouble));
    counts_ = at::zeros({2, 3}, on_device.dtype(at::kLong));
  }

  using Optimizer::Step;
  void Step(const ParameterRange& range, at::Tensor& gradients, const OptimizerUpdate& update) override {
    if (Skips(update)) return;
    if (update.inputs.divisor.defined()) gradients.div_(update.inputs.divisor);
    for (size_t segment = 0; segment < runs_.size(); ++segment) {
      const int64_t begin = std::max(runs_[segment].begin, range.begin);
      const int64_t end = std::min(runs_[segment].begin + runs_[segment].size, range.begin + range.size);
      if (begin >= end) continue;
      const at::Tensor own = gradients.narrow(0, begin - range.begin, end - begin);
      at::Tensor square = squares_[static_cast<int64_t>(segment)];
      square.add_(own.to(at::kDouble).square().sum());
      at::Tensor momentum = momentum_.narrow(0, begin, end - begin);
      momentum.mul_(update.momentum).add_(own);
      const auto count = static_cast<double>(counts_[1][2].item<int64_t>());
      const double size = update.learning_rate / (damping_ + std::sqrt(square.item<double>() / count));
      parameters()->values().narrow(0, begin, end - begin).sub_(momentum, size);
    }
  }
  std::vector<OptimizerState> OwnStates() const override {
    return {{"momentum", momentum_}, {"squares", squares_}, {"counts", counts_}};
  }

 protected:
  void Begin(const OptimizerUpdate& update) override {
    if (!Skips(update)) counts_[1][2].add_(1);
  }

 private:
  static bool Skips(const OptimizerUpdate& update) {
    return update.inputs.found_inf.defined() && update.inputs.found_inf.item<float>() == 1;
  }

  double damping_;
  std::vector<ParameterRange> runs_;  ///< of each segment
  at::Tensor momentum_, squares_, counts_;
};

inline OptimizerKind ToyOptimizerKind() {
  OptimizerOptions defaults;
  defaults.name = kToyOptimizer;
  defaults.own = {{"damping", 0.5}};
  return {.description = {.name = kToyOptimizer,
                          .defaults = defaults,
                          .takes = {"beta1", "cycle_momentum"},
                          .state_bytes =
                              [](const OptimizerOptions&, const TrainedSizes& sizes) {
                                return 4 * sizes.elements + 8 * sizes.segments + 8 * 2 * 3;
                              }},
          .make = [](FlatParameters* parameters, const OptimizerOptions& options, uint64_t) {
            return std::make_unique<ToyOptimizer>(parameters, options);
          }};
}

}  // namespace trainwright::test
