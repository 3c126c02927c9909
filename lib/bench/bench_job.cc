#include "lib/bench/bench_job.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "lib/base/error.h"
#include "lib/base/host.h"
#include "lib/base/log.h"
#include "lib/base/units.h"
#include "lib/base/utc_time.h"
#include "lib/base/version.h"

namespace trainwright {
namespace {

constexpr char kSchema[] = "trainwright.bench/1";

/// What every report has of a run.
constexpr std::array<const char*, 4> kOwnMetrics = {"wall_s", "cpu_s", "max_memory_bytes", "written_bytes"};

/// Before anything is measured.
void RequireMetric(const std::string& by, const MetricSource& source) {
  // Known of a run, too.
  for (const char* other : {"user_s", "system_s", "read_bytes", "exit_status"}) {
    if (by == other) return;
  }
  const bool known = std::find(kOwnMetrics.begin(), kOwnMetrics.end(), by) != kOwnMetrics.end() ||
                     std::find(source.names.begin(), source.names.end(), by) != source.names.end();
  if (known) return;
  throw Error(ErrorCode::kBadInput, "--by", "'" + by + "' is not one of the metrics", "",
              "wall_s, cpu_s, max_memory_bytes, written_bytes, or a field that --metric names");
}

/// The deciding metric first, then what every run has, then what the command reports.
std::vector<std::string> MetricsOf(const BenchSettings& settings, const MetricSource& source) {
  std::vector<std::string> metrics = {settings.by};
  const auto add = [&](const std::string& metric) {
    if (std::find(metrics.begin(), metrics.end(), metric) == metrics.end()) metrics.push_back(metric);
  };
  for (const char* metric : kOwnMetrics) add(metric);
  for (const std::string& metric : source.names) add(metric);
  return metrics;
}

BenchRow RowOf(const BenchSettings& settings, const Measurement& measurement, size_t before, size_t after,
               const std::vector<std::string>& metrics, const HostFacts& host) {
  BenchRow row;
  row.before_name = measurement.names[before];
  row.after_name = measurement.names[after];
  for (const std::string& metric : metrics) {
    if (auto comparison = Compare(measurement, before, after, metric, settings.comparison)) {
      row.comparisons.push_back(std::move(*comparison));
    } else if (metric == settings.by) {
      throw Error(ErrorCode::kBadInput, "--by", "'" + metric + "' is not a positive number in every run", "",
                  "see --metric for numbers that the command reports itself");
    }
  }
  row.warnings = WarningsOf(measurement, row.comparisons.front(), host.load_1min, host.processors);
  if (!measurement.outputs.empty()) {
    const VariantOutput& first = measurement.outputs[before];
    row.output_repeats = first.sha256 == measurement.outputs.back().sha256 || before != 0;
    row.outputs_equal = first.sha256 == measurement.outputs[after].sha256;
    if (!row.output_repeats) {
      row.warnings.push_back("the output of '" + row.before_name +
                             "' changes from run to run: it cannot be compared");
    } else if (!*row.outputs_equal) {
      row.warnings.push_back("the outputs differ: " + std::to_string(first.size_bytes) + " bytes before, " +
                             std::to_string(measurement.outputs[after].size_bytes) +
                             " after, or of other content");
    }
    if (first.exit_status != measurement.outputs[after].exit_status) {
      row.warnings.push_back("the exit statuses differ: " + std::to_string(first.exit_status) + " and " +
                             std::to_string(measurement.outputs[after].exit_status));
    }
  }
  return row;
}

nlohmann::ordered_json MeasurementJson(const Measurement& measurement) {
  nlohmann::ordered_json rounds = nlohmann::ordered_json::array(), outputs = nlohmann::ordered_json::array();
  for (const Round& round : measurement.rounds) rounds.push_back(round.runs);
  for (const VariantOutput& output : measurement.outputs) {
    outputs.push_back(
        {{"sha256", output.sha256}, {"size_bytes", output.size_bytes}, {"exit_status", output.exit_status}});
  }
  return {{"variants", measurement.names},
          {"commands", measurement.commands},
          {"measured_s", measurement.measured_s},
          {"budget_spent", measurement.budget_spent},
          {"outputs", outputs},
          {"rounds", rounds}};
}

nlohmann::ordered_json RowJson(const BenchRow& row) {
  nlohmann::ordered_json comparisons = nlohmann::ordered_json::array();
  for (const Comparison& comparison : row.comparisons) comparisons.push_back(ToJson(comparison));
  return {{"name", row.name},
          {"before", row.before_name},
          {"after", row.after_name},
          {"verdict", VerdictName(row.comparisons.front().verdict, row.comparisons.front().metric)},
          {"comparisons", comparisons},
          {"outputs_equal",
           row.outputs_equal ? nlohmann::ordered_json(*row.outputs_equal) : nlohmann::ordered_json(nullptr)},
          {"output_repeats", row.output_repeats},
          {"warnings", row.warnings}};
}

/// Measures until the deciding metric of every variant is known closely enough.
Measurement MeasureClosely(const BenchSettings& settings, const std::vector<Variant>& variants,
                           const MeasurementOptions& options, const std::string& label) {
  Progress progress(settings.progress, label, 0, "rounds", /*plain_lines=*/true);
  const double limit = std::log1p(settings.interval_width);
  return Measure(variants, options, [&](const Measurement& so_far) {
    progress.Update(so_far.rounds.size());
    for (size_t after = std::min<size_t>(1, variants.size() - 1); after < variants.size(); ++after) {
      const auto comparison = Compare(so_far, 0, after, settings.by, settings.comparison);
      if (!comparison || comparison->log_ratio.interval.half_width() > limit ||
          comparison->control.interval.half_width() > limit) {
        return false;
      }
    }
    return true;
  });
}

/// Which variants of an ablation are compared: each with the base, or with the one before it.
std::vector<std::pair<size_t, size_t>> AblationPairs(size_t variants, AblationMode mode) {
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t after = 1; after < variants; ++after) {
    pairs.emplace_back(mode == AblationMode::kCumulative ? after - 1 : 0, after);
  }
  if (mode == AblationMode::kCumulative && variants > 2) pairs.emplace_back(0, variants - 1);
  return pairs;
}

}  // namespace

int ExitStatusOf(const std::vector<BenchRow>& rows, const std::optional<double>& max_regression) {
  bool undecided = false;
  for (const BenchRow& row : rows) {
    const Comparison& decisive = row.comparisons.front();
    if (!max_regression) {
      if (decisive.verdict == Verdict::kSlower) return static_cast<int>(ErrorCode::kNo);
      undecided |= decisive.verdict == Verdict::kUndecided;
      continue;
    }
    const double sign = HigherIsBetter(decisive.metric) ? -1 : 1;
    const double limit = std::log1p(*max_regression);
    const double worst = std::max(sign * decisive.log_ratio.interval.low,
                                  sign * decisive.log_ratio.interval.high),
                 best = std::min(sign * decisive.log_ratio.interval.low,
                                 sign * decisive.log_ratio.interval.high);
    if (best > limit) return static_cast<int>(ErrorCode::kNo);
    undecided |= worst > limit;
  }
  return undecided ? static_cast<int>(ErrorCode::kUndecided) : 0;
}

BenchResult RunBench(const BenchSettings& settings) {
  const HostFacts host = ReadHostFacts();
  BenchResult result;
  MeasurementOptions options = settings.measurement;
  options.compare_output = settings.output_check != OutputCheck::kOff;
  options.metrics = settings.metrics;
  const auto add_row = [&](const std::string& name, const Measurement& measurement, size_t before,
                           size_t after) {
    result.rows.push_back(
        RowOf(settings, measurement, before, after, MetricsOf(settings, options.metrics), host));
    result.rows.back().name = name;
  };
  if (settings.stages_file.empty()) {
    RequireMetric(settings.by, options.metrics);
    const std::vector<Variant> variants = {{"before", settings.before, settings.prepare},
                                           {"after", settings.after, settings.prepare}};
    result.measurements.push_back(MeasureClosely(settings, variants, options, "measuring"));
    add_row("", result.measurements.back(), 0, 1);
  } else {
    const PlanFile plan = ReadPlanFile(settings.stages_file);
    if (!plan.metrics.names.empty()) options.metrics = plan.metrics;
    RequireMetric(settings.by, options.metrics);
    if (plan.base.empty() == settings.ablation.has_value()) {
      throw Error(ErrorCode::kUsage, settings.stages_file,
                  plan.base.empty() ? "has stages and no levers to ablate" : "has levers and no stages", "",
                  plan.base.empty() ? "leave out --ablate" : "add --ablate one-at-a-time, or cumulative");
    }
    for (const Stage& stage : plan.stages) {
      result.measurements.push_back(
          MeasureClosely(settings, {stage.before, stage.after}, options, stage.name));
      add_row(stage.name, result.measurements.back(), 0, 1);
    }
    if (settings.ablation) {
      const std::vector<Variant> variants = AblationVariants(plan, *settings.ablation);
      result.measurements.push_back(MeasureClosely(settings, variants, options, "measuring"));
      for (const auto& [before, after] : AblationPairs(variants.size(), *settings.ablation)) {
        const bool whole = *settings.ablation == AblationMode::kCumulative && before == 0 && after > 1;
        add_row(whole ? "all levers" : variants[after].name, result.measurements.back(), before, after);
      }
    }
    std::vector<Comparison*> decisive;
    for (BenchRow& row : result.rows) decisive.push_back(&row.comparisons.front());
    CorrectTogether(decisive);
  }

  result.exit_status = ExitStatusOf(result.rows, settings.max_regression);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array(),
                         measurements = nlohmann::ordered_json::array();
  for (const BenchRow& row : result.rows) {
    rows.push_back(RowJson(row));
    const bool differs = row.outputs_equal && row.output_repeats && !*row.outputs_equal;
    if (differs && settings.output_check == OutputCheck::kFail) {
      result.exit_status = static_cast<int>(ErrorCode::kNo);
    }
  }
  for (const Measurement& measurement : result.measurements)
    measurements.push_back(MeasurementJson(measurement));
  result.json = {{"schema", kSchema},
                 {"version", TRAINWRIGHT_VERSION},
                 {"measured_at", Rfc3339Now()},
                 {"host",
                  {{"name", host.name},
                   {"cpu", host.cpu},
                   {"processors", host.processors},
                   {"memory_bytes", host.memory_bytes},
                   {"kernel", host.kernel},
                   {"load_1min", host.load_1min}}},
                 {"by", settings.by},
                 {"same_within", settings.comparison.same_within},
                 {"seed", settings.measurement.seed},
                 {"exit_status", result.exit_status},
                 {"results", rows},
                 {"measurements", measurements}};
  return result;
}

}  // namespace trainwright
