#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lib/device/determinism.h"
#include "lib/eval/generate_job.h"
#include "lib/eval/rank_input.h"
#include "lib/model/built_in_families.h"
#include "lib/report/option_need.h"
#include "tools/engine_ranks.h"
#include "tools/generate_options.h"

int main(int argc, char** argv) {
  using namespace trainwright;
  PrepareDeterminism();
  GenerateSettings settings;
  return RunTool(
      argc, argv, GenerateInfo(), [&](CLI::App& app) { DefineGenerateOptions(app, &settings); },
      [&](ToolRun& run) {
        if (settings.keep_if.empty())
          RefuseWithout("--keep-if", {"keep", "answer-format", "gold"}, run.options);
        EngineRequest request;
        request.argv = std::vector<std::string>(argv, argv + argc);
        request.nproc = settings.nproc;
        request.dist_timeout_s = settings.dist_timeout_s;
        request.process.threads = settings.threads;
        request.process.device = settings.device;
        request.kernels = settings.kernels;
        request.facts = FactsOfOptions(run.options,
                                       {"prompt", "template", "bos", "temperature", "top-k", "top-p", "min-p",
                                        "repetition-penalty", "logprobs", "state-after", "attn-backend"});
        request.facts["--context-cache"] = FactOfPath(settings.context_cache);
        request.check = [&](int64_t ranks) { CheckRanks(settings, ranks); };
        return RunEngine(request, &run, [&](const EngineProcess& process) {
          StdoutSink out;
          run.summary.update(RunGenerate(BuiltInFamilies(), settings, process.setup, &out, process.world,
                                         isatty(STDOUT_FILENO) == 1));
          return 0;
        });
      });
}
