/// What is written of steps that are outliers (lib/nn/update/outlier_window.h): in metrics, messages and
/// training states.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "lib/nn/update/outlier_window.h"

namespace trainwright {

/// Of a step; all zero where no update is skipped for it.
struct OutlierReport {
  bool watched = false;  ///< whether there is a limit
  bool judged = false;   ///< whether the windows are full, so that there are scores
  double loss_z = 0, grad_norm_z = 0;
  bool of_loss = false, of_norm = false;  ///< why its update was skipped
  int64_t skipped_steps = 0;              ///< of the whole run
};

OutlierReport ReportOf(const StepOutliers& outliers);
/// Of a step that has no loss.
OutlierReport WithoutScores(OutlierReport report);

/// Adds the fields of a step record, where outliers are watched.
void EncodeOutliers(const OutlierReport& report, nlohmann::ordered_json* fields);

/// Why the update of a step was skipped: "its loss of 9.1 is 7.5 standard deviations above the mean of 128
/// steps"; one of `of_loss` and `of_norm` holds.
std::string DescribeOutlier(const OutlierReport& report, double loss_nats, double grad_norm);

/// For a training state; without the limits, which its plan has.
nlohmann::ordered_json EncodeOutlierState(const StepOutliers& outliers);

/// \returns outliers without limits
/// \throws Error{kBadInput} naming `path` on what no run has written
StepOutliers DecodeOutlierState(const nlohmann::json& state, const std::string& path);

}  // namespace trainwright
