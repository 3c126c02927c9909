/// The end of a step decided where its gradients are, so that a GPU's queue never runs empty: norm, clipping,
/// loss scale and the reaction to numbers that are not finite (see lib/nn/update/step_decision.h), read by
/// the host only now and then. On any device; the numbers are those of DecideClip and LossScaler up to
/// rounding.
///
/// What differs from step to step is brought to the device (StepInputs), so that the end of a step can be
/// repeated as a graph of the device: update_graph.h. Not thread-safe.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "lib/device/host_read.h"
#include "lib/nn/update/step_decision.h"
#include "lib/optim/loss_sums.h"
#include "lib/optim/optimizer.h"
#include "lib/optim/step_guard.h"
#include "lib/optim/update_graph.h"

namespace trainwright {

/// What the host sees of the last finished step.
struct DeviceStepNumbers {
  StepState state{};
  std::vector<double> sums, denominators;  ///< of each term of the loss
};

class DeviceStep final : public LossSums {
 public:
  /// \param terms of the loss
  DeviceStep(at::Device device, size_t terms);
  /// The present one, fp64 [1].
  at::Tensor loss_scale() const;
  /// Adds to the running step's.
  void Add(const std::vector<double>& sums) override;
  void AddOnDevice(const at::Tensor& sums) override;
  /// Decides step `step` and updates the weights, or not.
  /// \param denominators of each term
  /// \param squares fp64 [1]: the sum of those of all gradients; undefined: of the optimizer's parameters'
  void Finish(int64_t step, const std::vector<int64_t>& denominators, double max_norm, bool scaled,
              double learning_rate, double momentum, Optimizer* optimizer, const at::Tensor& squares = {});
  /// Makes Finish repeat what it queues as a graph, of an optimizer that repeats() and gradients that are all
  /// in memory; other steps go on kernel by kernel.
  void set_graph(UpdateGraph graph) { graph_.emplace(std::move(graph)); }
  /// What was repeated so far; null without set_graph.
  const UpdateGraphCounts* graph_counts() const { return graph_ ? &graph_->counts() : nullptr; }
  /// Waits for a GPU.
  DeviceStepNumbers Read(HostReader* reader) const;
  /// For a new or a restored run.
  /// \param weights by which the loss adds up the means of its terms, for outliers
  /// \throws Error{kUsage} where outliers are skipped of a loss of more than kMostWatchedTerms terms
  void Set(const StepGuard::State& guard, int64_t updates, const std::vector<double>& weights);

 private:
  /// Decides the step, whose inputs are there, and updates.
  void Update(double max_norm, bool scaled, double learning_rate, double momentum, Optimizer* optimizer,
              const at::Tensor& squares);

  size_t terms_;
  at::Tensor numbers_;            ///< fp64: the two that follow side by side, so that one look reads both
  at::Tensor state_, term_rows_;  ///< fp64 [kStepStateFields], [kStepTermRows, terms]
  at::Tensor inputs_;             ///< fp64 [kStepInputFields + terms]
  at::Tensor outputs_;            ///< fp32 [kStepOutputFields]
  at::Tensor squares_, part_squares_;  ///< fp64 [1]: of all gradients, of a part
  std::optional<UpdateGraph> graph_;
};

}  // namespace trainwright
