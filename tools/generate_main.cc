#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lib/device/determinism.h"
#include "lib/eval/generate_job.h"
#include "lib/model/built_in_families.h"
#include "tools/engine_ranks.h"
#include "tools/generate_options.h"

int main(int argc, char** argv) {
  using namespace trainwright;
  PrepareDeterminism();
  GenerateSettings settings;
  return RunTool(
      argc, argv, GenerateInfo(), [&](CLI::App& app) { DefineGenerateOptions(app, &settings); },
      [&](ToolRun& run) {
        const EngineRequest request = {.argv = std::vector<std::string>(argv, argv + argc),
                                       .nproc = settings.nproc,
                                       .dist_timeout_s = settings.dist_timeout_s,
                                       .process = {.threads = settings.threads, .device = settings.device},
                                       .check = [&](int64_t ranks) { CheckRanks(settings, ranks); }};
        return RunEngine(request, &run, [&](const EngineProcess& process) {
          StdoutSink out;
          run.summary.update(RunGenerate(BuiltInFamilies(), settings, process.setup, &out, process.world,
                                         isatty(STDOUT_FILENO) == 1));
          return 0;
        });
      });
}
