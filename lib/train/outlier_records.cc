#include "lib/train/outlier_records.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/units.h"

namespace trainwright {
namespace {

nlohmann::ordered_json EncodeWindow(const OutlierWindow& window) {
  const auto count = static_cast<int64_t>(window.count);
  return {{"next", static_cast<int64_t>(window.next)},
          {"values", std::vector<double>(window.values, window.values + count)}};
}

/// \returns whether it is a window of a run
bool DecodeWindow(const nlohmann::json& state, OutlierWindow* window) {
  const auto values = state.at("values").get<std::vector<double>>();
  const auto next = state.at("next").get<int64_t>();
  const auto count = static_cast<int64_t>(values.size());
  if (count > kOutlierWindow || next < 0 || next >= kOutlierWindow) return false;
  if (count < kOutlierWindow && next != count) return false;
  if (!std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); })) return false;
  window->count = static_cast<double>(count);
  window->next = static_cast<double>(next);
  std::copy(values.begin(), values.end(), window->values);
  return true;
}

}  // namespace

OutlierReport ReportOf(const StepOutliers& outliers) {
  return {.watched = outliers.limits.any(),
          .judged = outliers.losses.count == kOutlierWindow,
          .loss_z = outliers.loss_z,
          .grad_norm_z = outliers.grad_norm_z,
          .of_loss = outliers.loss_stands_out != 0,
          .of_norm = outliers.norm_stands_out != 0,
          .skipped_steps = static_cast<int64_t>(outliers.skipped_steps)};
}

OutlierReport WithoutScores(OutlierReport report) {
  report.judged = report.of_loss = report.of_norm = false;
  report.loss_z = report.grad_norm_z = 0;
  return report;
}

void EncodeOutliers(const OutlierReport& report, nlohmann::ordered_json* fields) {
  if (!report.watched) return;
  const auto score = [&](double z) { return report.judged ? nlohmann::ordered_json(z) : nullptr; };
  (*fields)["loss_z"] = score(report.loss_z);
  (*fields)["grad_norm_z"] = score(report.grad_norm_z);
  (*fields)["outlier_steps"] = report.skipped_steps;
}

std::string DescribeOutlier(const OutlierReport& report, double loss_nats, double grad_norm) {
  const double z = report.of_loss ? report.loss_z : report.grad_norm_z;
  return std::string("its ") + (report.of_loss ? "loss of " : "gradient norm of ") +
         FormatFixed(report.of_loss ? loss_nats : grad_norm, 3) + " is " + FormatFixed(z, 1) +
         " standard deviations above the mean of " + std::to_string(kOutlierWindow) + " steps";
}

nlohmann::ordered_json EncodeOutlierState(const StepOutliers& outliers) {
  return {{"skipped_steps", static_cast<int64_t>(outliers.skipped_steps)},
          {"losses", EncodeWindow(outliers.losses)},
          {"grad_norms", EncodeWindow(outliers.grad_norms)}};
}

StepOutliers DecodeOutlierState(const nlohmann::json& state, const std::string& path) {
  StepOutliers outliers{};
  bool holds = false;
  try {
    const auto skipped = state.at("skipped_steps").get<int64_t>();
    outliers.skipped_steps = static_cast<double>(skipped);
    holds = skipped >= 0 && DecodeWindow(state.at("losses"), &outliers.losses) &&
            DecodeWindow(state.at("grad_norms"), &outliers.grad_norms);
  } catch (const nlohmann::json::exception&) {
    holds = false;
  }
  if (!holds) {
    throw Error(ErrorCode::kBadInput, path,
                "its windows of losses and gradient norms are not those of a run");
  }
  return outliers;
}

}  // namespace trainwright
