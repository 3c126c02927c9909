/// training_metrics.json of a run: the arrays that plotting scripts of other trainers read.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace trainwright {

/// One element a step record, and one an evaluation. What is not finite is NaN here and null in the file.
struct TrainingMetrics {
  std::vector<double> loss, learning_rate, epoch;
  std::vector<int64_t> step;
  std::vector<double> eval_loss;
  std::vector<int64_t> eval_steps;
};

/// \throws Error{kIo}; Error{kBadInput} naming the line of metrics.jsonl that is no record
TrainingMetrics ReadTrainingMetrics(const std::string& metrics_path);
nlohmann::ordered_json EncodeTrainingMetrics(const TrainingMetrics& metrics);

/// The values that a moving average over `count` of them takes together: min(max(5, count / 20), 50).
size_t SmoothingWindow(size_t count);
/// The mean of each value and of those before it, `window` of them where there are this many; what is not
/// finite is left out, and without any finite one the mean is NaN.
/// \param window at least 1
std::vector<double> MovingAverage(std::span<const double> values, size_t window);

}  // namespace trainwright
