#include "lib/bench/bench_report.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "lib/base/units.h"
#include "lib/report/markup.h"
#include "lib/report/svg_plot.h"
#include "lib/report/table.h"

namespace trainwright {
namespace {

std::string Value(const std::string& metric, double value) {
  if (metric.ends_with("_bytes")) return FormatBytes(static_cast<uint64_t>(value));
  if (metric.ends_with("_s") && !metric.ends_with("_per_s")) {
    return value < 1 ? FormatFixed(1e3 * value, value < 0.1 ? 2 : 1) + " ms" : FormatFixed(value, 3) + " s";
  }
  return std::abs(value) >= 1000 ? FormatCount(value) : FormatFixed(value, 4);
}

std::string IntervalText(double low, double high) {
  return ChangeText(low) + " to " + ChangeText(high);
}

size_t IndexOf(const Measurement& measurement, const std::string& name) {
  const auto found = std::find(measurement.names.begin(), measurement.names.end(), name);
  return static_cast<size_t>(found - measurement.names.begin());
}

/// The measurement that a row comes from: its own for a stage, the common one for levers.
const Measurement& MeasurementOf(const BenchResult& result, size_t row) {
  return result.measurements[result.measurements.size() == 1 ? 0 : row];
}

std::vector<std::string> Cells(const BenchRow& row, const Comparison& comparison, bool named) {
  std::vector<std::string> cells;
  if (named) cells.push_back(row.name);
  for (const std::string& cell : {comparison.metric, Value(comparison.metric, comparison.before),
                                  Value(comparison.metric, comparison.after), ChangeText(comparison.ratio()),
                                  IntervalText(comparison.ratio_low(), comparison.ratio_high()),
                                  "+-" + FormatFixed(100 * std::expm1(comparison.noise_floor), 1) + " %",
                                  VerdictName(comparison.verdict, comparison.metric)}) {
    cells.push_back(cell);
  }
  return cells;
}

/// Several lines of text, between tags.
std::string EscapedLines(const std::string& text) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out += EscapeMarkup(line) + "\n";
  return out;
}

std::string Conclusion(const BenchRow& row) {
  const Comparison& decisive = row.comparisons.front();
  const std::string subject = row.name.empty() ? "after" : row.name;
  const std::string size = ChangeText(decisive.ratio()) + " " + decisive.metric + " (95 % interval " +
                           IntervalText(decisive.ratio_low(), decisive.ratio_high()) +
                           "; the same command against " + "itself: within " +
                           FormatFixed(100 * std::expm1(decisive.noise_floor), 1) + " %)";
  return subject + ": " + VerdictName(decisive.verdict, decisive.metric) + ", " + size;
}

}  // namespace

std::string DescribeBench(const BenchResult& result, const std::string& by) {
  const bool named = result.rows.size() > 1 || (!result.rows.empty() && !result.rows.front().name.empty());
  std::vector<std::string> header = {"metric",        "before", "after",  "change",
                                     "95 % interval", "A/A",    "verdict"};
  if (named) header.insert(header.begin(), "");
  Table table(header);
  for (const BenchRow& row : result.rows) {
    for (const Comparison& comparison : row.comparisons) table.AddRow(Cells(row, comparison, named));
  }
  std::string text = result.rows.empty() ? "" : table.ToString() + "\n";
  for (size_t i = 0; i < result.rows.size(); ++i) {
    const BenchRow& row = result.rows[i];
    text += Conclusion(row) + "\n";
    for (const std::string& warning : row.warnings) text += "  warning: " + warning + "\n";
  }
  size_t rounds = 0;
  double measured_s = 0;
  bool spent = false;
  for (const Measurement& measurement : result.measurements) {
    rounds += measurement.rounds.size();
    measured_s += measurement.measured_s;
    spent |= measurement.budget_spent;
  }
  text += std::to_string(rounds) + " rounds in " + FormatDuration(measured_s) + ", decided by " + by +
          (result.stopped == nullptr ? ""
           : StoppedBySignal(result) ? "; a signal stopped it"
                                     : "; a command that failed stopped it") +
          (spent ? "; the budget ended before the interval was as narrow as asked (--budget, --width)" : "") +
          "\n";
  return text;
}

std::string RenderBenchSvg(const BenchResult& result, size_t row_index) {
  const BenchRow& row = result.rows[row_index];
  const Measurement& measurement = MeasurementOf(result, row_index);
  const std::string& metric = row.comparisons.front().metric;
  const size_t before = IndexOf(measurement, row.before_name), after = IndexOf(measurement, row.after_name);
  PlotSeries ratios{.name = "after / before", .style = SeriesStyle::kPoints, .points = {}},
      control{.name = "control", .style = SeriesStyle::kFaint, .points = {}},
      first{.name = row.before_name, .style = SeriesStyle::kLine, .points = {}},
      second{.name = row.after_name, .style = SeriesStyle::kPoints, .points = {}};
  for (size_t i = 0; i < measurement.rounds.size(); ++i) {
    const Round& round = measurement.rounds[i];
    const double x = static_cast<double>(i + 1);
    const auto mean = [&](size_t variant) {
      return std::sqrt(round.runs[variant][0].at(metric) * round.runs[variant][1].at(metric));
    };
    ratios.points.push_back({x, 100 * (mean(after) / mean(before) - 1)});
    control.points.push_back({x, 100 * (mean(round.runs.size() - 1) / mean(0) - 1)});
    first.points.push_back({x, mean(before)});
    second.points.push_back({x, mean(after)});
  }
  PlotFigure figure;
  figure.title = row.name.empty() ? "before and after" : row.name;
  figure.subtitles = {Conclusion(row)};
  figure.x_label = "round";
  figure.x_low = 0;
  figure.x_high = static_cast<double>(measurement.rounds.size() + 1);
  figure.panels.push_back({.title = "change of " + metric, .unit = "%", .series = {control, ratios}});
  figure.panels.push_back({.title = metric, .series = {first, second}});
  return RenderSvg(figure);
}

std::string RenderBenchHtml(const BenchResult& result, const std::string& by) {
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>bench</title>\n"
      "<style>:root{color-scheme:light dark}body{font:15px sans-serif;max-width:60em;margin:2em "
      "auto;padding:0 1em}"
      "pre{overflow-x:auto}svg{max-width:100%;height:auto}</style></head><body>\n<h1>bench</h1>\n";
  const nlohmann::ordered_json& host = result.json.at("host");
  page += "<p>" + EscapeMarkup(result.json.at("measured_at").get<std::string>()) + ", " +
          EscapeMarkup(host.at("cpu").get<std::string>()) + ", " +
          std::to_string(host.at("processors").get<int>()) + " processors</p>\n<pre>" +
          EscapedLines(DescribeBench(result, by)) + "</pre>\n";
  for (size_t row = 0; row < result.rows.size(); ++row) page += RenderBenchSvg(result, row) + "\n";
  return page + "</body></html>\n";
}

}  // namespace trainwright
