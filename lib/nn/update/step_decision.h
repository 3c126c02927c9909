/// What the loss and the gradients of a step decide, as plain arithmetic that the host and a GPU share:
/// whether the weights change, by what the gradients are divided, and how the loss scale goes on.
#pragma once

#include <cmath>

#include "lib/nn/host_device.h"
#include "lib/nn/update/outlier_window.h"

namespace trainwright {

inline constexpr double kLargestLossScale = 16777216.0;
inline constexpr double kLossScaleGrowthSteps = 2000;

/// Dynamic loss scaling: a bad step halves the scale (not below 1), every 2000th good step in a row doubles
/// it (not above 2^24).
TRAINWRIGHT_HOST_DEVICE inline void UpdateLossScale(bool finite, double* scale, double* good_steps,
                                                    double* skipped_steps) {
  if (!finite) {
    *scale = *scale / 2 > 1.0 ? *scale / 2 : 1.0;
    *good_steps = 0;
    *skipped_steps += 1;
  } else if ((*good_steps += 1) == kLossScaleGrowthSteps) {
    *scale = *scale * 2 < kLargestLossScale ? *scale * 2 : kLargestLossScale;
    *good_steps = 0;
  }
}

/// torch.nn.utils.clip_grad_norm_'s factor.
/// \param max_norm 0: no clipping
TRAINWRIGHT_HOST_DEVICE inline double ClipFactor(double norm, double max_norm) {
  const double factor = max_norm / (norm + 1e-6);
  return max_norm > 0 && factor < 1.0 ? factor : 1.0;
}

/// Terms that a loss may have whose outliers are skipped.
inline constexpr int kMostWatchedTerms = 8;

/// A training run's numbers that live on the device between two looks of the host, but for those of the terms
/// of its loss. Only doubles, so that it is an fp64 tensor too.
struct StepState {
  double grad_norm;                              ///< of the last finished step, before clipping
  double last_loss_scale;                        ///< it ran with
  double skipped;                                ///< 1: it changed no weight
  double loss_scale, good_steps, skipped_steps;  ///< see UpdateLossScale
  double updates;                                ///< of the weights
  double bad_step;                               ///< the first step that was not finite beyond help; 0: none
  double bad_loss_nats, bad_grad_norm;           ///< its norm, and a mean of its loss: see WorstMean
  double term_weights[kMostWatchedTerms];        ///< by which the loss adds up the means of its terms
  StepOutliers outliers;                         ///< of that loss and of the norm before clipping
};
inline constexpr int kStepStateFields = sizeof(StepState) / sizeof(double);

/// Rows of the fp64 tensor [kStepTermRows, terms] beside it: the sums of the running step, and of the last
/// finished step the sums and what they are divided by.
inline constexpr int kStepTermRows = 3;

/// What the host gives a step, so that the kernels of all steps are the same. The fp64 tensor that brings it
/// to the device holds these numbers, and after them the denominators of the terms of the loss.
struct StepInputs {
  double step;           ///< its number, from 1
  double learning_rate;  ///< of its update
};
inline constexpr int kStepInputFields = sizeof(StepInputs) / sizeof(double);

/// What the optimizer reads: fp32, as torch's fused AdamW wants them.
struct StepOutputs {
  float gradient_divisor;  ///< loss scale over clip factor
  float found_inf;         ///< 1: change nothing
  float update;            ///< number of this update, from 1
};
inline constexpr int kStepOutputFields = sizeof(StepOutputs) / sizeof(float);

/// The mean of a term; 0 where the step says nothing of it.
TRAINWRIGHT_HOST_DEVICE inline double TermMean(double sum, double denominator) {
  return denominator > 0 ? sum / denominator : 0;
}

/// The mean of a term that is not finite where there is such a one, else that of the first term.
/// \param denominators 0: of a term that the step says nothing of, whose mean is 0
TRAINWRIGHT_HOST_DEVICE inline double WorstMean(const double* sums, const double* denominators, int terms) {
  double worst = 0;
  for (int i = 0; i < terms; ++i) {
    const double mean = TermMean(sums[i], denominators[i]);
    if (i == 0 || (worst - worst == 0 && mean - mean != 0)) worst = mean;
  }
  return worst;
}

/// Ends a step. After a bad step nothing changes any more: the weights stay those before it.
/// \param sum_of_squares of the scaled gradients
/// \param denominators of the terms of the loss
/// \param scaled whether the loss scale is dynamic (fp16)
/// \param term_rows see kStepTermRows
TRAINWRIGHT_HOST_DEVICE inline void FinishStep(double sum_of_squares, const StepInputs& inputs,
                                               const double* denominators, int terms, double max_norm,
                                               bool scaled, StepState* state, double* term_rows,
                                               StepOutputs* outputs) {
  const double scale = state->loss_scale, norm = sqrt(sum_of_squares) / scale;
  const double loss = WorstMean(term_rows, denominators, terms);
  const bool finite = norm - norm == 0 && loss - loss == 0;
  double run_loss = 0;
  bool has_loss = true;
  for (int i = 0; i < terms && i < kMostWatchedTerms; ++i) {
    run_loss += state->term_weights[i] * TermMean(term_rows[i], denominators[i]);
    if (state->term_weights[i] != 0 && denominators[i] == 0) has_loss = false;
  }
  for (int i = 0; i < terms; ++i) {
    term_rows[terms + i] = term_rows[i];
    term_rows[2 * terms + i] = denominators[i];
    term_rows[i] = 0;
  }
  state->grad_norm = norm;
  state->last_loss_scale = scale;
  const bool stopped = state->bad_step != 0;
  if (!finite && !stopped && (!scaled || scale <= 1)) {
    state->bad_step = inputs.step;
    state->bad_loss_nats = loss;
    state->bad_grad_norm = norm;
  }
  const bool stands_out = StandsOut(finite && !stopped, has_loss, run_loss, norm, &state->outliers);
  const bool apply = finite && !stopped && !stands_out;
  if (scaled && state->bad_step == 0) {
    UpdateLossScale(finite, &state->loss_scale, &state->good_steps, &state->skipped_steps);
  }
  state->skipped = apply ? 0 : 1;
  state->updates += apply ? 1 : 0;
  outputs->gradient_divisor = apply ? static_cast<float>(scale / ClipFactor(norm, max_norm)) : 1.0f;
  outputs->found_inf = apply ? 0.0f : 1.0f;
  outputs->update = static_cast<float>(state->updates);
}

}  // namespace trainwright
