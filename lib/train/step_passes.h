/// The passes of a step on all ranks: each rank's samples in, gradients and loss sums of the whole step out.
///
/// What the objective makes once a step (Objective::Begin) is made before all of them. Where leaves are added
/// up as a tree (see GradientExchange) its passes run once a leaf, where gradients are sharded once a
/// micro-batch, and otherwise once. Where parameters are sharded, what the ranks have updated is shared here,
/// too. Not thread-safe.
#pragma once

#include <ATen/core/Tensor.h>

#include <exception>
#include <optional>

#include "lib/dist/gradient_exchange.h"
#include "lib/dist/value_exchange.h"
#include "lib/dist/world.h"
#include "lib/objective/objective.h"

namespace trainwright {

/// What became of them on this rank.
struct PassesEnd {
  at::Tensor sums;  ///< fp64 [terms], of the whole step, where the model is; good until the next Run
  /// fp64 [1], there: of the squares of the whole step's gradients; undefined where these are not sharded.
  at::Tensor squares;
  std::exception_ptr failure;  ///< of this rank's own passes: then neither sums nor gradients say anything
};

class StepPasses {
 public:
  /// \param model, world outlive the passes; until then the model reports to them which gradients are done
  StepPasses(LanguageModel* model, World* world, const GradientExchangeOptions& options);
  ~StepPasses();
  StepPasses(const StepPasses&) = delete;
  StepPasses& operator=(const StepPasses&) = delete;

  /// Takes the memory that exchanging takes, and the gradients'; only the first call does.
  void Prepare(const Objective& objective);
  /// Runs them, prepared. A rank whose own fail takes part in what the others wait for all the same.
  /// \param pass with this rank's batches, as many micro-batches in each leaf; what it says about a context
  ///     and of leaves is set here
  /// \throws Error{kIo} where a rank is gone: see World
  PassesEnd Run(const Objective& objective, const StepPass& pass);
  /// Where parameters are sharded: after the update of this rank's shard, on all ranks.
  /// \throws Error{kIo} where a rank is gone
  void ShareValues();
  /// What Prepare has taken, but the gradients'.
  int64_t held_bytes() const { return exchange_.held_bytes() + (values_ ? values_->held_bytes() : 0); }
  /// The time spent waiting for other ranks so far.
  double wait_s() const { return exchange_.wait_s() + (values_ ? values_->wait_s() : 0); }

 private:
  /// Parts of a step whose passes run by themselves.
  struct Parts {
    int64_t leaves = 1, rounds = 1;  ///< one of both is 1
  };
  Parts PartsOf(const StepPass& pass) const;
  /// \param part number of the leaf or round
  /// \param last whether no other leaf follows before the gradients are exchanged
  void RunPart(const Objective& objective, const StepPass& pass, int64_t part, bool last, at::Tensor sums);

  LanguageModel* model_;
  World* world_;
  GradientExchange exchange_;
  std::optional<ValueExchange> values_;  ///< of sharded parameters
  at::Tensor sums_lt_;                   ///< fp64 [leaves, terms], of this rank's
};

}  // namespace trainwright
