#include <unistd.h>

#include <exception>
#include <utility>

#include "lib/base/error.h"
#include "lib/bench/bench_job.h"
#include "lib/bench/bench_report.h"
#include "lib/bench/claims.h"
#include "lib/cli/tool.h"
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
  settings.metrics = {options.metrics, options.metric_file, options.metric_skip};
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
  settings.progress = run.common.progress;
  return settings;
}

void WriteReport(const BenchOptions& options, const BenchResult& result) {
  const bool svg = options.report.ends_with(".svg");
  if (svg && result.rows.size() > 1) {
    throw Error(ErrorCode::kUsage, "--report",
                "an SVG holds one comparison, and there are " + std::to_string(result.rows.size()), "",
                "name a file that ends in .html");
  }
  WriteFileAtomically(options.report,
                      AsBytes(svg ? RenderBenchSvg(result, 0) : RenderBenchHtml(result, options.by)));
}

void CheckClaimOptions(const BenchOptions& options) {
  if (options.claims.empty()) {
    const bool sized = options.claims_size != ClaimScale::kSmall;
    if (!sized && options.claims_only.empty()) return;
    throw Error(ErrorCode::kUsage, sized ? "--claims-size" : "--claims-only",
                "is of --claims, and that is not given");
  }
  const std::pair<const char*, bool> others[] = {{"--before", !options.before.empty()},
                                                 {"--after", !options.after.empty()},
                                                 {"--stages", !options.stages.empty()},
                                                 {"--metric", !options.metrics.empty()}};
  for (const auto& [flag, given] : others) {
    if (given) throw Error(ErrorCode::kUsage, flag, "has no meaning with --claims, which has its own runs");
  }
}

int Run(const BenchOptions& options, ToolRun* run) {
  CheckClaimOptions(options);
  if (!options.claims.empty()) {
    const ClaimsResult claims = CheckClaims({.system = options.claims,
                                             .only = options.claims_only,
                                             .scale = options.claims_size,
                                             .budget_s = options.budget_s / 3},
                                            run->common.progress);
    run->summary.update(claims.json);
    // A signal leaves what was measured to be told.
    WriteAll(STDOUT_FILENO, "standard output",
             AsBytes(options.json ? claims.json.dump() + "\n" : claims.text), OnStop::kFinish);
    if (claims.stopped != nullptr) std::rethrow_exception(claims.stopped);
    return claims.exit_status;
  }
  if (options.stages.empty() == (options.before.empty() || options.after.empty())) {
    throw Error(ErrorCode::kUsage, "what to compare",
                options.stages.empty() ? "is not named" : "is named twice", "",
                "give --before CMD and --after CMD, or --stages FILE, or --claims SYSTEM");
  }
  if (!options.report.empty() && !options.report.ends_with(".svg") && !options.report.ends_with(".html")) {
    throw Error(ErrorCode::kUsage, "--report", "'" + options.report + "' ends neither in .svg nor in .html");
  }
  const BenchResult result = RunBench(SettingsOf(options, *run));
  run->summary["results"] = result.json.at("results");
  if (!options.save.empty()) WriteFileAtomically(options.save, AsBytes(result.json.dump() + "\n"));
  if (!options.report.empty()) WriteReport(options, result);
  StdoutSink().Write(AsBytes(options.json ? result.json.dump() + "\n" : DescribeBench(result, options.by)));
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
