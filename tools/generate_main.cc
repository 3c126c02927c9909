#include "lib/device/determinism.h"
#include "lib/device/process_setup.h"
#include "lib/eval/generate_job.h"
#include "lib/model/built_in_families.h"
#include "tools/generate_options.h"

int main(int argc, char** argv) {
  using namespace trainwright;
  PrepareDeterminism();
  GenerateSettings settings;
  return RunTool(
      argc, argv, GenerateInfo(), [&](CLI::App& app) { DefineGenerateOptions(app, &settings); },
      [&](ToolRun& run) {
        const ProcessSetup process = SetUpProcess({.threads = settings.threads, .device = settings.device});
        StdoutSink out;
        run.summary.update(RunGenerate(BuiltInFamilies(), settings, process, &out));
        return 0;
      });
}
