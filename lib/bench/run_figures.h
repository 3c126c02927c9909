/// What is reported of a training run: samples a second, memory, the time of an epoch, and how busy the
/// processors were that it computed on.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/bench/measurement.h"

namespace trainwright {

/// Medians over a variant's runs; absent where not every run reports it.
struct RunFigures {
  std::optional<double> samples_per_s;
  std::optional<double> max_memory_bytes;  ///< resident, of the process
  std::optional<double> epoch_time_s;      ///< as long as a pass over the data would take at this pace
  std::optional<double> utilization;       ///< busy share of the GPU, or without one of the processors
  bool of_gpu = false;                     ///< whether it is the GPU's
};

/// The fields of train's metrics.jsonl that they follow from, as MetricSource takes them.
std::vector<std::string> MetricsOfFigures();

/// \param processors of the machine that the runs may use, at least 1
RunFigures FiguresOf(const Measurement& measurement, size_t variant, int processors);

/// {"samples_per_s", "max_memory_bytes", "epoch_time_s", "utilization", "utilization_of"}; null where absent.
nlohmann::ordered_json ToJson(const RunFigures& figures);

}  // namespace trainwright
