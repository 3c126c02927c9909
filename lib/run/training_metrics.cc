#include "lib/run/training_metrics.h"

#include <algorithm>
#include <cmath>

#include "lib/run/metrics_log.h"

namespace trainwright {
namespace {

double NumberOrNan(const nlohmann::ordered_json& record, const char* name) {
  const auto field = record.find(name);
  return field != record.end() && field->is_number() ? field->get<double>() : NAN;
}

}  // namespace

TrainingMetrics ReadTrainingMetrics(const std::string& metrics_path) {
  TrainingMetrics metrics;
  ForEachMetricsRecord(metrics_path, [&](const nlohmann::ordered_json& record) {
    const std::string type = record.value("type", "");
    const double step = NumberOrNan(record, "step");
    if (!(step >= 0 && step <= 0x1p53)) return;
    if (type == "step") {
      metrics.loss.push_back(NumberOrNan(record, "loss_nats"));
      metrics.learning_rate.push_back(NumberOrNan(record, "lr"));
      metrics.epoch.push_back(NumberOrNan(record, "epoch"));
      metrics.step.push_back(static_cast<int64_t>(step));
    } else if (type == "eval") {
      metrics.eval_loss.push_back(NumberOrNan(record, "loss_nats"));
      metrics.eval_steps.push_back(static_cast<int64_t>(step));
    }
  });
  return metrics;
}

nlohmann::ordered_json EncodeTrainingMetrics(const TrainingMetrics& metrics) {
  return {{"loss", metrics.loss},           {"learning_rate", metrics.learning_rate},
          {"epoch", metrics.epoch},         {"step", metrics.step},
          {"eval_loss", metrics.eval_loss}, {"eval_steps", metrics.eval_steps}};
}

size_t SmoothingWindow(size_t count) {
  return std::min<size_t>(std::max<size_t>(5, count / 20), 50);
}

std::vector<double> MovingAverage(std::span<const double> values, size_t window) {
  std::vector<double> means;
  means.reserve(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    // Summed anew each time, at most 50 values: a running sum would carry rounding along.
    double sum = 0;
    size_t count = 0;
    for (size_t j = i + 1 - std::min(window, i + 1); j <= i; ++j) {
      if (!std::isfinite(values[j])) continue;
      sum += values[j];
      ++count;
    }
    means.push_back(count > 0 ? sum / static_cast<double>(count) : NAN);
  }
  return means;
}

}  // namespace trainwright
