#include "lib/bench/bench_job.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/exception.h"
#include "lib/base/host.h"
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
  throw Error(ErrorCode::kUsage, "--by", "'" + by + "' is not one of the metrics", "",
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

/// Of numbers that the command reports and that cannot be compared.
void WarnOfUncompared(const std::string& metric, const Measurement& measurement, size_t before, size_t after,
                      std::vector<std::string>* warnings) {
  size_t runs = 0, not_finite = 0;
  for (const Round& round : measurement.rounds) {
    for (const size_t variant : {before, after}) {
      for (const Sample& run : round.runs[variant]) {
        ++runs;
        const auto found = run.find(metric);
        if (found != run.end() && !std::isfinite(found->second)) ++not_finite;
      }
    }
  }
  const std::string why = not_finite > 0 ? "no finite number in " + std::to_string(not_finite) + " of " +
                                               std::to_string(runs) + " runs"
                                         : "not above 0 in every run";
  warnings->push_back("'" + metric + "' is not compared: it is " + why);
}

/// Compares the standard outputs of two variants. Whether outputs repeat at all is known of the first one
/// alone, which is the control, too: where its own change from run to run, those of its levers prove nothing.
void CompareOutputs(const Measurement& measurement, size_t before, size_t after, BenchRow* row) {
  if (measurement.outputs.empty()) return;
  const VariantOutput& first = measurement.outputs[before];
  row->output_repeats = measurement.outputs.front().sha256 == measurement.outputs.back().sha256;
  row->outputs_equal = first.sha256 == measurement.outputs[after].sha256;
  if (!row->output_repeats) {
    row->warnings.push_back("the output of '" + measurement.names.front() +
                            "' changes from run to run: it cannot be compared");
  } else if (!*row->outputs_equal) {
    row->warnings.push_back("the outputs differ: " + std::to_string(first.size_bytes) + " bytes before, " +
                            std::to_string(measurement.outputs[after].size_bytes) +
                            " after, or of other content");
  }
  if (first.exit_status != measurement.outputs[after].exit_status) {
    row->warnings.push_back("the exit statuses differ: " + std::to_string(first.exit_status) + " and " +
                            std::to_string(measurement.outputs[after].exit_status));
  }
}

BenchRow RowOf(const BenchSettings& settings, const Measurement& measurement, size_t before, size_t after,
               const MetricSource& source, const HostFacts& host) {
  BenchRow row;
  row.before_name = measurement.names[before];
  row.after_name = measurement.names[after];
  std::vector<std::string> uncompared;
  for (const std::string& metric : MetricsOf(settings, source)) {
    if (auto comparison = Compare(measurement, before, after, metric, settings.comparison)) {
      row.comparisons.push_back(std::move(*comparison));
    } else if (metric == settings.by) {
      throw Error(ErrorCode::kBadInput, "--by", "'" + metric + "' is not a positive number in every run", "",
                  "see --metric for numbers that the command reports itself");
    } else if (std::find(source.names.begin(), source.names.end(), metric) != source.names.end()) {
      WarnOfUncompared(metric, measurement, before, after, &uncompared);
    }
  }
  row.warnings = WarningsOf(measurement, row.comparisons.front(), host.load_1min, host.processors);
  row.warnings.insert(row.warnings.end(), uncompared.begin(), uncompared.end());
  CompareOutputs(measurement, before, after, &row);
  const auto rounds = static_cast<int64_t>(measurement.rounds.size());
  if (measurement.stopped != nullptr && rounds < settings.measurement.min_rounds) {
    for (Comparison& comparison : row.comparisons) comparison.verdict = Verdict::kUndecided;
    row.warnings.push_back("stopped after " + std::to_string(rounds) + " of at least " +
                           std::to_string(settings.measurement.min_rounds) + " rounds: too few to decide");
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

/// How far an interval reaches from the median, to the side where that is more.
double ReachOf(const MedianEstimate& estimate) {
  return std::max(estimate.interval.high - estimate.median, estimate.median - estimate.interval.low);
}

/// Numbers of the variants that are compared: before, after.
using VariantPairs = std::vector<std::pair<size_t, size_t>>;

/// Measures until the deciding metric of every pair is known closely enough.
Measurement MeasureClosely(const BenchSettings& settings, const std::vector<Variant>& variants,
                           const VariantPairs& pairs, const MeasurementOptions& options,
                           const std::string& label) {
  Progress progress(settings.progress, label, 0, "rounds", /*plain_lines=*/true);
  const double limit = std::log1p(settings.interval_width);
  return Measure(variants, options, [&](const Measurement& so_far) {
    progress.Update(so_far.rounds.size());
    for (const auto& [before, after] : pairs) {
      const auto comparison = Compare(so_far, before, after, settings.by, settings.comparison);
      if (!comparison || ReachOf(comparison->log_ratio) > limit || ReachOf(comparison->control) > limit) {
        return false;
      }
    }
    return true;
  });
}

/// Which variants of an ablation are compared: each with the base, or with the one before it.
VariantPairs AblationPairs(size_t variants, AblationMode mode) {
  VariantPairs pairs;
  for (size_t after = 1; after < variants; ++after) {
    pairs.emplace_back(mode == AblationMode::kCumulative ? after - 1 : 0, after);
  }
  if (mode == AblationMode::kCumulative && variants > 2) pairs.emplace_back(0, variants - 1);
  return pairs;
}

/// What of the settings and of a file of stages counts.
/// \throws Error{kUsage} where something is said about metrics and none is named
MetricSource SourceOf(const BenchSettings& settings, const PlanFile& plan) {
  MetricSource source = plan.metrics;
  if (!settings.metrics.empty()) source.names = settings.metrics;
  if (settings.metric_file) source.file = *settings.metric_file;
  if (settings.metric_skip) source.skip = *settings.metric_skip;
  const MetricSource silent;
  if (source.names.empty() && settings.ignore_metric_place) source = plan.metrics;
  if (source.names.empty() && (source.file != silent.file || source.skip != silent.skip)) {
    const bool of_flag = !settings.ignore_metric_place && (settings.metric_file || settings.metric_skip);
    throw Error(ErrorCode::kUsage, of_flag ? "what to report" : settings.stages_file,
                "metric-file and metric-skip say where metrics are, and none is named", "",
                "--metric NAME names one, or metrics in the file of --stages");
  }
  return source;
}

/// \throws Error{kUsage} where levers and --ablate do not come together, or one row is asked for of several
void RequireFitting(const BenchSettings& settings, const PlanFile& plan) {
  if (plan.base.empty() == settings.ablation.has_value()) {
    throw Error(ErrorCode::kUsage, settings.stages_file,
                plan.base.empty() ? "has stages and no levers to ablate" : "has levers and no stages", "",
                plan.base.empty() ? "leave out --ablate" : "add --ablate one-at-a-time, or cumulative");
  }
  const size_t rows = plan.base.empty() ? plan.stages.size()
                                        : AblationPairs(plan.levers.size() + 1, *settings.ablation).size();
  if (settings.one_row && rows > 1) {
    throw Error(ErrorCode::kUsage, "--report",
                "an SVG holds one comparison, and there are " + std::to_string(rows), "",
                "name a file that ends in .html");
  }
}

/// Measures, and compares what was measured.
class BenchRun {
 public:
  explicit BenchRun(const BenchSettings& settings)
      : settings_(settings), host_(ReadHostFacts()), options_(settings.measurement) {
    options_.compare_output = settings.output_check != OutputCheck::kOff;
    options_.keep_stopped = true;
    options_.decisive = settings.by;
  }

  BenchResult Run() {
    if (settings_.stages_file.empty()) {
      options_.metrics = SourceOf(settings_, {});
      RequireMetric(settings_.by, options_.metrics);
      const std::vector<Variant> variants = {{"before", settings_.before, settings_.prepare},
                                             {"after", settings_.after, settings_.prepare}};
      RequireRunFolders(variants, options_.metrics);
      Measure(variants, {{0, 1}}, "measuring");
      AddRow("", 0, 1);
    } else {
      RunPlan();
    }
    const bool measured =
        std::any_of(result_.measurements.begin(), result_.measurements.end(),
                    [](const Measurement& measurement) { return !measurement.rounds.empty(); });
    if (result_.stopped != nullptr && !measured) std::rethrow_exception(result_.stopped);
    result_.exit_status =
        result_.stopped != nullptr ? static_cast<int>(ErrorOf(result_.stopped).code()) : Status();
    WriteJson();
    return std::move(result_);
  }

 private:
  void RunPlan() {
    PlanFile plan = ReadPlanFile(settings_.stages_file);
    if (!settings_.prepare.empty()) {
      plan.prepare = settings_.prepare;
      for (Stage& stage : plan.stages) stage.before.prepare = stage.after.prepare = settings_.prepare;
    }
    options_.metrics = SourceOf(settings_, plan);
    RequireMetric(settings_.by, options_.metrics);
    RequireFitting(settings_, plan);
    for (const Stage& stage : plan.stages) RequireRunFolders({stage.before, stage.after}, options_.metrics);
    for (const Stage& stage : plan.stages) {
      if (result_.stopped != nullptr) break;
      Measure({stage.before, stage.after}, {{0, 1}}, stage.name);
      AddRow(stage.name, 0, 1);
    }
    if (settings_.ablation) {
      const std::vector<Variant> variants = AblationVariants(plan, *settings_.ablation);
      RequireRunFolders(variants, options_.metrics);
      const VariantPairs pairs = AblationPairs(variants.size(), *settings_.ablation);
      Measure(variants, pairs, "measuring");
      for (const auto& [before, after] : pairs) {
        const bool whole = *settings_.ablation == AblationMode::kCumulative && before == 0 && after > 1;
        AddRow(whole ? "all levers" : variants[after].name, before, after);
      }
    }
    std::map<std::string, std::vector<Comparison*>> of_metrics;
    for (BenchRow& row : result_.rows) {
      for (Comparison& comparison : row.comparisons) of_metrics[comparison.metric].push_back(&comparison);
    }
    for (const auto& [metric, comparisons] : of_metrics) CorrectTogether(comparisons);
  }

  void Measure(const std::vector<Variant>& variants, const VariantPairs& pairs, const std::string& label) {
    result_.measurements.push_back(MeasureClosely(settings_, variants, pairs, options_, label));
    result_.stopped = result_.measurements.back().stopped;
  }

  /// Of the last measurement; none where a signal left too few rounds to compare.
  void AddRow(const std::string& name, size_t before, size_t after) {
    const Measurement& measurement = result_.measurements.back();
    if (measurement.stopped != nullptr && measurement.rounds.size() < 2) return;
    result_.rows.push_back(RowOf(settings_, measurement, before, after, options_.metrics, host_));
    result_.rows.back().name = name;
  }

  int Status() const {
    for (const BenchRow& row : result_.rows) {
      const bool differs = row.outputs_equal && row.output_repeats && !*row.outputs_equal;
      if (differs && settings_.output_check == OutputCheck::kFail) return static_cast<int>(ErrorCode::kNo);
    }
    return ExitStatusOf(result_.rows, settings_.max_regression);
  }

  void WriteJson() {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array(),
                           measurements = nlohmann::ordered_json::array();
    for (const BenchRow& row : result_.rows) rows.push_back(RowJson(row));
    for (const Measurement& measurement : result_.measurements) {
      measurements.push_back(MeasurementJson(measurement));
    }
    result_.json = {{"schema", kSchema},
                    {"version", TRAINWRIGHT_VERSION},
                    {"measured_at", Rfc3339Now()},
                    {"host",
                     {{"name", host_.name},
                      {"cpu", host_.cpu},
                      {"processors", host_.processors},
                      {"memory_bytes", host_.memory_bytes},
                      {"kernel", host_.kernel},
                      {"load_1min", host_.load_1min}}},
                    {"by", settings_.by},
                    {"same_within", settings_.comparison.same_within},
                    {"seed", settings_.measurement.seed},
                    {"exit_status", result_.exit_status},
                    {"results", rows},
                    {"measurements", measurements}};
    if (result_.stopped == nullptr) return;
    result_.json["stopped"] = true;
    if (!StoppedBySignal(result_)) result_.json["failure"] = ErrorOf(result_.stopped).what();
  }

  const BenchSettings& settings_;
  const HostFacts host_;
  MeasurementOptions options_;
  BenchResult result_;
};

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
    // As it is printed: X % more of what should be small, X % less of what should be large.
    const double limit = HigherIsBetter(decisive.metric) ? -std::log1p(-std::min(*max_regression, 1.0))
                                                         : std::log1p(*max_regression);
    const double worst = std::max(sign * decisive.log_ratio.interval.low,
                                  sign * decisive.log_ratio.interval.high),
                 best = std::min(sign * decisive.log_ratio.interval.low,
                                 sign * decisive.log_ratio.interval.high);
    const bool beyond_noise = sign * decisive.log_ratio.median > decisive.noise_floor;
    if (best > limit && beyond_noise) return static_cast<int>(ErrorCode::kNo);
    undecided |= worst > limit;
  }
  return undecided ? static_cast<int>(ErrorCode::kUndecided) : 0;
}

BenchResult RunBench(const BenchSettings& settings) {
  return BenchRun(settings).Run();
}

bool StoppedBySignal(const BenchResult& result) {
  if (result.stopped == nullptr) return false;
  const ErrorCode code = ErrorOf(result.stopped).code();
  return code == ErrorCode::kInterrupted || code == ErrorCode::kTerminated;
}

}  // namespace trainwright
