/// What the gradients of a model are held against: the slope of its loss, and what it computes when it
/// recomputes and off-loads.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/model/language_model.h"
#include "lib/spec/activation_checkpointing.h"
#include "tests/support/support.h"

namespace trainwright::test {

/// A direction of length 1 that no other tensor shares and that goes much along the gradient.
inline at::Tensor DirectionOf(const Parameter& parameter) {
  at::Tensor direction = at::empty(parameter.shape);
  Rng(TestSeed(), parameter.name)
      .FillNormal(0, static_cast<uint64_t>(parameter.size), 1.0, direction.mutable_data_ptr<float>());
  direction.div_(direction.norm()).add_(parameter.gradient.div(parameter.gradient.norm()), 2.0);
  return direction.div_(direction.norm());
}

/// The derivative of loss_at(distance) at 0, from differences of fourth order in `step`.
inline double SlopeOf(const std::function<double(double)>& loss_at, double step) {
  return (8 * (loss_at(step) - loss_at(-step)) - (loss_at(2 * step) - loss_at(-2 * step))) / (12 * step);
}

/// Expects of every parameter that its gradient along DirectionOf is the slope of the loss.
/// \param of_norm,absolute what they may differ by: that part of the gradient's norm, and what rounding adds
inline void ExpectGradientsOfFiniteDifferences(LanguageModel* model, const ModelInput& input, double step,
                                               double of_norm, double absolute = 0) {
  model->LossAndGradients(input, 1.0);
  for (const Parameter& parameter : model->parameters().all()) {
    const double norm = parameter.gradient.norm().item<double>();
    EXPECT_GT(norm, 0) << parameter.name;
    const at::Tensor direction = DirectionOf(parameter);
    at::Tensor value = parameter.value;
    const at::Tensor before = value.clone();
    const auto loss_at = [&](double distance) {
      value.copy_(before).add_(direction, distance);
      const double loss = model->Loss(input).loss_nats;
      value.copy_(before);
      return loss;
    };
    const double expected = parameter.gradient.mul(direction).sum().item<double>();
    EXPECT_NEAR(SlopeOf(loss_at, step), expected, of_norm * norm + absolute) << parameter.name;
  }
}

/// Expects the same losses and gradients bit for bit, of a large micro-batch and a small one after it,
/// whatever is computed again in the backward pass and whether activations are off-loaded to a file.
/// \param make gives equal models of such numerics
/// \param kinds that the models know
inline void ExpectTheSameRecomputedAndOffloaded(
    const std::function<std::unique_ptr<LanguageModel>(const Numerics&)>& make,
    const std::vector<Numerics>& all_numerics, const ModelInput& large, const ModelInput& small,
    const std::vector<ActivationCheckpointing>& kinds = {
        ActivationCheckpointing::kLeast, ActivationCheckpointing::kNo, ActivationCheckpointing::kSelective,
        ActivationCheckpointing::kFull}) {
  const TemporaryFolder folder;
  for (const Numerics& numerics : all_numerics) {
    const auto run = [&](ActivationCheckpointing kind, bool offload) {
      const auto model = make(numerics);
      model->set_activation_checkpointing(kind);
      model->Offload({.activations = offload}, folder.path());
      model->parameters().ZeroGradients();
      double loss = model->LossAndGradients(large, 0.5).loss_nats;
      loss += model->Loss(large).loss_nats;  // writes into the buffers that layers share
      loss += model->LossAndGradients(small, 0.25).loss_nats;
      return std::pair(loss, model->parameters().gradients().clone());
    };
    const auto [loss, gradients] = run(ActivationCheckpointing::kNo, false);
    EXPECT_GT(gradients.abs().max().item<double>(), 0);
    for (const bool offload : {false, true}) {
      for (const ActivationCheckpointing kind : kinds) {
        const auto [again_loss, again] = run(kind, offload);
        EXPECT_EQ(again_loss, loss);
        EXPECT_TRUE(at::equal(again, gradients))
            << PrecisionName(numerics.precision) << " kind " << int(kind) << " offload " << offload;
      }
    }
  }
}

}  // namespace trainwright::test
