/// report.svg of a run: its metrics.jsonl as curves by steps, the loss by epochs, too, and as the few numbers
/// that sum it up.
///
/// Nothing but the records goes into it, so it can be made again at any time from the file alone. Memory and
/// size of the plot do not grow with the number of records. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/report/bounded_series.h"
#include "lib/report/svg_plot.h"
#include "lib/run/rank_records.h"

namespace trainwright {

class RunReport {
 public:
  RunReport();

  /// Takes the next record of trainwright-metrics(5); one that it does not know is skipped.
  void Add(const nlohmann::ordered_json& record);
  /// Takes every whole line of a metrics.jsonl.
  /// \throws Error{kIo}; Error{kBadInput} naming the line that is no record
  void AddFile(const std::string& metrics_path);

  PlotFigure Figure() const;
  std::string Svg() const { return RenderSvg(Figure()); }

  /// The newest run_begin; null before the first.
  const nlohmann::ordered_json& begin() const { return begin_; }
  /// The ranks of the newest process, once it has ended.
  RankRecords ranks() const { return DecodeRanks(end_); }
  const std::vector<PlotMarker>& markers() const { return markers_; }
  /// Wall time of all processes of the run, resumed ones together.
  double time_s() const {
    return begin_.is_null() ? 0 : earlier_.time_s + process_.last_s - process_.begin_s;
  }
  /// Of all processes that had a --cost-per-hour, each at its own; absent where none had. What their records
  /// say counts, and their times only since the last that says something.
  std::optional<double> cost() const;

 private:
  void Mark(MarkerKind kind, double step, const std::string& text);
  std::string DescribeModel() const;
  std::string DescribeProgress() const;
  std::string DescribeResult() const;
  std::string DescribeProfile() const;

  nlohmann::ordered_json begin_;  // the newest run_begin
  struct {
    nlohmann::ordered_json evaluation, profile;
  } newest_;
  nlohmann::ordered_json end_;  // the run_end of the newest process; null while it works
  struct {
    double time_s = 0;
    std::optional<double> cost;
  } earlier_;  // the processes before the newest
  struct {
    double begin_s = 0, last_s = 0;  // times of its first record and its last one
    double own_s = 0;                // of the last that no later process may have added
    double cost = 0, cost_s = 0;     // what it said last that it cost, and when
  } process_;                        // the newest
  int64_t step_ = 0, tokens_seen_ = 0;
  struct TimedSum {
    double sum = 0, time_s = 0;
    double mean() const { return sum / time_s; }
    /// A mean over a time; skipped where it is not known.
    void Add(double mean, double mean_time_s);
  };
  /// Of the steps that have a record.
  struct {
    TimedSum tokens;
    TimedSum mfu, rank_wait_share;        // of steps that report them, each times its time
    std::map<int64_t, double> slowest_s;  // time of the steps in which a rank was the slowest
  } means_;
  BoundedSeries loss_, evaluation_loss_, learning_rate_, epoch_, tokens_per_s_, wait_percent_,
      rank_wait_percent_, cpu_cores_;
  struct {
    BoundedSeries resident, peak;
  } memory_;
  std::map<std::string, BoundedSeries> loss_terms_;  // by name
  std::vector<PlotMarker> markers_;
};

}  // namespace trainwright
