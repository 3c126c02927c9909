/// The evaluations of a training run: once a step at most, reported to the run's listener and its history.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/dist/world.h"
#include "lib/formats/shard_set.h"
#include "lib/model/language_model.h"
#include "lib/objective/objective.h"
#include "lib/run/train_plan.h"
#include "lib/run/training_history.h"
#include "lib/train/run_listener.h"

namespace trainwright {

struct EvaluatorOptions {
  int64_t most_tokens = 0;       ///< of the set, about; 0: all
  bool skip_bad_chunks = false;  ///< where what is held out lies in chunks of training that may be left out
};

/// Not thread-safe.
class Evaluator {
 public:
  /// \param objective, model, set, world, listener, history outlive it
  /// \param set null: nothing is ever evaluated
  Evaluator(const Objective* objective, LanguageModel* model, const ShardSet* set,
            const EvaluatorOptions& options, World* world, RunListener* listener, TrainingHistory* history);
  /// Whether there is anything to evaluate on that was not, after this step.
  bool due(int64_t step) const { return set_ != nullptr && evaluated_step_ != step; }
  /// Evaluates the model as it is after a step, on all ranks, which divide the work where the objective does
  /// that, and have the result that one would have. A signal to one of them ends it without a result on all:
  /// the run sees it, too.
  /// \param plan as it is now: its micro-batches may have become smaller
  /// \throws Error{kNonFinite, kBadInput, kIo}, what says that memory ran out, and as ShareEnd
  void Evaluate(int64_t step, const TrainPlan& plan);

 private:
  const Objective* objective_;
  LanguageModel* model_;
  const ShardSet* set_;
  EvaluatorOptions options_;
  World* world_;
  RunListener* listener_;
  TrainingHistory* history_;
  std::optional<int64_t> evaluated_step_;
};

}  // namespace trainwright
