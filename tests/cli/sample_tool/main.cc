// A small tool with an option of every kind: what the tests of lib/cli and of the harness run.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
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
#include "tests/cli/sample_tool/sample_tool.h"

namespace {

using namespace trainwright;
using test::SampleOptions;

void Fail(const std::string& how) {
  if (how == "steps") throw Error(ErrorCode::kUsage, "--steps", "has no meaning today");
  if (how == "no") throw Error(ErrorCode::kNo, "shard", "differs");
  if (how == "input")
    throw Error(ErrorCode::kBadInput, "a.tws", "is cut short", "byte 12", "run pretokenize again");
  if (how == "nonfinite") throw Error(ErrorCode::kNonFinite, "loss", "is not finite", "step 3");
  if (how == "undecided") throw Error(ErrorCode::kUndecided, "interval", "is too wide");
  if (how == "memory") throw std::bad_alloc();
  if (how == "device") throw Error(ErrorCode::kDevice, "device memory", "is full", "step 3");
  if (how == "bug") throw std::logic_error("shapes differ\nException raised from f at g.cpp:1\nframe #0: h");
  if (how == "odd") throw 7;
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
  if (options.fail == "schema") run.summary["schema"] = "trainwright.result/1";
  sink->Commit();
  return options.fail == "one" ? 1 : 0;
}

}  // namespace

// The name it is called by says which tool it plays: "patient" is no filter, "needy" cannot do without
// options.
int main(int argc, char** argv) {
  SampleOptions options;
  const std::string name = std::filesystem::path(argv[0]).filename();
  ToolInfo info = test::SampleInfo(/*filter=*/name != "patient");
  info.name = name;
  std::string data, target;
  return RunTool(
      argc, argv, info,
      [&](CLI::App& app) {
        test::DefineSampleOptions(app, &options);
        if (name != "needy") return;
        app.add_option("--data", data, "Data.")->required();
        app.remove_option(app.get_option("FILE"));
        app.add_option("TARGET", target, "Where to.")->required();
      },
      [&](ToolRun& run) { return RunSample(options, run); });
}
