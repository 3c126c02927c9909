// A small tool with an option of every kind: what the tests of lib/cli and of the harness run.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/signals.h"
#include "lib/cli/tool.h"
#include "lib/io/byte_sink.h"
#include "lib/report/progress.h"

namespace {

using namespace trainwright;

struct SampleOptions {
  std::vector<std::string> inputs;
  std::string output = "-", title = "untitled", fail;
  int64_t steps = 10;
  double rate = 0.25;
  std::vector<double> scales = {1, 0.5};
  std::vector<std::string> tags;
  bool force = false;
  std::string mode = "fast";
  uint64_t megabytes = 0;
  bool ignore_sigpipe = false;
};

const ToolInfo& SampleInfo(bool filter) {
  static const ToolInfo info = {
      .name = "sample",
      .summary = "print what the command line says",
      .description = "Prints its options, one `name=value` a line.\n\nA second paragraph.",
      .sections = {{"FILES", "  sample.yaml\n\nA configuration."}},
      .examples = {{"sample --steps 3 -t 'two words' one two", "Three steps."}},
      .see_also = {"pack(1)"},
      .filter = filter,
      .build_features = "a feature"};
  static const ToolInfo patient = [] {
    ToolInfo copy = info;
    copy.filter = false;
    copy.stdout_is_data = false;
    return copy;
  }();
  return filter ? info : patient;
}

void Fail(const std::string& how) {
  if (how == "no") throw Error(ErrorCode::kNo, "shard", "differs");
  if (how == "input")
    throw Error(ErrorCode::kBadInput, "a.tws", "is cut short", "byte 12", "run pretokenize again");
  if (how == "nonfinite") throw Error(ErrorCode::kNonFinite, "loss", "is not finite", "step 3");
  if (how == "undecided") throw Error(ErrorCode::kUndecided, "interval", "is too wide");
  if (how == "memory") throw std::bad_alloc();
  if (how == "cpu-memory")
    throw std::runtime_error(
        "[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory\nframe #0");
  if (how == "device-memory")
    throw std::runtime_error("CUDA out of memory. Tried to allocate 2 GiB\nException raised from malloc");
  if (how == "bug") throw std::logic_error("shapes differ\nException raised from f at g.cpp:1\nframe #0: h");
  if (how == "odd") throw 7;
}

void Define(CLI::App& app, SampleOptions* options) {
  app.add_option("FILE", options->inputs, "Input files.");
  app.add_option("-o,--output", options->output, "Where the lines go.")->type_name("FILE");
  app.add_option("-t,--title", options->title, "A title. Free text.");
  app.add_option("-n,--steps", options->steps, "How many steps.")
      ->check(CLI::Range(int64_t{1}, int64_t{1000}));
  app.add_option("--rate", options->rate, "A rate per second.")->check(CLI::PositiveNumber);
  app.add_option("--scale", options->scales, "A factor.");
  app.add_option("--tag", options->tags, "A word.");
  app.add_flag("-f,--force", options->force, "Insist.");
  app.add_option("--mode", options->mode, "How to work.")->check(CLI::IsMember({"fast", "exact"}));
  app.add_option("--fail", options->fail, "Fail in this way.")->group("Trouble");
  app.add_option("--megabytes", options->megabytes, "Write so many MiB of zeros in place of the lines.")
      ->group("Trouble");
}

int RunSample(const SampleOptions& options, ToolRun& run) {
  const auto sink = OpenSink(options.output, /*binary=*/options.megabytes > 0, options.force);
  Fail(options.fail);
  if (options.fail == "wait") {
    sink->Write(AsBytes("partial"));
    std::fprintf(stderr, "waiting\n");
    for (;;) {
      ThrowIfStopped();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  Progress progress(run.common.progress, "sample", options.steps, "steps");
  std::string lines;
  for (const std::string& input : options.inputs) lines += "input=" + input + "\n";
  lines += "title=" + options.title + "\nsteps=" + std::to_string(options.steps) + "\n";
  lines += "rate=" + std::to_string(options.rate) + "\n";
  for (const double scale : options.scales) lines += "scale=" + std::to_string(scale) + "\n";
  for (const std::string& tag : options.tags) lines += "tag=" + tag + "\n";
  lines += "force=" + std::to_string(options.force) + "\nmode=" + options.mode + "\n";
  if (options.fail == "stdio") {
    std::fputs(lines.c_str(), stdout);
  } else if (options.megabytes == 0) {
    sink->Write(AsBytes(lines));
  }
  const std::vector<uint8_t> zeros(1 << 20);
  for (uint64_t i = 0; i < options.megabytes; ++i) sink->Write(zeros);
  progress.Update(1, "a note");
  LogInfo("done");
  LogDebug("really");
  run.summary["inputs"] = options.inputs.size();
  run.summary["loss_nats"] = NAN;
  sink->Commit();
  return options.fail == "one" ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  SampleOptions options;
  const bool filter = std::string(argv[0]).find("patient") == std::string::npos;
  return RunTool(
      argc, argv, SampleInfo(filter), [&](CLI::App& app) { Define(app, &options); },
      [&](ToolRun& run) { return RunSample(options, run); });
}
