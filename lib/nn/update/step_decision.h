/// What the loss and the gradients of a step decide, as plain arithmetic that the host and a GPU share:
/// whether the weights change, by what the gradients are divided, and how the loss scale goes on.
#pragma once

#include <cmath>

#include "lib/nn/host_device.h"

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

/// A training run's numbers that live on the device between two looks of the host. Only doubles, so that it
/// is an fp64 tensor too.
struct StepState {
  double loss_nats, smoothing_nats, z_loss_nats;                 ///< sums of the running step, see LossSum
  double last_loss_nats, last_smoothing_nats, last_z_loss_nats;  ///< of the last finished step
  double labels;                                                 ///< of the last finished step
  double grad_norm;                                              ///< of it, before clipping
  double last_loss_scale;                                        ///< it ran with
  double skipped;                                                ///< 1: it changed no weight
  double loss_scale, good_steps, skipped_steps;                  ///< see UpdateLossScale
  double updates;                                                ///< of the weights
  double bad_step;                      ///< the first step that was not finite beyond help; 0: none
  double bad_loss_nats, bad_grad_norm;  ///< its mean loss and norm
};
inline constexpr int kStepStateFields = sizeof(StepState) / sizeof(double);

/// What the optimizer reads: fp32, as torch's fused AdamW wants them.
struct StepOutputs {
  float gradient_divisor;  ///< loss scale over clip factor
  float found_inf;         ///< 1: change nothing
  float adam_step;         ///< number of this update, from 1
};
inline constexpr int kStepOutputFields = sizeof(StepOutputs) / sizeof(float);

/// Ends step `step`. After a bad step nothing changes any more: the weights stay those before it.
/// \param sum_of_squares of the scaled gradients
/// \param scaled whether the loss scale is dynamic (fp16)
TRAINWRIGHT_HOST_DEVICE inline void FinishStep(double sum_of_squares, double step, double labels,
                                               double max_norm, bool scaled, StepState* state,
                                               StepOutputs* outputs) {
  const double scale = state->loss_scale, norm = sqrt(sum_of_squares) / scale;
  const double loss = state->loss_nats / labels;
  const bool finite = norm - norm == 0 && loss - loss == 0;
  state->last_loss_nats = state->loss_nats;
  state->last_smoothing_nats = state->smoothing_nats;
  state->last_z_loss_nats = state->z_loss_nats;
  state->labels = labels;
  state->grad_norm = norm;
  state->last_loss_scale = scale;
  state->loss_nats = state->smoothing_nats = state->z_loss_nats = 0;
  const bool stopped = state->bad_step != 0;
  if (!finite && !stopped && (!scaled || scale <= 1)) {
    state->bad_step = step;
    state->bad_loss_nats = loss;
    state->bad_grad_norm = norm;
  }
  const bool apply = finite && !stopped;
  if (scaled && state->bad_step == 0) {
    UpdateLossScale(finite, &state->loss_scale, &state->good_steps, &state->skipped_steps);
  }
  state->skipped = apply ? 0 : 1;
  state->updates += apply ? 1 : 0;
  outputs->gradient_divisor = apply ? static_cast<float>(scale / ClipFactor(norm, max_norm)) : 1.0f;
  outputs->found_inf = apply ? 0.0f : 1.0f;
  outputs->adam_step = static_cast<float>(state->updates);
}

}  // namespace trainwright
