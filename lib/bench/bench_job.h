/// The jobs of bench(1): one comparison, the stages of a file, an ablation, a table of claims.
#pragma once

#include <cstdint>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/bench/comparison.h"
#include "lib/bench/measurement.h"
#include "lib/bench/plan_file.h"
#include "lib/report/progress.h"

namespace trainwright {

enum class OutputCheck { kOff, kWarn, kFail };

struct BenchSettings {
  std::string before, after;
  std::string prepare;  ///< of a file of stages: in place of its own, where not empty
  std::string stages_file;
  std::optional<AblationMode> ablation;
  std::string by = "wall_s";  ///< the metric that decides
  /// Each in place of what a file of stages says: names where there are any, the others where they have a
  /// value.
  std::vector<std::string> metrics;
  std::optional<std::string> metric_file;
  std::optional<int64_t> metric_skip;
  bool ignore_metric_place = false;  ///< without any metric these two are left alone, not refused
  MeasurementOptions measurement;
  ComparisonOptions comparison;
  double interval_width = 0.01;  ///< stop when the interval reaches no further than this to either side
  std::optional<double> max_regression;
  OutputCheck output_check = OutputCheck::kWarn;
  bool one_row = false;  ///< refuses what would have several, before anything runs
  ProgressMode progress = ProgressMode::kAuto;
};

/// One comparison of the report, decided by its first metric.
struct BenchRow {
  std::string name;                     ///< of the stage or lever; empty for the only one
  std::vector<Comparison> comparisons;  ///< the deciding metric first
  std::string before_name, after_name;
  std::vector<std::string> warnings;
  std::optional<bool> outputs_equal;  ///< of before and after; nullopt when not compared
  bool output_repeats = true;         ///< that of two runs of before
};

struct BenchResult {
  std::vector<BenchRow> rows;
  std::vector<Measurement> measurements;  ///< one for each stage, or one for all levers
  nlohmann::ordered_json json;            ///< everything, raw samples included: trainwright-bench(5)
  int exit_status = 0;
  /// The Error of a signal, or of a command that failed, that ended it before all was measured: the rest is
  /// of what was. A comparison of fewer rounds than min_rounds is undecided, and of fewer than two there is
  /// none.
  std::exception_ptr stopped = nullptr;
};

/// \throws what Measure and ReadPlanFile throw, of a signal or a command that failed only where nothing was
///     measured before it;
///     Error{kUsage} on settings that do not fit each other
BenchResult RunBench(const BenchSettings& settings);

/// Whether a signal, not a command that failed, ended it before all was measured.
bool StoppedBySignal(const BenchResult& result);

/// 0 when no row got worse, 1 when one did, 7 when that cannot be said. With a limit: worse means by more
/// than it and by more than the control's noise, and 0 needs every interval below it.
int ExitStatusOf(const std::vector<BenchRow>& rows, const std::optional<double>& max_regression);

}  // namespace trainwright
