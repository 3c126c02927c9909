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
#include "lib/io/descendants.h"
#include "lib/io/descriptor.h"
#include "lib/io/output_link.h"
#include "lib/report/option_value.h"
#include "tools/bench_options.h"

namespace trainwright {
namespace {

OutputCheck OutputCheckOf(const std::string& name) {
  return name == "off" ? OutputCheck::kOff : name == "fail" ? OutputCheck::kFail : OutputCheck::kWarn;
}

/// Whether an option is asked for that must not be without effect: a variable may be meant for another
/// command, and a printed configuration has all defaults.
bool IsAskedFor(const OptionValue& option) {
  return !option.is_default && option.origin != OptionOrigin::kEnvironment;
}

bool IsAskedFor(const ToolRun& run, const std::string& key) {
  return std::any_of(run.options.begin(), run.options.end(),
                     [&](const OptionValue& option) { return option.key == key && IsAskedFor(option); });
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
  settings.ignore_metric_place = !IsAskedFor(run, "metric-file") && !IsAskedFor(run, "metric-skip");
  MeasurementOptions& measurement = settings.measurement;
  measurement.command = {.shell = !options.no_shell, .timeout_s = options.timeout_s, .all_descendants = true};
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

/// An output that is opened before anything runs: what cannot be written must not cost the measurement.
class OutputFile {
 public:
  /// \param path empty: none
  /// \throws Error{kUsage} on standard output, naming `flag`
  OutputFile(const std::string& flag, const std::string& path) {
    if (path.empty()) return;
    if (IsStandardOutput(path)) {
      throw Error(ErrorCode::kUsage, flag, "is '" + path + "', and standard output has the result already",
                  "", "name a file; --json prints JSON there instead of the table");
    }
    // A signal leaves what was measured to be told.
    sink_ = OpenSink(path, /*binary=*/false, /*allow_terminal=*/true, {}, OnStop::kFinish);
  }
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
void CheckClaimOptions(const ToolRun& run) {
  const std::set<std::string> used = {"claims", "claims-only", "claims-size", "budget", "json", "save"};
  const std::set<std::string> commands = {"before", "after", "stages"};
  for (const OptionValue& option : run.options) {
    if (option.group == kCommonGroup || used.contains(option.key)) continue;
    // What says otherwise what to compare has not given way to --claims, so that both are of the environment.
    const bool rivals = commands.contains(option.key) && option.origin == OptionOrigin::kEnvironment;
    if (!rivals && !IsAskedFor(option)) continue;
    throw Error(ErrorCode::kUsage, "--" + option.key,
                "has no meaning with --claims, which has its own runs and its own rules");
  }
}

void CheckOptions(const ToolRun& run, BenchOptions* options) {
  for (const char* key : {"claims-size", "claims-only"}) {
    if (!IsAskedFor(run, key)) continue;
    throw Error(ErrorCode::kUsage, std::string("--") + key, "is of --claims, and that is not given");
  }
  if (options->stages.empty() == (options->before.empty() || options->after.empty())) {
    throw Error(ErrorCode::kUsage, "what to compare",
                options->stages.empty() ? "is not named" : "is named twice", "",
                "give --before CMD and --after CMD, or --stages FILE, or --claims SYSTEM");
  }
  if (options->stages.empty()) {
    if (IsAskedFor(run, "ablate")) {
      throw Error(ErrorCode::kUsage, "--ablate", "is of --stages, and that is not given");
    }
    options->ablate.clear();
  }
  const std::string& report = options->report;
  if (!report.empty() && !report.ends_with(".svg") && !report.ends_with(".html")) {
    throw Error(ErrorCode::kUsage, "--report", "'" + report + "' ends neither in .svg nor in .html");
  }
}

int RunClaims(const BenchOptions& options, ToolRun* run) {
  OutputFile save("--save", options.save);
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
  if (!options.claims.empty()) {
    CheckClaimOptions(*run);
    return RunClaims(options, run);
  }
  CheckOptions(*run, &options);
  OutputFile save("--save", options.save), report("--report", options.report);
  AdoptOrphans();
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
