#include "lib/train/run_totals.h"

#include <algorithm>
#include <cmath>

namespace trainwright {
namespace {

/// A loss that is no number, of a step that the loss scaler skips, is none of them.
void Take(double value, RunTotals::Losses* losses) {
  if (!std::isfinite(value)) return;
  if (!losses->first) losses->first = value;
  losses->last = value;
  losses->best = std::min(value, losses->best.value_or(value));
}

}  // namespace

void RunTotals::AddStep(const StepReport& report, double model_flops) {
  step_ = report.step;
  tokens_seen_ += report.tokens;
  training_s_ += report.host.step_s;
  model_flops_ += model_flops;
  source_tokens_.resize(report.source_tokens.size());
  for (size_t i = 0; i < source_tokens_.size(); ++i) source_tokens_[i] += report.source_tokens[i];
  rank_waits_.Add(report.rank_waits);
  Take(report.loss_nats, &loss_nats_);
}

void RunTotals::AddEvaluation(double loss_nats) {
  Take(loss_nats, &eval_nats_);
}

void RunTotals::AddSave(const SaveTimes& times) {
  save_stall_s_ += times.stall_s;
  save_wait_s_ += times.wait_s;
  writer_cpu_s_ += times.writer_cpu_s;
}

}  // namespace trainwright
