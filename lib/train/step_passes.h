/// The passes of a step on all ranks: each rank's samples in, gradients and loss sums of the whole step out.
///
/// Where leaves are added up as a tree (see GradientExchange) the objective's passes run once a leaf, and
/// otherwise once. Not thread-safe.
#pragma once

#include <ATen/core/Tensor.h>

#include <exception>

#include "lib/dist/gradient_exchange.h"
#include "lib/dist/world.h"
#include "lib/objective/objective.h"

namespace trainwright {

/// What became of them on this rank.
struct PassesEnd {
  at::Tensor sums;             ///< fp64 [terms], of the whole step, where the model is
  std::exception_ptr failure;  ///< of this rank's own passes: then neither sums nor gradients say anything
};

class StepPasses {
 public:
  /// \param model, world outlive the passes; until then the model tells them which gradients are done
  StepPasses(LanguageModel* model, World* world, const GradientExchangeOptions& options);
  ~StepPasses();
  StepPasses(const StepPasses&) = delete;
  StepPasses& operator=(const StepPasses&) = delete;

  /// Takes the memory that exchanging takes, and the gradients'; only the first call does.
  void Prepare() { exchange_.Prepare(); }
  /// Runs them. A rank whose own fail takes part in what the others wait for all the same.
  /// \param pass with this rank's batches, as many micro-batches in each leaf
  /// \throws Error{kIo} where a rank is gone: see World
  PassesEnd Run(const Objective& objective, const StepPass& pass);
  const GradientExchange& exchange() const { return exchange_; }

 private:
  void RunLeaf(const Objective& objective, const StepPass& pass, int64_t leaf, at::Tensor sums);

  LanguageModel* model_;
  GradientExchange exchange_;
};

}  // namespace trainwright
