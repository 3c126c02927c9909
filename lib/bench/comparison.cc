#include "lib/bench/comparison.h"

#include <algorithm>
#include <cmath>

#include "lib/base/units.h"

namespace trainwright {
namespace {

constexpr double kSignificance = 0.05;
constexpr double kMuchCorrelation = 0.5;
constexpr size_t kFewestRoundsForDrift = 6;

std::vector<double> ValuesOf(const std::vector<Sample>& runs, const std::string& metric) {
  std::vector<double> values;
  for (const Sample& run : runs) {
    const auto found = run.find(metric);
    if (found == run.end() || !std::isfinite(found->second) || found->second <= 0) return {};
    values.push_back(found->second);
  }
  return values;
}

double MeanLog(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return sum / static_cast<double>(values.size());
}

struct Series {
  std::vector<double> before, after, log_ratios, control_log_ratios;
};

std::optional<Series> SeriesOf(const Measurement& measurement, size_t before, size_t after,
                               const std::string& metric) {
  Series series;
  for (const Round& round : measurement.rounds) {
    const std::vector<double> first = ValuesOf(round.runs[before], metric),
                              second = ValuesOf(round.runs[after], metric),
                              control = ValuesOf(round.runs.back(), metric),
                              controlled = ValuesOf(round.runs.front(), metric);
    if (first.empty() || second.empty() || control.empty() || controlled.empty()) return std::nullopt;
    series.before.insert(series.before.end(), first.begin(), first.end());
    series.after.insert(series.after.end(), second.begin(), second.end());
    series.log_ratios.push_back(MeanLog(second) - MeanLog(first));
    series.control_log_ratios.push_back(MeanLog(control) - MeanLog(controlled));
  }
  if (series.log_ratios.size() < 2) return std::nullopt;
  return series;
}

}  // namespace

std::string ChangeText(double ratio) {
  const double percent = 100 * (ratio - 1);
  return (percent >= 0 ? "+" : "") + FormatFixed(percent, 1) + " %";
}

std::string VerdictName(Verdict verdict, const std::string& metric) {
  const std::string field = FieldOfMetric(metric);
  const bool is_time = field == "wall_s" || field == "cpu_s" || field == "user_s" || field == "system_s" ||
                       field == "step_time_s" || HigherIsBetter(metric);
  switch (verdict) {
    case Verdict::kFaster:
      return is_time ? "faster" : "better";
    case Verdict::kSlower:
      return is_time ? "slower" : "worse";
    case Verdict::kSame:
      return "same";
    case Verdict::kUndecided:
      return "undecided";
  }
  return "";
}

bool HigherIsBetter(const std::string& metric) {
  const std::string field = FieldOfMetric(metric);
  return field.ends_with("_per_s") || field == "mfu" || field == "gpu_util";
}

double Comparison::ratio() const {
  return std::exp(log_ratio.median);
}
double Comparison::ratio_low() const {
  return std::exp(log_ratio.interval.low);
}
double Comparison::ratio_high() const {
  return std::exp(log_ratio.interval.high);
}

std::optional<Comparison> Compare(const Measurement& measurement, size_t before, size_t after,
                                  const std::string& metric, const ComparisonOptions& options) {
  const std::optional<Series> series = SeriesOf(measurement, before, after, metric);
  if (!series) return std::nullopt;
  Comparison result;
  result.metric = metric;
  result.before = Median(series->before);
  result.after = Median(series->after);
  result.log_ratio = EstimateMedian(series->log_ratios, options.seed);
  result.control = EstimateMedian(series->control_log_ratios, options.seed);
  result.noise_floor =
      std::max(std::abs(result.control.interval.low), std::abs(result.control.interval.high));
  result.p_adjusted = result.log_ratio.p_value;
  result.outlier_rounds = OutlierIndices(series->log_ratios);
  if (!result.outlier_rounds.empty() && series->log_ratios.size() >= result.outlier_rounds.size() + 3) {
    std::vector<double> kept;
    for (size_t i = 0; i < series->log_ratios.size(); ++i) {
      if (!std::binary_search(result.outlier_rounds.begin(), result.outlier_rounds.end(), i)) {
        kept.push_back(series->log_ratios[i]);
      }
    }
    result.without_outliers = EstimateMedian(kept, options.seed);
  }
  const Interval& interval = result.log_ratio.interval;
  const double band = std::log1p(options.same_within);
  if (interval.low >= -band && interval.high <= band) {
    result.verdict = Verdict::kSame;
  } else if (!interval.contains(0) && std::abs(result.log_ratio.median) > result.noise_floor) {
    const bool more = result.log_ratio.median > 0;
    result.verdict = more == HigherIsBetter(metric) ? Verdict::kFaster : Verdict::kSlower;
  }
  return result;
}

void CorrectTogether(std::vector<Comparison*> comparisons) {
  std::vector<double> p_values;
  for (const Comparison* comparison : comparisons) p_values.push_back(comparison->log_ratio.p_value);
  const std::vector<double> adjusted = HolmAdjusted(p_values);
  for (size_t i = 0; i < comparisons.size(); ++i) {
    Comparison& comparison = *comparisons[i];
    comparison.p_adjusted = adjusted[i];
    const bool different = comparison.verdict == Verdict::kFaster || comparison.verdict == Verdict::kSlower;
    if (different && adjusted[i] >= kSignificance) comparison.verdict = Verdict::kUndecided;
  }
}

std::vector<std::string> WarningsOf(const Measurement& measurement, const Comparison& comparison,
                                    double load_at_start, int cpus) {
  std::vector<std::string> warnings;
  if (load_at_start > 0.5 * cpus) {
    warnings.push_back("the machine was busy: load " + FormatFixed(load_at_start, 1) + " on " +
                       std::to_string(cpus) + " processors");
  }
  if (comparison.log_ratio.autocorrelation > kMuchCorrelation) {
    warnings.push_back("neighbouring rounds resemble each other (correlation " +
                       FormatFixed(comparison.log_ratio.autocorrelation, 2) +
                       "): the machine changed its pace while measuring");
  }
  if (!comparison.control.interval.contains(0)) {
    warnings.push_back("the control differs from itself (" +
                       ChangeText(std::exp(comparison.control.interval.low)) + " to " +
                       ChangeText(std::exp(comparison.control.interval.high)) +
                       "): look at the machine before believing this");
  }
  const size_t third = measurement.rounds.size() / 3;
  if (measurement.rounds.size() >= kFewestRoundsForDrift) {
    std::vector<double> early, late;
    for (size_t i = 0; i < third; ++i) {
      early.push_back(MeanLog(ValuesOf(measurement.rounds[i].runs.front(), comparison.metric)));
      late.push_back(MeanLog(
          ValuesOf(measurement.rounds[measurement.rounds.size() - 1 - i].runs.front(), comparison.metric)));
    }
    const double drift = Median(late) - Median(early);
    if (std::abs(drift) > std::max(0.05, 2 * comparison.noise_floor)) {
      warnings.push_back("the runs drifted by " + ChangeText(std::exp(drift)) +
                         " from the first third to the last; interleaving takes it out of the ratios");
    }
  }
  if (comparison.without_outliers) {
    warnings.push_back(std::to_string(comparison.outlier_rounds.size()) +
                       " of the rounds lie far out; without them the difference is " +
                       ChangeText(std::exp(comparison.without_outliers->median)) + " (" +
                       ChangeText(std::exp(comparison.without_outliers->interval.low)) + " to " +
                       ChangeText(std::exp(comparison.without_outliers->interval.high)) + ")");
  }
  return warnings;
}

namespace {

nlohmann::ordered_json EstimateJson(const MedianEstimate& estimate) {
  return {{"ratio", std::exp(estimate.median)},
          {"ratio_low", std::exp(estimate.interval.low)},
          {"ratio_high", std::exp(estimate.interval.high)},
          {"p_value", estimate.p_value},
          {"block_length", estimate.block_length},
          {"autocorrelation", estimate.autocorrelation}};
}

}  // namespace

nlohmann::ordered_json ToJson(const Comparison& comparison) {
  nlohmann::ordered_json json = {{"metric", comparison.metric},
                                 {"before", comparison.before},
                                 {"after", comparison.after},
                                 {"verdict", VerdictName(comparison.verdict, comparison.metric)},
                                 {"higher_is_better", HigherIsBetter(comparison.metric)}};
  json.update(EstimateJson(comparison.log_ratio));
  json["p_adjusted"] = comparison.p_adjusted;
  json["control"] = EstimateJson(comparison.control);
  json["noise_floor"] = std::expm1(comparison.noise_floor);
  json["outlier_rounds"] = comparison.outlier_rounds;
  json["without_outliers"] = comparison.without_outliers ? EstimateJson(*comparison.without_outliers)
                                                         : nlohmann::ordered_json(nullptr);
  return json;
}

}  // namespace trainwright
