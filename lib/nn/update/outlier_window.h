/// Finds steps whose loss or gradient norm is an outlier among those of the steps before it, whose updates a
/// run may skip. Plain arithmetic that the host and a GPU share.
///
/// A value's z-score is its distance from the mean of the last kOutlierWindow values, itself among them, over
/// their standard deviation (that of the population); before there are as many nothing is judged. Both sums
/// are computed from scratch for each value in fp64, from the first slot of the window to the last, so that a
/// resumed run has the same bits. Of a window of n values none can be further away than (n - 1) / sqrt(n),
/// which is 11.2. Values of skipped steps stay in the window.
/// \source llm.c, outlier_detector.h
#pragma once

#include <cmath>

#include "lib/nn/host_device.h"

namespace trainwright {

inline constexpr int kOutlierWindow = 128;
/// No z-score exceeds it.
inline constexpr double kLargestZScore = 11.23;

/// The last values. Only doubles, as StepState.
struct OutlierWindow {
  double count;  ///< of values so far, up to kOutlierWindow
  double next;   ///< slot of the next one
  double values[kOutlierWindow];
};

/// Takes in a finite value.
/// \returns its z-score; 0 while the window is not full and where all its values are the same
TRAINWRIGHT_HOST_DEVICE inline double ZScore(double value, OutlierWindow* window) {
  const int slot = static_cast<int>(window->next);
  window->values[slot] = value;
  window->next = (slot + 1) % kOutlierWindow;
  if (window->count < kOutlierWindow) window->count += 1;
  if (window->count < kOutlierWindow) return 0;
  double sum = 0, squares = 0;
  for (int i = 0; i < kOutlierWindow; ++i) sum += window->values[i];
  const double mean = sum / kOutlierWindow;
  for (int i = 0; i < kOutlierWindow; ++i) {
    squares += (window->values[i] - mean) * (window->values[i] - mean);
  }
  const double deviation = sqrt(squares / kOutlierWindow);
  return deviation > 0 ? (value - mean) / deviation : 0;
}

/// The z-scores above which an update is skipped; 0: none is.
struct OutlierLimits {
  double loss_z, grad_norm_z;

  TRAINWRIGHT_HOST_DEVICE bool any() const { return loss_z > 0 || grad_norm_z > 0; }
};

/// What a run knows of its steps' losses and gradient norms. Only doubles.
struct StepOutliers {
  OutlierLimits limits;
  double loss_z, grad_norm_z;               ///< of the last step; 0 where there is none
  double loss_stands_out, norm_stands_out;  ///< 1: its update was skipped for it
  double skipped_steps;                     ///< for either, in the whole run
  OutlierWindow losses, grad_norms;
};

/// Takes in the numbers of a step.
/// \param finite whether they are numbers; others are no part of the windows
/// \param has_loss whether the step has all terms of the loss; else its loss is no part of the window
/// \returns whether its update is to be skipped
TRAINWRIGHT_HOST_DEVICE inline bool StandsOut(bool finite, bool has_loss, double loss, double grad_norm,
                                              StepOutliers* outliers) {
  const OutlierLimits& limits = outliers->limits;
  if (!limits.any()) return false;
  outliers->loss_z = finite && has_loss ? ZScore(loss, &outliers->losses) : 0;
  outliers->grad_norm_z = finite ? ZScore(grad_norm, &outliers->grad_norms) : 0;
  const bool loss_does = limits.loss_z > 0 && outliers->loss_z > limits.loss_z;
  const bool norm_does = limits.grad_norm_z > 0 && outliers->grad_norm_z > limits.grad_norm_z;
  outliers->loss_stands_out = loss_does ? 1 : 0;
  outliers->norm_stands_out = norm_does ? 1 : 0;
  if (loss_does || norm_does) outliers->skipped_steps += 1;
  return loss_does || norm_does;
}

}  // namespace trainwright
