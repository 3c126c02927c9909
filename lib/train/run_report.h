/// report.svg of a run: its metrics.jsonl as curves, and as the few numbers that sum it up.
///
/// Nothing but the records goes into it, so it can be made again at any time from the file alone. Memory and
/// size of the picture do not grow with the number of records. Not thread-safe.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/report/bounded_series.h"
#include "lib/report/svg_plot.h"

namespace trainwright {

class RunReport {
 public:
  RunReport();

  /// Takes the next record of trainwright-metrics(5); one that it does not know is passed over.
  void Add(const nlohmann::ordered_json& record);
  /// Takes every whole line of a metrics.jsonl. \throws Error{kIo}; Error{kBadInput} naming the line that is
  /// no record
  void AddFile(const std::string& metrics_path);

  PlotFigure Figure() const;
  std::string Svg() const { return RenderSvg(Figure()); }

 private:
  void Mark(MarkerKind kind, double step, const std::string& text);
  std::string DescribeModel() const;
  std::string DescribeProgress() const;
  std::string DescribeResult() const;

  nlohmann::ordered_json begin_;          // the newest run_begin
  nlohmann::ordered_json evaluation_;     // the newest eval
  std::optional<std::string> end_reason_;  // of the newest process; absent while it works
  double begin_time_s_ = 0, last_time_s_ = 0, earlier_s_ = 0;
  int64_t step_ = 0, tokens_seen_ = 0;
  double logged_tokens_ = 0, logged_s_ = 0;  // of the steps that have a record
  double mfu_times_s_ = 0, mfu_s_ = 0;       // of those whose MFU is known
  BoundedSeries loss_, evaluation_loss_, learning_rate_, tokens_per_s_, resident_, peak_, wait_percent_;
  std::vector<PlotMarker> markers_;
};

/// Makes report.svg of a run directory from its metrics.jsonl; needs no lock. \returns its path
/// \throws Error{kIo, kBadInput}
std::string WriteRunReport(const std::string& run_path);

}  // namespace trainwright
