#include "lib/run/run_report.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/units.h"
#include "lib/profile/step_profile.h"
#include "lib/run/metrics_log.h"

namespace trainwright {
namespace {

using nlohmann::ordered_json;

constexpr size_t kWideBuckets = 1000, kBuckets = 500;  // about one a px of the panel
constexpr size_t kEvaluationBuckets = 400;
constexpr size_t kMostMarkers = 200;
constexpr size_t kMostLossTerms = 8;
constexpr double kMostSlowestRank = 1 << 20;  // that one may be the slowest of
constexpr uint64_t kFewSteps = 20;            // too few to smooth
constexpr double kSmoothingShare = 0.02;      // of the whole curve
constexpr double kLeastSmoothing = 5;
constexpr double kLastWholeStep = 0x1p53, kLastWholeToken = 0x1p53;  // whole numbers up to here are exact

/// Of a record of an evaluation, beside what its objective measured.
const std::set<std::string> kEvaluationFields = {"schema", "type",        "time_unix_s",
                                                 "step",   "tokens_seen", "loss_nats",
                                                 "tokens", "documents",   "eval_time_s"};

/// A record's number; NaN where it is missing or null.
double Number(const ordered_json& record, const char* name) {
  const auto field = record.is_null() ? record.end() : record.find(name);
  return field != record.end() && field->is_number() ? field->get<double>() : NAN;
}

/// A record's object; an empty one where it is missing.
ordered_json ObjectOf(const ordered_json& record, const char* name) {
  const auto field = record.find(name);
  return field != record.end() && field->is_object() ? *field : ordered_json::object();
}

/// The first of the names that a record has as a number; NaN: none.
double FirstNumber(const ordered_json& record, const std::vector<const char*>& names) {
  for (const char* name : names) {
    if (const double number = Number(record, name); !std::isnan(number)) return number;
  }
  return NAN;
}

std::string TextOf(const ordered_json& record, const char* name) {
  const auto field = record.find(name);
  return field != record.end() && field->is_string() ? field->get<std::string>() : "";
}

std::string Whole(double value) {
  std::string digits = FormatFixed(value, 0);
  for (size_t end = digits.size(); end > 3; end -= 3) digits.insert(end - 3, ",");
  return digits;
}

/// The series as measured, pale behind its smooth course; alone where it is short.
std::vector<PlotSeries> Smooth(const BoundedSeries& series, const std::string& name) {
  std::vector<PlotPoint> points = series.Points();
  if (series.count() < kFewSteps) return {{name, SeriesStyle::kLine, std::move(points)}};
  const double buckets = static_cast<double>(series.buckets());
  return {{"", SeriesStyle::kFaint, std::move(points)},
          {name, SeriesStyle::kLine, series.Smoothed(std::max(kLeastSmoothing, kSmoothingShare * buckets))}};
}

}  // namespace

RunReport::RunReport()
    : loss_(kWideBuckets),
      evaluation_loss_(kEvaluationBuckets),
      learning_rate_(kBuckets),
      epoch_(kBuckets),
      tokens_per_s_(kBuckets),
      wait_percent_(kBuckets),
      rank_wait_percent_(kBuckets),
      cpu_cores_(kBuckets),
      memory_{BoundedSeries(kBuckets), BoundedSeries(kBuckets)} {}

void RunReport::TimedSum::Add(double mean, double mean_time_s) {
  if (!std::isfinite(mean)) return;
  sum += mean * mean_time_s;
  time_s += mean_time_s;
}

void RunReport::Mark(MarkerKind kind, double step, const std::string& text) {
  if (markers_.size() == kMostMarkers) {
    // Every other note or warning goes; what ended a run stays.
    std::vector<PlotMarker> kept;
    for (size_t i = 0; i < markers_.size(); ++i) {
      if (i % 2 == 0 || markers_[i].kind == MarkerKind::kError) kept.push_back(std::move(markers_[i]));
    }
    markers_ = std::move(kept);
  }
  markers_.push_back({step, kind, "step " + Whole(step) + ": " + text});
}

void RunReport::Add(const ordered_json& record) {
  const std::string type = TextOf(record, "type");
  const double step = Number(record, "step"), time_s = Number(record, "time_unix_s");
  if (!(step >= 0 && step <= kLastWholeStep)) return;
  if (type == "run_begin") {
    if (!begin_.is_null()) {
      Mark(MarkerKind::kNote, step, "resumed");
      earlier_ = {this->time_s(), cost()};
    } else if (step == 0) {
      epoch_.Add(0, 0);
    }
    begin_ = record;
    process_ = {.begin_s = time_s, .last_s = time_s, .own_s = time_s, .cost_s = time_s};
    end_ = nullptr;
  } else if (type == "step") {
    const double step_time_s = Number(record, "step_time_s");
    means_.tokens.sum += Number(record, "tokens");
    means_.tokens.time_s += step_time_s;
    means_.mfu.Add(Number(record, "mfu"), step_time_s);
    const double rank_wait_share = Number(record, "rank_wait_share");
    means_.rank_wait_share.Add(rank_wait_share, step_time_s);
    rank_wait_percent_.Add(step, 100 * rank_wait_share);
    if (const double slowest = Number(record, "slowest_rank"); slowest >= 0 && slowest < kMostSlowestRank) {
      means_.slowest_s[static_cast<int64_t>(slowest)] += step_time_s;
    }
    loss_.Add(step, Number(record, "loss_nats"));
    const ordered_json terms = ObjectOf(record, "loss_terms");
    for (const auto& [name, mean] : terms.items()) {
      auto series = loss_terms_.find(name);
      if (series == loss_terms_.end() && loss_terms_.size() < kMostLossTerms) {
        series = loss_terms_.emplace(name, kWideBuckets).first;
      }
      if (series != loss_terms_.end()) series->second.Add(step, mean.is_number() ? mean.get<double>() : NAN);
    }
    learning_rate_.Add(step, Number(record, "lr"));
    epoch_.Add(step, Number(record, "epoch"));
    tokens_per_s_.Add(step, Number(record, "tokens_per_s"));
    memory_.peak.Add(step, Number(record, "max_memory_bytes") / 0x1p30);
    memory_.resident.Add(step, Number(record, "resident_bytes") / 0x1p30);
    cpu_cores_.Add(step, Number(record, "cpu_cores"));
    wait_percent_.Add(step, 100 * Number(record, "data_wait_s") / Number(record, "step_time_s"));
  } else if (type == "eval") {
    evaluation_loss_.Add(step, Number(record, "loss_nats"));
    newest_.evaluation = record;
  } else if (type == "profile") {
    newest_.profile = record;
  } else if (type == "warning") {
    Mark(MarkerKind::kWarning, step, TextOf(record, "message"));
  } else if (type == "run_end") {
    end_ = record;
    const std::string reason = TextOf(record, "reason");
    if (Number(record, "exit_status") != 0 && reason != "signal") Mark(MarkerKind::kError, step, reason);
  }
  step_ = std::max(step_, static_cast<int64_t>(step));
  const double tokens_seen = Number(record, "tokens_seen");
  if (tokens_seen >= 0 && tokens_seen <= kLastWholeToken) tokens_seen_ = static_cast<int64_t>(tokens_seen);
  if (const double told = Number(record, "cost"); type != "run_begin" && told >= 0) {
    process_.cost = told;
    process_.cost_s = time_s;
  }
  process_.last_s = time_s;
  if (type != "checkpoint" && type != "copy") process_.own_s = time_s;
}

void RunReport::AddFile(const std::string& metrics_path) {
  ForEachMetricsRecord(metrics_path, [&](const ordered_json& record) { Add(record); });
}

std::string RunReport::DescribeModel() const {
  const ordered_json model = ObjectOf(begin_, "model");
  std::string text = TextOf(model, "model_type");
  // Some families have other names for them, as transformers does.
  const double layers = FirstNumber(model, {"num_hidden_layers", "n_layer"});
  const double width = FirstNumber(model, {"hidden_size", "n_embd"});
  const double vocabulary = Number(model, "vocab_size");
  if (!std::isnan(layers) && !std::isnan(width)) text += ", " + Whole(layers) + " layers of " + Whole(width);
  if (!std::isnan(vocabulary)) text += ", vocabulary of " + Whole(vocabulary);
  text += ", " + FormatCount(Number(begin_, "parameters")) + " parameters; " +
          TextOf(ObjectOf(begin_, "plan"), "precision") + " on " + TextOf(begin_, "device");
  if (TextOf(begin_, "device") == "cpu") {
    const double threads = Number(begin_, "threads");
    text += " with " + Whole(threads) + (threads == 1 ? " thread" : " threads");
  }
  return text;
}

std::string RunReport::DescribeProgress() const {
  std::string text =
      Whole(static_cast<double>(step_)) + " of " + Whole(Number(ObjectOf(begin_, "plan"), "total_steps")) +
      " steps, " + FormatCount(static_cast<double>(tokens_seen_)) + " tokens in " + FormatDuration(time_s());
  if (means_.tokens.time_s > 0) text += ", " + Whole(means_.tokens.mean()) + " tokens/s";
  if (means_.mfu.time_s > 0) text += ", " + FormatFixed(100 * means_.mfu.mean(), 1) + " % MFU";
  if (means_.rank_wait_share.time_s > 0 && !means_.slowest_s.empty()) {
    const auto slowest = std::max_element(means_.slowest_s.begin(), means_.slowest_s.end(),
                                          [](const auto& a, const auto& b) { return a.second < b.second; });
    text += ", " + FormatFixed(100 * means_.rank_wait_share.mean(), 1) + " % waiting for " +
            ranks().NameOf(slowest->first);
  }
  if (const auto spent = cost()) text += ", cost " + FormatFixed(*spent, 2);
  if (end_.is_null()) return text;
  const std::string reason = TextOf(end_, "reason");
  return text + "; " + (reason == "complete" ? reason : "ended: " + reason);
}

std::string RunReport::DescribeResult() const {
  if (newest_.evaluation.is_null()) return "";
  std::string text = "evaluation at step " + Whole(Number(newest_.evaluation, "step")) + ": " +
                     FormatFixed(Number(newest_.evaluation, "loss_nats"), 4) + " nats a token";
  for (const auto& [name, value] : newest_.evaluation.items()) {
    if (kEvaluationFields.contains(name) || !value.is_number()) continue;
    std::string words = name;
    std::replace(words.begin(), words.end(), '_', ' ');
    // A ratio's name is its unit: "1.2500 bits per byte"; another goes before its number.
    const bool is_unit = name.find("_per_") != std::string::npos;
    text += ", " + (is_unit ? FormatFixed(value.get<double>(), 4) + " " + words
                            : words + " " + FormatFixed(value.get<double>(), 2));
  }
  return text;
}

std::string RunReport::DescribeProfile() const {
  if (newest_.profile.is_null()) return "";
  const std::string shares = DescribeProfileRecord(newest_.profile);
  if (shares.empty()) return "";
  return "time of steps " + Whole(Number(newest_.profile, "first_step")) + " to " +
         Whole(Number(newest_.profile, "last_step")) + ": " + shares;
}

PlotFigure RunReport::Figure() const {
  PlotFigure figure;
  figure.title = "training run";
  if (!begin_.is_null()) {
    const std::string name = std::filesystem::path(TextOf(begin_, "run")).filename().string();
    if (!name.empty()) figure.title = name;
    figure.subtitles = {DescribeModel(), DescribeProgress()};
  }
  for (const std::string& line : {DescribeResult(), DescribeProfile(), ranks().DescribeMemory()}) {
    if (!line.empty()) figure.subtitles.push_back(line);
  }
  figure.x_label = "optimizer step";
  figure.x_high = static_cast<double>(std::max<int64_t>(step_, 1));
  figure.markers = markers_;
  figure.second_scale = {"epoch", epoch_.Points()};

  PlotPanel loss = {.title = "Loss", .unit = "nats a token", .series = Smooth(loss_, "training")};
  loss.may_be_log = true;
  for (const auto& [name, series] : loss_terms_) {
    loss.series.push_back({name, SeriesStyle::kLine, series.Points()});
  }
  if (!evaluation_loss_.empty()) {
    loss.series.push_back({"evaluation", SeriesStyle::kPoints, evaluation_loss_.Points()});
  }
  figure.panels.push_back(std::move(loss));
  figure.panels.push_back({.title = "Learning rate",
                           .series = {{"", SeriesStyle::kLine, learning_rate_.Points()}},
                           .from_zero = true});
  figure.panels.push_back(
      {.title = "Throughput", .unit = "tokens/s", .series = Smooth(tokens_per_s_, "now"), .from_zero = true});
  PlotPanel memory = {.title = "Memory", .unit = "GiB", .from_zero = true};
  const BoundedSeries& resident = memory_.resident;
  const SeriesStyle peak_style = resident.empty() ? SeriesStyle::kLine : SeriesStyle::kFaint;
  memory.series.push_back({"peak", peak_style, memory_.peak.Points()});
  if (!resident.empty()) memory.series.push_back({"resident", SeriesStyle::kLine, resident.Points()});
  figure.panels.push_back(std::move(memory));
  figure.panels.push_back({.title = "Waiting for data",
                           .unit = "% of step time",
                           .series = Smooth(wait_percent_, "now"),
                           .from_zero = true,
                           .least_high = 1});
  if (!rank_wait_percent_.empty()) {
    figure.panels.push_back({.title = "Waiting for other ranks",
                             .unit = "% of all ranks' time",
                             .series = Smooth(rank_wait_percent_, "now"),
                             .from_zero = true,
                             .least_high = 1});
  }
  if (!cpu_cores_.empty()) {
    figure.panels.push_back({.title = "Processor",
                             .unit = "cores busy",
                             .series = Smooth(cpu_cores_, "now"),
                             .from_zero = true,
                             .least_high = 1});
  }
  return figure;
}

std::optional<double> RunReport::cost() const {
  const double cost_per_hour = Number(begin_, "cost_per_hour");
  if (!std::isfinite(cost_per_hour)) return earlier_.cost;
  const double untold_s = std::max(0.0, process_.own_s - process_.cost_s);
  return earlier_.cost.value_or(0) + process_.cost + cost_per_hour * untold_s / 3600;
}

}  // namespace trainwright
