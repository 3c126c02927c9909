#include "lib/train/evaluator.h"

#include <chrono>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/base/units.h"
#include "lib/eval/perplexity.h"

namespace trainwright {

Evaluator::Evaluator(LanguageModel* model, const ShardSet* set, const EvaluatorOptions& options,
                     RunListener* listener, TrainingHistory* history)
    : model_(model), set_(set), options_(options), listener_(listener), history_(history) {}

void Evaluator::Evaluate(int64_t step, const TrainPlan& plan) {
  const auto start = std::chrono::steady_clock::now();
  PerplexityMeter meter(model_, plan.sequence_tokens, plan.batch * plan.sequence_tokens);
  meter.set_masked(IsMasked(set_->header(), plan.labels_on()));
  meter.set_split(plan.eval_split);
  try {
    // Documents that are held out lie in the chunks of training, of which some may be left out.
    const bool skip_bad = plan.eval_split && options_.skip_bad_chunks;
    const uint64_t skipped = meter.AddSet(*set_, static_cast<uint64_t>(options_.most_tokens), {}, skip_bad);
    if (skipped > 0) {
      listener_->Warn("evaluated without " + FormatNumberOf(skipped, "frame") + " that cannot be read");
    }
    meter.Finish();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInterrupted && error.code() != ErrorCode::kTerminated) throw;
    return;
  }
  evaluated_step_ = step;
  history_->AddEvaluation(step, meter.sums().mean_loss_nats());
  listener_->RecordEvaluation(meter.sums(), SecondsSince(start));
}

}  // namespace trainwright
