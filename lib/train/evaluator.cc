#include "lib/train/evaluator.h"

#include <chrono>
#include <exception>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/base/profile_scope.h"
#include "lib/base/units.h"
#include "lib/dist/shared_work.h"

namespace trainwright {

Evaluator::Evaluator(const Objective* objective, LanguageModel* model, const ShardSet* set,
                     const EvaluatorOptions& options, World* world, RunListener* listener,
                     TrainingHistory* history)
    : objective_(objective),
      model_(model),
      set_(set),
      options_(options),
      world_(world),
      listener_(listener),
      history_(history) {}

void Evaluator::Evaluate(int64_t step, const TrainPlan& plan) {
  const OpaqueProfileScope scope("evaluate", ProfilePart::kEvaluation);
  const auto start = std::chrono::steady_clock::now();
  Evaluation evaluation;
  std::exception_ptr failure;
  try {
    evaluation = objective_->Evaluate(
        model_, *set_,
        {.sequence_tokens = plan.sequence_tokens,
         .batch_tokens = plan.most_batch_tokens(),
         .max_tokens = static_cast<uint64_t>(options_.most_tokens),
         .split = plan.eval_split,
         // Documents that are held out lie in the chunks of training, of which some may be left out.
         .skip_bad = plan.eval_split && options_.skip_bad_chunks,
         .world = world_});
  } catch (...) {
    failure = std::current_exception();
  }
  try {
    ShareEnd(world_, failure);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInterrupted && error.code() != ErrorCode::kTerminated) throw;
    return;
  }
  if (evaluation.frames_skipped > 0) {
    listener_->Warn("evaluated without " + FormatNumberOf(evaluation.frames_skipped, "frame") +
                    " that cannot be read");
  }
  evaluated_step_ = step;
  history_->AddEvaluation(step, evaluation.loss_nats);
  listener_->RecordEvaluation(evaluation, SecondsSince(start));
}

}  // namespace trainwright
