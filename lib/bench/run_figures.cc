#include "lib/bench/run_figures.h"

#include <utility>

#include "lib/base/error.h"
#include "lib/bench/statistics.h"
#include "lib/formats/json_text.h"

namespace trainwright {
namespace {

constexpr char kStepTimeField[] = "step_time_s", kSamplesField[] = "effective_batch",
               kCoresField[] = "cpu_cores";
constexpr char kGpuField[] = "gpu_util", kLastEpoch[] = "final:epoch", kLastStep[] = "final:step";
constexpr char kResidentOfRun[] = "max_memory_bytes";

/// Of a number over all runs; nullopt where one lacks it.
std::optional<double> MedianOf(const Measurement& measurement, size_t variant, const std::string& name) {
  std::vector<double> values;
  for (const Round& round : measurement.rounds) {
    for (const Sample& run : round.runs.at(variant)) {
      const auto found = run.find(name);
      if (found == run.end()) return std::nullopt;
      values.push_back(found->second);
    }
  }
  if (values.empty()) return std::nullopt;
  return Median(std::move(values));
}

/// Null where there is none, or where it would be divided by 0.
std::optional<double> Ratio(const std::optional<double>& a, const std::optional<double>& b) {
  if (!a || !b || *b == 0) return std::nullopt;
  return *a / *b;
}

}  // namespace

std::vector<std::string> MetricsOfFigures() {
  return {kStepTimeField, kSamplesField, kCoresField, kGpuField, kLastEpoch, kLastStep};
}

RunFigures FiguresOf(const Measurement& measurement, size_t variant, int processors) {
  TRAINWRIGHT_CHECK(processors > 0);
  const auto of_runs = [&](const char* name) { return MedianOf(measurement, variant, name); };
  const std::optional<double> step_time_s = of_runs(kStepTimeField);
  RunFigures figures;
  figures.samples_per_s = Ratio(of_runs(kSamplesField), step_time_s);
  figures.max_memory_bytes = of_runs(kResidentOfRun);
  const std::optional<double> epochs_a_step = Ratio(of_runs(kLastEpoch), of_runs(kLastStep));
  figures.epoch_time_s = Ratio(step_time_s, epochs_a_step);
  figures.utilization = of_runs(kGpuField);
  figures.of_gpu = figures.utilization.has_value();
  if (!figures.of_gpu) figures.utilization = Ratio(of_runs(kCoresField), static_cast<double>(processors));
  return figures;
}

nlohmann::ordered_json ToJson(const RunFigures& figures) {
  return {{"samples_per_s", ValueOrNull(figures.samples_per_s)},
          {"max_memory_bytes", ValueOrNull(figures.max_memory_bytes)},
          {"epoch_time_s", ValueOrNull(figures.epoch_time_s)},
          {"utilization", ValueOrNull(figures.utilization)},
          {"utilization_of", figures.of_gpu ? "gpu" : "cpu"}};
}

}  // namespace trainwright
