#include <unistd.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/bench/bench_job.h"
#include "lib/bench/bench_report.h"
#include "lib/bench/claims.h"
#include "lib/cli/tool.h"
#include "lib/formats/json_text.h"
#include "lib/io/byte_sink.h"
#include "lib/io/descriptor.h"
#include "tools/bench_options.h"

namespace trainwright {
namespace {

OutputCheck OutputCheckOf(const std::string& name) {
  return name == "off" ? OutputCheck::kOff : name == "fail" ? OutputCheck::kFail : OutputCheck::kWarn;
}

BenchSettings SettingsOf(const BenchOptions& options, const ToolRun& run) {
  BenchSettings settings;
  settings.before = options.before;
  settings.after = options.after;
  settings.prepare = options.prepare;
  settings.stages_file = options.stages;
  if (!options.ablate.empty()) {
    settings.ablation =
        options.ablate == "cumulative" ? AblationMode::kCumulative : AblationMode::kOneAtATime;
  }
  settings.by = options.by;
  settings.metrics = options.metrics;
  settings.metric_file = options.metric_file;
  settings.metric_skip = options.metric_skip;
  MeasurementOptions& measurement = settings.measurement;
  measurement.command = {.shell = !options.no_shell, .timeout_s = options.timeout_s};
  measurement.warmup_rounds = options.warmup;
  measurement.min_rounds = options.min_rounds;
  measurement.max_rounds = options.max_rounds;
  measurement.budget_s = options.budget_s;
  measurement.ignore_failure = options.ignore_failure;
  measurement.seed = options.seed;
  settings.comparison = {.same_within = options.same_within_percent / 100, .seed = options.seed};
  settings.interval_width = options.width_percent / 100;
  if (options.max_regression_percent) settings.max_regression = *options.max_regression_percent / 100;
  settings.output_check = OutputCheckOf(options.output_check);
  settings.one_row = options.report.ends_with(".svg");
  settings.progress = run.common.progress;
  return settings;
}

bool IsGiven(const ToolRun& run, const std::string& key) {
  return std::any_of(run.options.begin(), run.options.end(), [&](const OptionValue& option) {
    return option.key == key && option.origin != OptionOrigin::kDefault;
  });
}

/// An output that is opened before anything runs: what cannot be written must not cost the measurement.
class OutputFile {
 public:
  /// \param path empty: none
  explicit OutputFile(const std::string& path)
      : sink_(path.empty() ? nullptr : OpenSink(path, /*binary=*/false, /*allow_terminal=*/true)) {}
  bool asked() const { return sink_ != nullptr; }
  void Write(const std::string& text) {
    sink_->Write(AsBytes(text));
    sink_->Commit();
  }

 private:
  std::unique_ptr<ByteSink> sink_;
};

/// Writes to every output, also where one of them fails, or a signal arrived.
/// \throws what the first that failed threw
void WriteEach(const std::vector<std::function<void()>>& outputs) {
  std::exception_ptr failure;
  for (const auto& write : outputs) {
    try {
      write();
    } catch (const Error&) {
      if (failure == nullptr) failure = std::current_exception();
    }
  }
  if (failure != nullptr) std::rethrow_exception(failure);
}

void PrintAlways(const std::string& text) {
  WriteAll(STDOUT_FILENO, "standard output", AsBytes(text), OnStop::kFinish);
}

/// \throws Error{kUsage} on options that would be without effect
void CheckClaimOptions(const BenchOptions& options, const ToolRun& run) {
  if (options.claims.empty()) {
    const bool sized = options.claims_size != ClaimScale::kSmall;
    if (!sized && options.claims_only.empty()) return;
    throw Error(ErrorCode::kUsage, sized ? "--claims-size" : "--claims-only",
                "is of --claims, and that is not given");
  }
  const std::set<std::string> used = {"claims", "claims-only", "claims-size", "budget", "json", "save"};
  const std::set<std::string> commands = {"before", "after", "stages", "metric"};
  for (const OptionValue& option : run.options) {
    if (option.group == kCommonGroup || used.contains(option.key)) continue;
    if (option.origin == OptionOrigin::kDefault) continue;
    // A variable may be meant for another command.
    if (option.origin == OptionOrigin::kEnvironment && !commands.contains(option.key)) continue;
    throw Error(ErrorCode::kUsage, "--" + option.key,
                "has no meaning with --claims, which has its own runs and its own rules");
  }
}

/// One of --min-rounds and --max-rounds that is given moves the default of the other.
void SettleRounds(const ToolRun& run, BenchOptions* options) {
  if (options->min_rounds <= options->max_rounds) return;
  const bool least = IsGiven(run, "min-rounds"), most = IsGiven(run, "max-rounds");
  if (least && most) {
    throw Error(ErrorCode::kUsage, "--min-rounds",
                std::to_string(options->min_rounds) + " is more than --max-rounds " +
                    std::to_string(options->max_rounds));
  }
  (least ? options->max_rounds : options->min_rounds) = least ? options->min_rounds : options->max_rounds;
}

void CheckOptions(const ToolRun& run, BenchOptions* options) {
  if (options->stages.empty() == (options->before.empty() || options->after.empty())) {
    throw Error(ErrorCode::kUsage, "what to compare",
                options->stages.empty() ? "is not named" : "is named twice", "",
                "give --before CMD and --after CMD, or --stages FILE, or --claims SYSTEM");
  }
  if (!options->ablate.empty() && options->stages.empty()) {
    throw Error(ErrorCode::kUsage, "--ablate", "is of --stages, and that is not given");
  }
  const std::string& report = options->report;
  if (!report.empty() && !report.ends_with(".svg") && !report.ends_with(".html")) {
    throw Error(ErrorCode::kUsage, "--report", "'" + report + "' ends neither in .svg nor in .html");
  }
  SettleRounds(run, options);
}

int RunClaims(const BenchOptions& options, ToolRun* run) {
  OutputFile save(options.save);
  const ClaimsResult claims = CheckClaims({.system = options.claims,
                                           .only = options.claims_only,
                                           .scale = options.claims_size,
                                           .budget_s = options.budget_s / 3},
                                          run->common.progress);
  run->summary.update(claims.json);
  const std::string json = JsonLineOf(claims.json);
  WriteEach({[&] {
               if (save.asked()) save.Write(json);
             },
             // A signal leaves what was measured to be told.
             [&] { PrintAlways(options.json ? json : claims.text); }});
  if (claims.stopped != nullptr) std::rethrow_exception(claims.stopped);
  return claims.exit_status;
}

int Run(BenchOptions options, ToolRun* run) {
  CheckClaimOptions(options, *run);
  if (!options.claims.empty()) return RunClaims(options, run);
  CheckOptions(*run, &options);
  OutputFile save(options.save), report(options.report);
  const BenchResult result = RunBench(SettingsOf(options, *run));
  run->summary["results"] = result.json.at("results");
  const std::string json = JsonLineOf(result.json);
  const bool svg = options.report.ends_with(".svg");
  WriteEach({[&] {
               if (save.asked()) save.Write(json);
             },
             [&] {
               if (!report.asked() || result.rows.empty()) return;
               report.Write(svg ? RenderBenchSvg(result, 0) : RenderBenchHtml(result, options.by));
             },
             [&] { PrintAlways(options.json ? json : DescribeBench(result, options.by)); }});
  if (result.stopped != nullptr) std::rethrow_exception(result.stopped);
  return result.exit_status;
}

}  // namespace
}  // namespace trainwright

int main(int argc, char** argv) {
  trainwright::BenchOptions options;
  return trainwright::RunTool(
      argc, argv, trainwright::BenchInfo(),
      [&](CLI::App& app) { trainwright::DefineBenchOptions(app, &options); },
      [&](trainwright::ToolRun& run) { return trainwright::Run(options, &run); });
}
