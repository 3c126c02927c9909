#include "lib/run/html_report.h"

#include <algorithm>

#include "lib/base/units.h"
#include "lib/io/byte_sink.h"
#include "lib/report/markup.h"
#include "lib/report/svg_plot.h"

namespace trainwright {
namespace {

constexpr size_t kChartBuckets = 1000;  // about one a px
constexpr size_t kLeastPoints = 2;      // of a curve
constexpr size_t kMostWarnings = 200;

constexpr char kHead[] = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>)";
constexpr char kStyle[] = R"(</title>
<style>
:root { color-scheme: light dark }
body { font: 14px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; max-width: 960px;
       margin: 24px auto; padding: 0 16px; color: #1f2328; background: #ffffff }
h2 { font-size: 17px; margin: 28px 0 8px }
svg { width: 100%; height: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
td { padding: 2px 18px 2px 0; vertical-align: top; overflow-wrap: anywhere }
td:first-child { color: #57606a; white-space: nowrap }
@media (prefers-color-scheme: dark) {
body { color: #e8ecf0; background: #14181d }
td:first-child { color: #9aa4af }
}
</style></head><body>
)";

std::string Row(const std::string& name, const std::string& value) {
  return "<tr><td>" + EscapeMarkup(name) + "</td><td>" + EscapeMarkup(value) + "</td></tr>\n";
}

std::string TextOf(const nlohmann::ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string Facts(const RunReport& report) {
  const nlohmann::ordered_json& begin = report.begin();
  if (begin.is_null()) return "";
  std::string rows;
  for (const char* name : {"version", "device", "threads", "cpu_capability", "torch_build", "parameters",
                           "data_tokens", "data_documents", "data_sha256", "tokenizer_sha256"}) {
    if (begin.contains(name)) rows += Row(name, TextOf(begin[name]));
  }
  rows += Row("time", FormatDuration(report.time_s()));
  if (const auto cost = report.cost()) rows += Row("cost", FormatFixed(*cost, 2));
  std::string text = "<h2>The run</h2>\n<table>\n" + rows + "</table>\n";
  if (begin.contains("plan") && begin["plan"].is_object()) {
    text += "<h2>Its plan</h2>\n<table>\n";
    for (const auto& [name, value] : begin["plan"].items()) text += Row(name, TextOf(value));
    text += "</table>\n";
  }
  return text;
}

/// A line a rank: its machine and the most memory it took.
std::string Ranks(const RankRecords& ranks) {
  std::string rows;
  for (size_t rank = 0; rank < ranks.hosts.size(); ++rank) {
    std::string value = ranks.hosts[rank];
    const auto add = [&](const std::string& where, const std::vector<int64_t>& sizes) {
      if (rank < sizes.size()) value += where + FormatBytes(static_cast<uint64_t>(sizes[rank]));
    };
    add(", peak memory ", ranks.max_memory_bytes);
    add(", on its device ", ranks.max_device_bytes);
    rows += Row("rank " + std::to_string(rank), value);
  }
  return rows.empty() ? "" : "<h2>Its ranks</h2>\n<table>\n" + rows + "</table>\n";
}

std::string Warnings(const RunReport& report) {
  std::string items;
  size_t count = 0;
  for (const PlotMarker& marker : report.markers()) {
    if (marker.kind == MarkerKind::kNote || ++count > kMostWarnings) continue;
    items += "<li>" + EscapeMarkup(marker.text) + "</li>\n";
  }
  if (items.empty()) return "<h2>Warnings</h2>\n<p>None.</p>\n";
  return "<h2>Warnings</h2>\n<ul>\n" + items + "</ul>\n";
}

std::string LossFigure(const TrainingMetrics& metrics) {
  if (metrics.loss.size() < kLeastPoints) return "";
  const size_t window = SmoothingWindow(metrics.loss.size());
  const std::vector<double> means = MovingAverage(metrics.loss, window);
  BoundedSeries raw(kChartBuckets), smooth(kChartBuckets), evaluation(kChartBuckets), epoch(kChartBuckets);
  for (size_t i = 0; i < means.size(); ++i) {
    const auto x = static_cast<double>(metrics.step[i]);
    raw.Add(x, metrics.loss[i]);
    smooth.Add(x, means[i]);
    epoch.Add(x, metrics.epoch[i]);
  }
  for (size_t i = 0; i < metrics.eval_loss.size(); ++i) {
    evaluation.Add(static_cast<double>(metrics.eval_steps[i]), metrics.eval_loss[i]);
  }
  PlotPanel panel = {.title = "Loss", .unit = "nats a token"};
  panel.may_be_log = true;
  panel.series.push_back({"", SeriesStyle::kFaint, raw.Points()});
  panel.series.push_back({"mean of " + std::to_string(window), SeriesStyle::kLine, smooth.Points()});
  if (!evaluation.empty()) panel.series.push_back({"evaluation", SeriesStyle::kPoints, evaluation.Points()});
  PlotFigure figure;
  figure.title = "smoothed loss";
  figure.subtitles = {"moving average of " + std::to_string(window) + " step records, with the raw values"};
  figure.x_label = "optimizer step";
  const int64_t last_eval = metrics.eval_steps.empty() ? 0 : metrics.eval_steps.back();
  figure.x_high = static_cast<double>(std::max<int64_t>({metrics.step.back(), last_eval, 1}));
  figure.panels = {std::move(panel)};
  figure.second_scale = {"epoch", epoch.Points()};
  return RenderSvg(figure);
}

}  // namespace

std::string RenderHtmlReport(const RunReport& report, const TrainingMetrics& metrics) {
  const PlotFigure figure = report.Figure();
  return kHead + EscapeMarkup(figure.title) + kStyle + RenderSvg(figure) + LossFigure(metrics) +
         Facts(report) + Ranks(report.ranks()) + Warnings(report) + "</body></html>\n";
}

std::string WriteRunReports(const std::string& run_path) {
  RunReport report;
  report.AddFile(run_path + "/metrics.jsonl");
  const TrainingMetrics metrics = ReadTrainingMetrics(run_path + "/metrics.jsonl");
  const std::string path = run_path + "/report.html";
  WriteFileAtomically(run_path + "/report.svg", AsBytes(report.Svg()));
  WriteFileAtomically(run_path + "/training_metrics.json",
                      AsBytes(EncodeTrainingMetrics(metrics).dump() + "\n"));
  WriteFileAtomically(path, AsBytes(RenderHtmlReport(report, metrics)));
  return path;
}

}  // namespace trainwright
