#include "tools/bench_options.h"

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "tools/guides.h"
#include "tools/tool_texts.h"

namespace trainwright {
namespace {

/// The text file, with the guides that there are.
ToolText BenchText() {
  ToolText text = ParseToolText(kBenchText);
  for (ToolSection& section : text.sections) {
    if (section.title == "GUIDES") section.text += "\n\n" + DescribeGuides();
  }
  return text;
}

}  // namespace

const ToolInfo& BenchInfo() {
  static const ToolInfo info = {
      .name = "bench",
      .summary = "say whether a change made a command faster, and how sure that is",
      .text = BenchText(),
      .see_also = {"train(1)", "trainwright-bench(5)", "hyperfine(1)", "trainwright-glossary(7)"},
      .exclusive = {{"before", "stages", "claims"}, {"after", "stages", "claims"}},
      .bounds = {{"min-rounds", "max-rounds"}},
      .variables = {{"metric", "bench-metric"}, {"report", "bench-report"}, {"warmup", "bench-warmup"}},
      .outputs = {{"save", {}}, {"report", {}}},
  };
  return info;
}

namespace {

/// "2%" is 2 per cent as 2 is.
std::string WithoutPercentSign(std::string text) {
  if (text.ends_with('%')) text.pop_back();
  return text;
}

void DefineCommandOptions(CLI::App& app, BenchOptions* options) {
  const std::string group = "What to compare";
  app.add_option("--before", options->before, "Command to compare with, a line of shell.")
      ->type_name("CMD")
      ->group(group);
  app.add_option("--after", options->after, "Command that is compared.")->type_name("CMD")->group(group);
  app.add_option("--prepare", options->prepare,
                 "Command that runs before each run of either, not measured; in place of those of --stages.")
      ->type_name("CMD")
      ->group(group);
  app.add_option("--stages", options->stages, "File of stages or levers. See FILE OF STAGES.")
      ->type_name("FILE")
      ->group(group);
  app.add_option(
         "--ablate", options->ablate,
         "Compare the base command of --stages with each lever added alone, or with one more each time.")
      ->check(CLI::IsMember({"one-at-a-time", "cumulative"}))
      ->type_name("HOW")
      ->group(group);
  std::vector<std::string> guides;
  for (const Guide& guide : kGuides) guides.emplace_back(guide.name);
  app.add_option("--claims", options->claims,
                 "Print the claims of a system's guide and what holds here. See GUIDES.")
      ->check(CLI::IsMember(guides))
      ->type_name("SYSTEM")
      ->group(group);
  app.add_option("--claims-only", options->claims_only,
                 "Of --claims only those with this in their text, with their runs and contradictions.")
      ->type_name("TEXT")
      ->group(group);
  AddChoice(
      app, "--claims-size", &options->claims_size,
      {{"small", ClaimScale::kSmall}, {"guide", ClaimScale::kGuide}},
      "Runs of --claims: small takes seconds a run; guide trains the models of refocused, rft and lora with "
      "the batches and lengths that their guides name, hours without a GPU.")
      ->type_name("SIZE")
      ->group(group);
  app.add_flag("--no-shell", options->no_shell,
               "Split commands at blanks and run them directly: without the millisecond that a shell takes.")
      ->group(group);
}

void DefineMeasurementOptions(CLI::App& app, BenchOptions* options) {
  const std::string group = "What is measured";
  app.add_option(
         "--by", options->by,
         "The number that decides: wall_s, cpu_s, max_memory_bytes, written_bytes or one of --metric.")
      ->type_name("METRIC")
      ->group(group);
  app.add_option(
         "--metric", options->metrics,
         "A number that the command reports in JSON, one object or one a line; the median over "
         "lines, or with mean:NAME the mean, with p99:NAME the 99th percentile, with final:NAME the "
         "last, with sum:NAME the sum of all. More is better of mfu, gpu_util and names that end in "
         "_per_s. --metric, --metric-file and --metric-skip each take the place of what --stages says.")
      ->type_name("NAME")
      ->group(group);
  app.add_option(
         "--metric-file", options->metric_file,
         "Where the command writes that JSON, {dir}/metrics.jsonl for example; - (the default) is standard "
         "output, of at most 256 MiB then. A file that a run leaves as it was, or adds to, is refused.")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--metric-skip", options->metric_skip,
                 "Lines with the number to leave out at the start (default: none).")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40))
      ->type_name("N")
      ->group(group);
  app.add_option("--output-check", options->output_check,
                 "What to do when the standard outputs of before and after differ. fail is exit status 1.")
      ->check(CLI::IsMember({"off", "warn", "fail"}))
      ->type_name("HOW")
      ->group(group);
  app.add_flag("--ignore-failure", options->ignore_failure,
               "Measure commands that end with another exit status than 0.")
      ->group(group);
}

void DefineEffortOptions(CLI::App& app, BenchOptions* options) {
  const std::string group = "How long, how sure";
  app.add_option("--budget", options->budget_s,
                 "Seconds of measuring, for each stage; a third of it for each of --claims.")
      ->check(CLI::Range(0.0, 1e7))
      ->type_name("X")
      ->group(group);
  app.add_option("--width", options->width_percent,
                 "Stop earlier when the interval reaches no further than this many per cent to either side.")
      ->transform(WithoutPercentSign)
      ->check(CLI::Range(0.001, 1000.0))
      ->type_name("X")
      ->group(group);
  app.add_option("--same-within", options->same_within_percent,
                 "A difference of this many per cent does not matter: same.")
      ->transform(WithoutPercentSign)
      ->check(CLI::Range(0.0, 1000.0))
      ->type_name("X")
      ->group(group);
  app.add_option("--max-regression", options->max_regression_percent,
                 "Allow after to be worse by this many per cent. See EXIT STATUS.")
      ->transform(WithoutPercentSign)
      ->check(CLI::Range(0.0, 1e6))
      ->type_name("X")
      ->group(group);
  app.add_option("--warmup", options->warmup, "Rounds that are run before and not counted.")
      ->check(CLI::Range(int64_t{0}, int64_t{1000}))
      ->type_name("N")
      ->group(group);
  app.add_option("--min-rounds", options->min_rounds,
                 "Rounds that are run whatever the budget; more than the default of --max-rounds raise that.")
      ->check(CLI::Range(int64_t{2}, int64_t{100000}))
      ->type_name("N")
      ->group(group);
  app.add_option("--max-rounds", options->max_rounds,
                 "Most rounds; fewer than the default of --min-rounds lower that.")
      ->check(CLI::Range(int64_t{2}, int64_t{100000}))
      ->type_name("N")
      ->group(group);
  app.add_option("--timeout", options->timeout_s,
                 "Seconds after which a run is killed, with all its children.")
      ->check(CLI::Range(0.001, 1e9))
      ->type_name("X")
      ->group(group);
  app.add_option("--seed", options->seed, "Seed of the order of runs and of the bootstrap.")
      ->type_name("N")
      ->group(group);
}

void DefineOutputOptions(CLI::App& app, BenchOptions* options) {
  const std::string group = "Output";
  app.add_flag("--json", options->json, "Print one JSON object with all samples instead of the table.")
      ->group(group);
  app.add_option(
         "--save", options->save,
         "Write that JSON to a file as well, also that of --claims; not to standard output, which --json "
         "is for.")
      ->type_name("FILE")
      ->group(group);
  app.add_option(
         "--report", options->report,
         "Write a plot of the rounds: FILE.svg, of a single comparison, or FILE.html; not to standard "
         "output.")
      ->type_name("FILE")
      ->group(group);
}

}  // namespace

void DefineBenchOptions(CLI::App& app, BenchOptions* options) {
  DefineCommandOptions(app, options);
  DefineMeasurementOptions(app, options);
  DefineEffortOptions(app, options);
  DefineOutputOptions(app, options);
}

}  // namespace trainwright
