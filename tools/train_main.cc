#include <string>
#include <vector>

#include "lib/device/determinism.h"
#include "lib/train/merge_job.h"
#include "lib/train/run_report.h"
#include "lib/train/train_job.h"
#include "tools/train_options.h"

int main(int argc, char** argv) {
  using namespace trainwright;
  PrepareDeterminism();  // before torch's libraries first compute
  TrainSettings settings;
  return RunTool(
      argc, argv, TrainInfo(), [&](CLI::App& app) { DefineTrainOptions(app, &settings); },
      [&](ToolRun& run) {
        if (!settings.report.empty()) {
          run.summary["report"] = WriteRunReport(settings.report);
          return 0;
        }
        if (!settings.merge.empty()) {
          run.summary.update(MergeAdapter(settings.merge, settings.init, settings.out));
          return 0;
        }
        const TrainJobContext context = {.progress = run.common.progress,
                                         .argv = std::vector<std::string>(argv, argv + argc),
                                         .options = run.options};
        return RunTraining(settings, context, &run.summary);
      });
}
