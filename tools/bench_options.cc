#include "tools/bench_options.h"

#include <CLI/CLI.hpp>

namespace trainwright {

const ToolInfo& BenchInfo() {
  static const ToolInfo info = {
      .name = "bench",
      .summary = "say whether a change made a command faster, and how sure that is",
      .description =
          "Runs two commands, before and after, again and again in random interleaved order, and says by how "
          "much they differ, with a 95 % interval, and in one word: faster, slower, same or undecided. A "
          "second "
          "copy of the first command runs among them; what it seems to differ from itself by is printed "
          "beside "
          "every result (A/A), and no difference below that counts.\n"
          "\n"
          "Each run's wall time, processor time, peak memory and bytes written are measured, with those of "
          "all "
          "its children, and with --metric the numbers that the command reports itself as JSON. Standard "
          "input "
          "is empty, standard output is discarded, and its hash is compared once before.\n"
          "\n"
          "With --stages FILE the commands come from a file: several stages, or with --ablate one base "
          "command "
          "and levers to add to it.\n"
          "\n"
          "With --claims SYSTEM it prints what the guide of a system claims beside what can be measured "
          "here.",
      .sections =
          {{"METHOD",
            "A round runs every variant and the control in a random order and then in the reverse order, so "
            "that "
            "a drift of the machine that is linear over the round falls out. The difference of a round is "
            "that of "
            "the mean logarithms; the result is the median over rounds, its interval a circular block "
            "bootstrap "
            "of 10,000 seeded draws with blocks as long as the correlation of neighbouring rounds asks for "
            "(Politis and Romano 1992). Rounds end when the interval and the control's reach no further than "
            "--width to either side, or with the --budget.\n"
            "\n"
            "same: the whole interval lies within --same-within. faster or slower: the interval excludes no "
            "change, and the median lies beyond the control's interval. Everything else is undecided. "
            "Several "
            "stages or levers are corrected together by Holm's method. Outliers stay in; when there are any, "
            "a "
            "warning says what the result were without them."},
           {"FILE OF STAGES",
            "  stages:\n"
            "    - name: pack\n"
            "      before: pack --level 3 tokens.tok -o {dir}/shards/\n"
            "      after: pack --level 1 tokens.tok -o {dir}/shards/\n"
            "      prepare: sync\n"
            "\n"
            "or, for --ablate:\n"
            "\n"
            "  base: train --data shards --steps 20 --out {dir}/run {levers}\n"
            "  metric-file: \"{dir}/run/metrics.jsonl\"\n"
            "  metrics: [step_time_s, \"final:loss_nats\"]\n"
            "  levers:\n"
            "    - name: bf16\n"
            "      add: --mixed-precision bf16\n"
            "    - name: larger batch\n"
            "      add: --batch 16\n"
            "\n"
            "{dir} is an empty folder of each run, deleted after it, in every command and in --metric-file."},
           {"EXIT STATUS",
            "0 when nothing got slower, 1 when something did (or with --output-check fail, when outputs "
            "differ), 7 "
            "when that cannot be said. With --max-regression X: 0 when every interval ends below X %, 1 when "
            "one "
            "begins above it, 7 otherwise. --claims: 0 when every claim is met, else 1."}},
      .examples =
          {{"bench --before 'zstd -3 -c tinyshakespeare.txt' --after 'zstd -9 -c tinyshakespeare.txt' "
            "--budget 5 --output-check off; test $? = 1",
            "A slower command: exit status 1."},
           {"bench --before 'sleep 0.02' --after 'sleep 0.02' --max-regression 50 --budget 5 --json > "
            "same.json",
            "For continuous integration: fails only when more than 50 % slower. JSON holds every sample."}},
      .see_also = {"train(1)", "trainwright-bench(5)", "hyperfine(1)"},
  };
  return info;
}

void DefineBenchOptions(CLI::App& app, BenchOptions* options) {
  const std::string what = "What to compare";
  app.add_option("--before", options->before, "Command to compare with, a line of shell.")
      ->type_name("CMD")
      ->group(what);
  app.add_option("--after", options->after, "Command that is compared.")->type_name("CMD")->group(what);
  app.add_option("--prepare", options->prepare, "Command that runs before each run of either, not measured.")
      ->type_name("CMD")
      ->group(what);
  app.add_option("--stages", options->stages, "File of stages or levers. See FILE OF STAGES.")
      ->type_name("FILE")
      ->group(what);
  app.add_option(
         "--ablate", options->ablate,
         "Compare the base command of --stages with each lever added alone, or with one more each time.")
      ->check(CLI::IsMember({"one-at-a-time", "cumulative"}))
      ->type_name("HOW")
      ->group(what);
  app.add_option("--claims", options->claims, "Print the claims of a system's guide and what holds here.")
      ->check(CLI::IsMember({"grit", "refocused", "rft", "lora", "ten"}))
      ->type_name("SYSTEM")
      ->group(what);
  app.add_flag("--no-shell", options->no_shell,
               "Split commands at blanks and run them directly: without the millisecond that a shell takes.")
      ->group(what);

  const std::string measure = "What is measured";
  app.add_option(
         "--by", options->by,
         "The number that decides: wall_s, cpu_s, max_memory_bytes, written_bytes or one of --metric.")
      ->type_name("METRIC")
      ->group(measure);
  app.add_option(
         "--metric", options->metrics,
         "A number that the command reports in JSON, one object or one a line; the median over lines, or "
         "with final:NAME the last. More is better for names that end in _per_s.")
      ->type_name("NAME")
      ->group(measure);
  app.add_option("--metric-file", options->metric_file,
                 "Where the command writes that JSON, {dir}/metrics.jsonl for example; - is standard output.")
      ->type_name("FILE")
      ->group(measure);
  app.add_option("--metric-skip", options->metric_skip, "Lines with the number to leave out at the start.")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40))
      ->type_name("N")
      ->group(measure);
  app.add_option("--output-check", options->output_check,
                 "What to do when the standard outputs of before and after differ. fail is exit status 1.")
      ->check(CLI::IsMember({"off", "warn", "fail"}))
      ->type_name("HOW")
      ->group(measure);
  app.add_flag("--ignore-failure", options->ignore_failure,
               "Measure commands that end with another exit status than 0.")
      ->group(measure);

  const std::string effort = "How long, how sure";
  app.add_option("--budget", options->budget_s,
                 "Seconds of measuring, for each stage; a third of it for each of --claims.")
      ->check(CLI::Range(0.0, 1e7))
      ->type_name("X")
      ->group(effort);
  app.add_option("--width", options->width_percent,
                 "Stop earlier when the interval reaches no further than this many per cent to either side.")
      ->check(CLI::Range(0.001, 1000.0))
      ->type_name("X")
      ->group(effort);
  app.add_option("--same-within", options->same_within_percent,
                 "A difference of so many per cent does not matter: same.")
      ->check(CLI::Range(0.0, 1000.0))
      ->type_name("X")
      ->group(effort);
  app.add_option("--max-regression", options->max_regression_percent,
                 "Allow after to be worse by so many per cent. See EXIT STATUS.")
      ->check(CLI::Range(0.0, 1e6))
      ->type_name("X")
      ->group(effort);
  app.add_option("--warmup", options->warmup, "Rounds that are run before and not counted.")
      ->check(CLI::Range(int64_t{0}, int64_t{1000}))
      ->type_name("N")
      ->group(effort);
  app.add_option("--min-rounds", options->min_rounds, "Rounds that are run whatever the budget.")
      ->check(CLI::Range(int64_t{2}, int64_t{100000}))
      ->type_name("N")
      ->group(effort);
  app.add_option("--max-rounds", options->max_rounds, "Most rounds.")
      ->check(CLI::Range(int64_t{2}, int64_t{100000}))
      ->type_name("N")
      ->group(effort);
  app.add_option("--timeout", options->timeout_s,
                 "Seconds after which a run is killed, with all its children.")
      ->check(CLI::Range(0.001, 1e9))
      ->type_name("X")
      ->group(effort);
  app.add_option("--seed", options->seed, "Of the order of runs and of the bootstrap.")
      ->type_name("N")
      ->group(effort);

  const std::string out = "Output";
  app.add_flag("--json", options->json, "Print one JSON object with all samples instead of the table.")
      ->group(out);
  app.add_option("--save", options->save, "Write that JSON to a file as well.")
      ->type_name("FILE")
      ->group(out);
  app.add_option("--report", options->report,
                 "Write a picture of the rounds: FILE.svg, of a single comparison, or FILE.html.")
      ->type_name("FILE")
      ->group(out);
}

}  // namespace trainwright
